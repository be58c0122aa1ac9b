//! Errors of the crates as Python exceptions: one class per kind, with the original text.

use context_window as core;
use context_window_recall as recall;
use context_window_store as store;
use pyo3::{create_exception, exceptions::PyException, prelude::*};

create_exception!(
    context_window,
    ContextWindowError,
    PyException,
    "The base class of all exceptions of this package."
);
create_exception!(
    context_window,
    CompactionError,
    ContextWindowError,
    "A compaction failed; nothing was archived."
);

/// Defines an exception class for each error kind, and a function that adds all classes to the module.
macro_rules! kinds {
    ($($name:ident($base:ident) = $kind:path, $doc:literal;)*) => {
        $(create_exception!(context_window, $name, $base, $doc);)*

        pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            module.add("ContextWindowError", py.get_type::<ContextWindowError>())?;
            module.add("CompactionError", py.get_type::<CompactionError>())?;
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }

        fn exception(kind: Kind, text: String) -> PyErr {
            $(if kind == $kind.into() {
                return PyErr::new::<$name, _>(text);
            })*
            PyErr::new::<ContextWindowError, _>(text)
        }
    };
}

kinds! {
    BudgetError(ContextWindowError) = core::ErrorKind::Budget, "The limits leave no tokens for a prompt.";
    ConfigError(ContextWindowError) = core::ErrorKind::Config, "An option is unknown, of the wrong type or out of range.";
    CountError(ContextWindowError) = core::ErrorKind::Count, "A token counter failed or is not available.";
    InputError(ContextWindowError) = core::ErrorKind::Input, "A message, document or session is invalid.";
    TemplateError(ContextWindowError) = core::ErrorKind::Template, "A chat template cannot be read, or rejects the messages.";
    NotFoundError(ContextWindowError) = core::ErrorKind::NotFound, "No item has the given id.";
    NoSummaryError(CompactionError) = core::ErrorKind::NoSummary, "The reply to a summary request contains no summary.";
    StaleError(CompactionError) = core::ErrorKind::Stale, "The conversation was compacted or rewound since the request was made.";
    NotSmallerError(CompactionError) = core::ErrorKind::NotSmaller, "The context would not be smaller with this summary.";
    NothingToCompactError(CompactionError) = core::ErrorKind::NothingToCompact, "There are no messages to archive.";
    BusyError(CompactionError) = core::ErrorKind::Busy, "A reply is being received, or the log is being played back.";
    CancelledError(CompactionError) = Kind::Cancelled, "The caller cancelled a compaction.";
    SummariserError(CompactionError) = Kind::Summariser, "The model failed to return a summary.";
    JournalError(ContextWindowError) = store::ErrorKind::Journal, "A log on disk cannot be read or written.";
    StoreError(ContextWindowError) = store::ErrorKind::Store, "A store of sessions cannot be opened, read or written.";
    ConflictError(ContextWindowError) = store::ErrorKind::Conflict,
        "Another writer appended to the session, or deleted it: `session`, `expected` and `found` revision. Nothing was written.";
    RecallError(ContextWindowError) = Kind::Recall, "The index file of a recall cannot be read or written.";
    NotLoadedError(ContextWindowError) = core::ErrorKind::NotLoaded, "The text of an archived message is not loaded from its store.";
}

/// The kind of an error of any of the crates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Core(core::ErrorKind),
    Store(store::ErrorKind),
    Recall,
    /// Raised only by an application's own summarizer. The module defines the class for it.
    Cancelled,
    Summariser,
}

impl From<core::ErrorKind> for Kind {
    fn from(kind: core::ErrorKind) -> Self {
        Self::Core(kind)
    }
}

impl From<store::ErrorKind> for Kind {
    fn from(kind: store::ErrorKind) -> Self {
        match kind {
            // Store and core share these kinds, so that one `except` clause catches both.
            store::ErrorKind::NotFound => Self::Core(core::ErrorKind::NotFound),
            store::ErrorKind::NotLoaded => Self::Core(core::ErrorKind::NotLoaded),
            store::ErrorKind::Input => Self::Core(core::ErrorKind::Input),
            kind => Self::Store(kind),
        }
    }
}

/// An error of any of the crates.
pub(crate) enum Fault {
    Core(core::Error),
    Store(store::Error),
    Formats(context_window_formats::Error),
    Page(context_window_report::Error),
    Recall(recall::Error),
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

impl From<context_window_formats::Error> for Fault {
    fn from(error: context_window_formats::Error) -> Self {
        Self::Formats(error)
    }
}

impl From<context_window_report::Error> for Fault {
    fn from(error: context_window_report::Error) -> Self {
        Self::Page(error)
    }
}

impl From<recall::Error> for Fault {
    fn from(error: recall::Error) -> Self {
        Self::Recall(error)
    }
}

/// Converts an error to the exception to raise.
pub(crate) fn raised(error: impl Into<Fault>) -> PyErr {
    match error.into() {
        Fault::Core(error) => exception(error.kind().into(), error.to_string()),
        // A store passes on errors of the core; these keep their own class.
        Fault::Store(error) => match error.core() {
            Some(core) => exception(core.kind().into(), error.to_string()),
            None => store_exception(&error),
        },
        Fault::Formats(error) => {
            let kind = match error.core() {
                Some(core) => core.kind().into(),
                None if error.kind() == context_window_formats::ErrorKind::Log => {
                    store::ErrorKind::Journal.into()
                }
                None => core::ErrorKind::Input.into(),
            };
            exception(kind, error.to_string())
        }
        Fault::Recall(error) => exception(Kind::Recall, error.to_string()),
        Fault::Page(error) => exception(core::ErrorKind::Template.into(), error.to_string()),
    }
}

/// Converts an error of an evaluation to the exception to raise. `place` names the session or the argument.
pub(crate) fn raised_at(place: &str, error: &context_window_eval::Error) -> PyErr {
    let kind = error.core().map_or(core::ErrorKind::Input, core::Error::kind);
    exception(kind.into(), format!("{place}: {error}"))
}

/// Builds the exception for a log or store. A conflict has the session and both revisions as attributes.
fn store_exception(error: &store::Error) -> PyErr {
    let exception = exception(error.kind().into(), error.to_string());
    let Some(conflict) = error.conflict() else { return exception };
    // Attributes can only be set with the interpreter attached.
    let set = Python::attach(|py| {
        let value = exception.value(py);
        value.setattr("session", &conflict.session)?;
        value.setattr("expected", conflict.expected)?;
        value.setattr("found", conflict.found)
    });
    match set {
        Ok(()) => exception,
        Err(failed) => failed,
    }
}

/// Returns an `InputError` about a value from Python.
pub(crate) fn input(text: impl Into<String>) -> PyErr {
    PyErr::new::<InputError, _>(text.into())
}
