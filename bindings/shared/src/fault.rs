//! An error of any of the crates, and its kind, by which a language has a class.

use context_window as core;
use context_window_formats as formats;
use context_window_recall as recall;
use context_window_report as report;
use context_window_store as store;
use std::{error::Error, fmt};

/// An error of any of the crates.
#[derive(Debug)]
pub enum Fault {
    /// An error of the planner, or of a token counter.
    Core(core::Error),
    /// An error of a log or store.
    Store(store::Error),
    /// An error of a file or of JSON text.
    Formats(formats::Error),
    /// An error of a page.
    Page(report::Error),
    /// An error of the file of an index.
    Recall(recall::Error),
}

/// The kind of an error. An error that one crate passes on for another keeps its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A kind of the planner's errors.
    Core(core::ErrorKind),
    /// A kind that only logs and stores have.
    Store(store::ErrorKind),
    /// The file of an index cannot be read or written.
    Recall,
}

impl From<core::ErrorKind> for FaultKind {
    fn from(kind: core::ErrorKind) -> Self {
        Self::Core(kind)
    }
}

impl From<store::ErrorKind> for FaultKind {
    fn from(kind: store::ErrorKind) -> Self {
        match kind {
            // Store and core share these kinds, so that one class catches both.
            store::ErrorKind::NotFound => Self::Core(core::ErrorKind::NotFound),
            store::ErrorKind::NotLoaded => Self::Core(core::ErrorKind::NotLoaded),
            store::ErrorKind::Input => Self::Core(core::ErrorKind::Input),
            kind => Self::Store(kind),
        }
    }
}

impl Fault {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Core(error) => error.kind().into(),
            Self::Store(error) => error.core().map_or_else(|| error.kind().into(), |core| core.kind().into()),
            Self::Formats(error) => match error.core() {
                Some(core) => core.kind().into(),
                None if error.kind() == formats::ErrorKind::Log => store::ErrorKind::Journal.into(),
                None => core::ErrorKind::Input.into(),
            },
            Self::Page(_) => core::ErrorKind::Template.into(),
            Self::Recall(_) => FaultKind::Recall,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Formats(error) => error.fmt(f),
            Self::Page(error) => error.fmt(f),
            Self::Recall(error) => error.fmt(f),
        }
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Core(error) => error.source(),
            Self::Store(error) => error.source(),
            Self::Formats(error) => error.source(),
            Self::Page(error) => error.source(),
            Self::Recall(error) => error.source(),
        }
    }
}

impl From<core::Error> for Fault {
    fn from(error: core::Error) -> Self {
        Self::Core(error)
    }
}

impl From<core::tokens::Error> for Fault {
    fn from(error: core::tokens::Error) -> Self {
        Self::Core(error.into())
    }
}

impl From<store::Error> for Fault {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<formats::Error> for Fault {
    fn from(error: formats::Error) -> Self {
        Self::Formats(error)
    }
}

impl From<report::Error> for Fault {
    fn from(error: report::Error) -> Self {
        Self::Page(error)
    }
}

impl From<recall::Error> for Fault {
    fn from(error: recall::Error) -> Self {
        Self::Recall(error)
    }
}
