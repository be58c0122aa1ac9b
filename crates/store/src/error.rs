//! The error of this crate.

use crate::conflict::Conflict;
use context_window::text::plain::{bounded, short, short_path};

/// An error of a log or a store. The message names the file or store and the place in it, what was found,
/// what was expected and what to do.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Repr>);

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A log on disk cannot be read or written.
    Journal,
    /// A store of sessions cannot be opened, read or written, or its content is damaged.
    Store,
    /// Another writer appended to the session, or deleted it: `Error::conflict` says who is ahead. Nothing
    /// was written.
    Conflict,
    /// The store has no session of this id.
    NotFound,
    /// The text of an archived message was left in its store, and is needed here. Load it first.
    NotLoaded,
    /// An entry, an id or a session cannot be used as it is.
    Input,
    /// The conversation cannot take the entries: [`Error::core`] returns its error.
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
    #[error(
        "the text of an archived message is needed, and was left in the store; load it with SessionStore::load_rest"
    )]
    NotLoaded,
    #[error("{0}")]
    Conflict(Conflict),
    #[error(
        "{}: has no session `{}`; the list of sessions says which there are (`SessionStore::list`, `--list`)",
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
            Repr::Core(error) if error.kind() == context_window::ErrorKind::NotLoaded => ErrorKind::NotLoaded,
            Repr::Core(_) => ErrorKind::Conversation,
        }
    }

    /// Returns the writer that is ahead, for an error of the kind [`ErrorKind::Conflict`].
    #[must_use]
    pub fn conflict(&self) -> Option<&Conflict> {
        match &*self.0 {
            Repr::Conflict(conflict) => Some(conflict),
            _ => None,
        }
    }

    /// Returns the error of `context-window` that this one passes on, if it does.
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
