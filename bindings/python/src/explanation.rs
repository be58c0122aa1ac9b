//! Answers to "why": of one item, and of what differs between two plans.

use crate::json;
use context_window as core;
use context_window_report as report;
use core::analysis;
use pyo3::prelude::*;

/// Why an item is in or out, at which prompt budgets (tokens) it is in, and what stands in its way. `str()`
/// gives it in words.
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

    /// Whether it is in.
    #[getter]
    fn included(&self) -> bool {
        self.inner.included
    }

    /// Why, as the plan's rows say it.
    #[getter]
    fn reason(&self) -> String {
        self.inner.reason.to_string()
    }

    /// What it costs in tokens; None where that was not looked at.
    #[getter]
    fn tokens(&self) -> Option<u64> {
        self.inner.tokens
    }

    /// The smallest prompt budget above this one that brings it in, in tokens.
    #[getter]
    fn enters_at(&self) -> Option<u64> {
        self.inner.enters_at
    }

    /// The largest prompt budget below this one that leaves it out, in tokens.
    #[getter]
    fn leaves_at(&self) -> Option<u64> {
        self.inner.leaves_at
    }

    /// The budget from which on it is always in, in tokens.
    #[getter]
    fn stays_from(&self) -> Option<u64> {
        self.inner.stays_from
    }

    /// What is in in its place.
    #[getter]
    fn displaced_by(&self) -> Vec<String> {
        crate::conversation::texts(&self.inner.displaced_by)
    }

    /// What leaves when it comes in.
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
