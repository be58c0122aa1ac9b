//! The error type of this crate.

use context_window::text::plain::short;

/// An error of a compaction with a model. Nothing was archived.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A compaction that the caller cancelled.
    Cancelled,
    /// A failure of the model: an HTTP error, a time-out, a missing key.
    Model,
    /// Any other reason; [`Error::core`] returns the underlying error.
    Compaction,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Repr {
    #[error("`{}` returned no summary: {what}; nothing was archived", short(.model))]
    Summariser { model: String, what: String },
    #[error("the compaction was cancelled; nothing was archived")]
    Cancelled,
    #[error(transparent)]
    Core(context_window::Error),
}

impl Error {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Repr::Cancelled => ErrorKind::Cancelled,
            Repr::Summariser { .. } => ErrorKind::Model,
            Repr::Core(_) => ErrorKind::Compaction,
        }
    }

    /// Returns true if nothing was archived, so that a compaction without a summary can take its
    /// place.
    pub(crate) fn leaves_the_log(&self) -> bool {
        match &*self.0 {
            Repr::Cancelled | Repr::Summariser { .. } => true,
            Repr::Core(error) => {
                error.kind().is_compaction() || error.kind() == context_window::ErrorKind::Budget
            }
        }
    }

    /// Returns the error of `context-window` that this error passes on, or `None` if it has another cause.
    #[must_use]
    pub fn core(&self) -> Option<&context_window::Error> {
        match &*self.0 {
            Repr::Core(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn new(repr: Repr) -> Self {
        Self(Box::new(repr))
    }
}

impl From<context_window::Error> for Error {
    fn from(error: context_window::Error) -> Self {
        Self::new(Repr::Core(error))
    }
}
