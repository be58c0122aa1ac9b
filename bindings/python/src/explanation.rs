//! Explanations of single items, and of the differences between two plans.

use crate::json;
use context_window as core;
use context_window_report as report;
use core::analysis;
use pyo3::prelude::*;

/// The reason why an item is included or excluded, and the prompt budgets in tokens at which that changes.
/// `str()` formats it in words.
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

    /// True if the item is included.
    #[getter]
    fn included(&self) -> bool {
        self.inner.included
    }

    /// The reason, as in the plan's rows.
    #[getter]
    fn reason(&self) -> String {
        self.inner.reason.to_string()
    }

    /// The item's tokens. None if they were not counted.
    #[getter]
    fn tokens(&self) -> Option<u64> {
        self.inner.tokens
    }

    /// The smallest prompt budget above the current one at which the item is included, in tokens.
    #[getter]
    fn enters_at(&self) -> Option<u64> {
        self.inner.enters_at
    }

    /// The largest prompt budget below the current one at which the item is excluded, in tokens.
    #[getter]
    fn leaves_at(&self) -> Option<u64> {
        self.inner.leaves_at
    }

    /// The prompt budget from which on the item is always included, in tokens.
    #[getter]
    fn stays_from(&self) -> Option<u64> {
        self.inner.stays_from
    }

    /// The ids of the items that are included instead.
    #[getter]
    fn displaced_by(&self) -> Vec<String> {
        crate::conversation::texts(&self.inner.displaced_by)
    }

    /// The ids of the items that are excluded if this one is included.
    #[getter]
    fn leaves_then(&self) -> Vec<String> {
        crate::conversation::texts(&self.inner.leaves_then)
    }

    /// Returns the explanation as plain data.
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

/// An item whose state differs between two plans, in words, with the single input that causes the difference.
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
