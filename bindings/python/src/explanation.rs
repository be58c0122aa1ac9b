//! Explanations of single items, and of the differences between two plans.

use crate::{error::input, json, wire::texts};
use context_window as core;
use context_window_report as report;
use core::analysis;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The reason why an item is included or excluded, and the prompt budgets in tokens at which that changes.
/// `str()` formats it in words.
#[pyclass(frozen, eq, module = "context_window")]
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct Explanation {
    /// The item's id.
    #[pyo3(get)]
    id: String,
    /// True if the item is included.
    #[pyo3(get)]
    included: bool,
    /// The reason, as in the plan's rows.
    #[pyo3(get)]
    reason: String,
    /// The item's tokens. None if they were not counted.
    #[pyo3(get)]
    tokens: Option<u64>,
    /// The smallest prompt budget above the current one at which the item is included, in tokens.
    #[pyo3(get)]
    enters_at: Option<u64>,
    /// The largest prompt budget below the current one at which the item is excluded, in tokens.
    #[pyo3(get)]
    leaves_at: Option<u64>,
    /// The prompt budget from which on the item is always included, in tokens.
    #[pyo3(get)]
    stays_from: Option<u64>,
    /// The ids of the items that are included instead.
    #[pyo3(get)]
    displaced_by: Vec<String>,
    /// The ids of the items that are excluded if this one is included.
    #[pyo3(get)]
    leaves_then: Vec<String>,
    /// All of it as JSON.
    json: String,
    /// All of it in words.
    text: String,
}

impl Explanation {
    pub(crate) const PICKLED: &str = "Explanation";

    pub(crate) fn from_core(inner: &analysis::Explanation) -> PyResult<Self> {
        Ok(Self {
            id: inner.id.to_string(),
            included: inner.included,
            reason: inner.reason.to_string(),
            tokens: inner.tokens,
            enters_at: inner.enters_at,
            leaves_at: inner.leaves_at,
            stays_from: inner.stays_from,
            displaced_by: texts(&inner.displaced_by),
            leaves_then: texts(&inner.leaves_then),
            json: serde_json::to_string(inner).map_err(|error| input(error.to_string()))?,
            text: report::explanation(inner).to_string(),
        })
    }
}

#[pymethods]
impl Explanation {
    /// Returns the explanation as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::loads(py, &self.json)
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        let state = if self.included { "in" } else { "out" };
        format!("Explanation({:?}, {state})", self.id)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<json::Reduced<'py>> {
        json::reduced(py, Self::PICKLED, self)
    }
}

/// An item whose state differs between two plans, in words, with the single input that causes the difference.
#[pyclass(frozen, get_all, eq, module = "context_window")]
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The item's id.
    id: String,
    /// True for a document.
    document: bool,
    /// The state in the earlier plan, in words.
    before: String,
    /// The state in the later plan, in words.
    after: String,
    /// The input that causes the difference.
    cause: Cow<'static, str>,
    /// The check that confirmed the cause, in words.
    verified_by: String,
}

impl Change {
    pub(crate) const PICKLED: &str = "Change";

    pub(crate) fn from_core(change: &analysis::Change) -> Self {
        let report::ChangeText { before, after, verified_by, .. } = report::change(change);
        Self {
            id: change.id.to_string(),
            document: change.document,
            before,
            after,
            cause: change.cause.name().into(),
            verified_by,
        }
    }
}

#[pymethods]
impl Change {
    fn __repr__(&self) -> String {
        format!("Change({:?}, {} -> {}, {})", self.id, self.before, self.after, self.cause)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<json::Reduced<'py>> {
        json::reduced(py, Self::PICKLED, self)
    }
}
