//! Errors of the crates as Python exceptions: one class per kind, with the original text.

use context_window as core;
pub(crate) use context_window_bindings::Fault;
use context_window_bindings::FaultKind;
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
// Raised only by an application's own summarizer. The module defines the classes for it.
create_exception!(context_window, CancelledError, CompactionError, "The caller cancelled a compaction.");
create_exception!(context_window, SummariserError, CompactionError, "The model failed to return a summary.");

/// Defines an exception class for each error kind, and a function that adds all classes to the module.
macro_rules! kinds {
    ($($name:ident($base:ident) = $kind:path, $doc:literal;)*) => {
        $(create_exception!(context_window, $name, $base, $doc);)*

        pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            module.add("ContextWindowError", py.get_type::<ContextWindowError>())?;
            module.add("CompactionError", py.get_type::<CompactionError>())?;
            module.add("CancelledError", py.get_type::<CancelledError>())?;
            module.add("SummariserError", py.get_type::<SummariserError>())?;
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }

        fn exception(kind: FaultKind, text: String) -> PyErr {
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
    JournalError(ContextWindowError) = store::ErrorKind::Journal, "A log on disk cannot be read or written.";
    StoreError(ContextWindowError) = store::ErrorKind::Store, "A store of sessions cannot be opened, read or written.";
    ConflictError(ContextWindowError) = store::ErrorKind::Conflict,
        "Another writer appended to the session, or deleted it: `session`, `expected` and `found` revision. Nothing was written.";
    RecallError(ContextWindowError) = FaultKind::Recall, "The index file of a recall cannot be read or written.";
    NotLoadedError(ContextWindowError) = core::ErrorKind::NotLoaded, "The text of an archived message is not loaded from its store.";
}

/// Converts an error to the exception to raise.
pub(crate) fn raised(error: impl Into<Fault>) -> PyErr {
    let fault = error.into();
    let exception = exception(fault.kind(), fault.to_string());
    match &fault {
        Fault::Store(error) => with_conflict(exception, error),
        _ => exception,
    }
}

/// Converts an error of an evaluation to the exception to raise. `place` names the session or the argument.
pub(crate) fn raised_at(place: &str, error: &context_window_eval::Error) -> PyErr {
    let kind = error.core().map_or(core::ErrorKind::Input, core::Error::kind);
    exception(kind.into(), format!("{place}: {error}"))
}

/// Adds the session and both revisions of a conflict to its exception.
fn with_conflict(exception: PyErr, error: &store::Error) -> PyErr {
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
