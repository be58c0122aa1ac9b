//! The error of this crate.

use context_window::text::plain::bounded;

/// An error of a file or JSON text that cannot be read. The message names the file, line, key or id, the
/// value found, the value expected and the remedy.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
// Boxed, so that a `Result` with this error stays as small as a pointer.
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file or JSON text is invalid.
    Input,
    /// A log on disk cannot be read.
    Log,
    /// The conversation or its token counter returned an error; see [`Error::core`].
    Conversation,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Repr {
    #[error("{}: {}", bounded(.place), bounded(.detail))]
    Input { place: String, detail: String },
    #[error(transparent)]
    Log(context_window_store::Error),
    #[error(transparent)]
    Core(context_window::Error),
}

impl Error {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Repr::Input { .. } => ErrorKind::Input,
            Repr::Log(_) => ErrorKind::Log,
            Repr::Core(error) if error.kind() == context_window::ErrorKind::Input => ErrorKind::Input,
            Repr::Core(_) => ErrorKind::Conversation,
        }
    }

    /// Adds the place of the session to an error about a duplicate id. Returns any other error unchanged.
    pub(crate) fn with_session_place(self, place: impl Into<String>) -> Self {
        match &*self.0 {
            Repr::Core(error) if error.is_duplicate_id() => Self::input(place, error.to_string()),
            _ => self,
        }
    }

    pub(crate) fn input(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Repr::Input { place: place.into(), detail: detail.into() })
    }

    /// Returns the wrapped error of `context-window`, if any.
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

impl From<context_window::tokens::Error> for Error {
    fn from(error: context_window::tokens::Error) -> Self {
        Self::new(Repr::Core(error.into()))
    }
}

impl From<context_window_store::Error> for Error {
    fn from(error: context_window_store::Error) -> Self {
        Self::new(Repr::Log(error))
    }
}
