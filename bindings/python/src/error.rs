//! Errors of the crate as exceptions: one class a kind, the text as it is.

use context_window::{Error, ErrorKind};
use pyo3::{create_exception, exceptions::PyException, prelude::*};

create_exception!(context_window, ContextWindowError, PyException, "Whatever this package raises.");
create_exception!(
    context_window,
    CompactionError,
    ContextWindowError,
    "A compaction was not made; nothing was archived."
);

/// The classes that stand for one kind each, and all of them for the module.
macro_rules! kinds {
    ($($name:ident($base:ident) = $kind:ident, $doc:literal;)*) => {
        $(create_exception!(context_window, $name, $base, $doc);)*

        pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            module.add("ContextWindowError", py.get_type::<ContextWindowError>())?;
            module.add("CompactionError", py.get_type::<CompactionError>())?;
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }

        fn of_kind(kind: ErrorKind, text: String) -> PyErr {
            match kind {
                $(ErrorKind::$kind => PyErr::new::<$name, _>(text),)*
                _ => PyErr::new::<ContextWindowError, _>(text),
            }
        }
    };
}

kinds! {
    BudgetError(ContextWindowError) = Budget, "The limits leave no tokens for a prompt.";
    ConfigError(ContextWindowError) = Config, "An option is unknown, of the wrong type or out of range.";
    CountError(ContextWindowError) = Count, "A token counter failed or is not available.";
    InputError(ContextWindowError) = Input, "A message, document or session cannot be used as it is.";
    TemplateError(ContextWindowError) = Template, "A chat template cannot be read, or refuses the messages.";
    NotFoundError(ContextWindowError) = NotFound, "No item has the id that was given.";
    NoSummaryError(CompactionError) = NoSummary, "The answer to a request for a summary holds none.";
    StaleError(CompactionError) = Stale, "The conversation was compacted or rewound since the request was made.";
    NotSmallerError(CompactionError) = NotSmaller, "With this summary the context would not be smaller.";
    NothingToCompactError(CompactionError) = NothingToCompact, "There is nothing that could be archived.";
    BusyError(CompactionError) = Busy, "A reply is being received, or the log is played back.";
    CancelledError(CompactionError) = Cancelled, "The caller cancelled a compaction.";
    SummariserError(CompactionError) = Summariser, "The model that was asked for a summary failed.";
    JournalError(ContextWindowError) = Journal, "A log on disk cannot be read or written.";
    StoreError(ContextWindowError) = Store, "A store of sessions cannot be opened, read or written.";
    ConflictError(ContextWindowError) = Conflict,
        "Another writer appended to the session, or deleted it: `session`, `expected` and `found` revision. Nothing was written.";
    NotLoadedError(ContextWindowError) = NotLoaded, "The text of an archived message was left in its store.";
}

/// The exception that an error is raised as.
pub(crate) fn raised(error: Error) -> PyErr {
    let exception = of_kind(error.kind(), error.to_string());
    let Some(conflict) = error.conflict() else { return exception };
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

/// An error about what Python handed over.
pub(crate) fn input(text: impl Into<String>) -> PyErr {
    PyErr::new::<InputError, _>(text.into())
}
