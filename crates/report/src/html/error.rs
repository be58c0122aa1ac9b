//! The error of rendering a web page.

/// An error of rendering a web page. It occurs only if a template of this crate is faulty.
#[derive(Debug, thiserror::Error)]
#[error("the page template failed, which is a bug in context-window: {detail}")]
pub struct Error {
    detail: String,
}

impl Error {
    /// Builds the error of a template that cannot be rendered.
    pub(crate) fn page(error: &minijinja::Error) -> Self {
        Self { detail: error.to_string() }
    }
}
