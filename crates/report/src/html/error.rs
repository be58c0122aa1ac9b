//! The error of a page.

/// An error of a web page: its own template fails, which is a fault of this crate.
#[derive(Debug, thiserror::Error)]
#[error("the page's own template fails, a fault of context-window: {detail}")]
pub struct Error {
    detail: String,
}

impl Error {
    /// Builds the error of a template that fails.
    pub(crate) fn page(error: &minijinja::Error) -> Self {
        Self { detail: error.to_string() }
    }
}
