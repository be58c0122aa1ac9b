//! The error of this crate.

use crate::conflict::Conflict;
use context_window::text::plain::{bounded, short, short_path};

/// An error of a log or a store. Its message names the file or store and the position, the problem, the
/// expectation and the remedy.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A log on disk that cannot be read or written.
    Journal,
    /// A store of sessions that cannot be opened, read or written, or that contains damaged data.
    Store,
    /// A conflict with another writer, who appended to the session or deleted it. `Error::conflict` returns
    /// both numbers of entries. Nothing was written.
    Conflict,
    /// A session id that the store does not have.
    NotFound,
    /// A required text of an archived message that was not loaded from its store. Load it first.
    NotLoaded,
    /// An invalid entry, id or session.
    Input,
    /// Entries that the conversation rejects. [`Error::core`] returns its error.
    Conversation,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Repr {
    #[error("{}: {}", bounded(.place), bounded(.detail))]
    Journal { place: String, detail: String },
    #[error("{}: {}", bounded(.place), bounded(.detail))]
    Store { place: String, detail: String },
    #[error("{}: {}", short_path(.place), bounded(.detail))]
    Input { place: String, detail: String },
    #[error("the text of an archived message is needed but not loaded; load it with SessionStore::load_rest")]
    NotLoaded,
    #[error("{0}")]
    Conflict(Conflict),
    #[error(
        "{}: has no session `{}`; list the sessions with `SessionStore::list` or `--list`",
        bounded(.place),
        short(.id)
    )]
    NoSession { place: String, id: String },
    #[error(transparent)]
    Core(context_window::Error),
}

impl Error {
    /// Returns the kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match &*self.0 {
            Repr::Journal { .. } => ErrorKind::Journal,
            Repr::Store { .. } => ErrorKind::Store,
            Repr::Input { .. } => ErrorKind::Input,
            Repr::NotLoaded => ErrorKind::NotLoaded,
            Repr::Conflict(_) => ErrorKind::Conflict,
            Repr::NoSession { .. } => ErrorKind::NotFound,
            // The core reports this condition with its own error; callers see one kind for both.
            Repr::Core(error) if error.kind() == context_window::ErrorKind::NotLoaded => ErrorKind::NotLoaded,
            Repr::Core(_) => ErrorKind::Conversation,
        }
    }

    /// Returns the conflict, for an error of the kind [`ErrorKind::Conflict`].
    #[must_use]
    pub fn conflict(&self) -> Option<&Conflict> {
        match &*self.0 {
            Repr::Conflict(conflict) => Some(conflict),
            _ => None,
        }
    }

    /// Returns the underlying error of `context-window`, if there is one.
    #[must_use]
    pub fn core(&self) -> Option<&context_window::Error> {
        match &*self.0 {
            Repr::Core(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn input(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Repr::Input { place: place.into(), detail: detail.into() })
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
