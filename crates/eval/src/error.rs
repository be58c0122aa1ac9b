//! The error of this crate.

/// An error of a case that cannot be read, or of a prompt that cannot be planned. The message names the case,
/// the key or id, and the expected value.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
// Boxed, so that a `Result` with this error stays as small as a pointer.
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A session, a question or the name of a preset is invalid.
    Input,
    /// A prompt cannot be planned, or the options of a policy are invalid.
    Plan,
}

#[derive(Debug, thiserror::Error)]
enum Repr {
    #[error("{place}: {detail}")]
    Input { place: String, detail: String },
    #[error(transparent)]
    Session(#[from] context_window_formats::Error),
    #[error("{place}: {error}")]
    Plan { place: String, error: context_window::Error },
}

impl Error {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Repr::Input { .. } | Repr::Session(_) => ErrorKind::Input,
            Repr::Plan { .. } => ErrorKind::Plan,
        }
    }

    /// Returns the wrapped error of `context-window`, if any.
    #[must_use]
    pub fn core(&self) -> Option<&context_window::Error> {
        match &*self.0 {
            Repr::Input { .. } => None,
            Repr::Session(error) => error.core(),
            Repr::Plan { error, .. } => Some(error),
        }
    }

    pub(crate) fn input(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self(Box::new(Repr::Input { place: place.into(), detail: detail.into() }))
    }

    /// Adds the place to an error of the planner.
    pub(crate) fn plan(place: impl Into<String>, error: context_window::Error) -> Self {
        Self(Box::new(Repr::Plan { place: place.into(), error }))
    }
}

impl From<context_window_formats::Error> for Error {
    fn from(error: context_window_formats::Error) -> Self {
        Self(Box::new(error.into()))
    }
}
