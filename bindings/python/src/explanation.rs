//! Explanations of one item, and of the differences between two plans.

use crate::json;
use context_window as core;
use context_window_report as report;
use core::analysis;
use pyo3::prelude::*;

/// The reason why an item is included or excluded, and the prompt budgets (tokens) at which it is included.
/// `str()` writes it in words.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Explanation {
    inner: analysis::Explanation,
}

impl Explanation {
    pub(crate) fn of(inner: analysis::Explanation) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Explanation {
    /// The item's id.
    #[getter]
    fn id(&self) -> &str {
        self.inner.id.as_str()
    }

    /// True if it is included.
    #[getter]
    fn included(&self) -> bool {
        self.inner.included
    }

    /// The reason, as in the plan's rows.
    #[getter]
    fn reason(&self) -> String {
        self.inner.reason.to_string()
    }

    /// Its tokens; None if they were not counted.
    #[getter]
    fn tokens(&self) -> Option<u64> {
        self.inner.tokens
    }

    /// The smallest prompt budget above this one that includes it, in tokens.
    #[getter]
    fn enters_at(&self) -> Option<u64> {
        self.inner.enters_at
    }

    /// The largest prompt budget below this one that excludes it, in tokens.
    #[getter]
    fn leaves_at(&self) -> Option<u64> {
        self.inner.leaves_at
    }

    /// The budget from which on it is always included, in tokens.
    #[getter]
    fn stays_from(&self) -> Option<u64> {
        self.inner.stays_from
    }

    /// The items that are included instead.
    #[getter]
    fn displaced_by(&self) -> Vec<String> {
        crate::conversation::texts(&self.inner.displaced_by)
    }

    /// The items that are excluded when it is included.
    #[getter]
    fn leaves_then(&self) -> Vec<String> {
        crate::conversation::texts(&self.inner.leaves_then)
    }

    /// Everything in it, as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &self.inner)
    }

    fn __str__(&self) -> String {
        report::explanation(&self.inner).to_string()
    }

    fn __repr__(&self) -> String {
        let state = if self.inner.included { "in" } else { "out" };
        format!("Explanation({:?}, {state})", self.inner.id.as_str())
    }
}

/// One item whose state differs between two plans, in words, and the one input that this comes from.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq)]
pub(crate) struct Change {
    id: String,
    document: bool,
    before: String,
    after: String,
    cause: &'static str,
    verified_by: String,
}

impl Change {
    pub(crate) fn of(change: &analysis::Change) -> Self {
        let report::ChangeText { before, after, verified_by, .. } = report::change(change);
        Self {
            id: change.id.to_string(),
            document: change.document,
            before,
            after,
            cause: change.cause.name(),
            verified_by,
        }
    }
}

#[pymethods]
impl Change {
    fn __repr__(&self) -> String {
        format!("Change({:?}, {} -> {}, {})", self.id, self.before, self.after, self.cause)
    }
}
