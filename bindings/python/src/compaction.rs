//! A request for a summary.

use crate::{
    conversation::{body_json, messages_of, texts, wire_format},
    json,
};
use context_window as core;
use core::{compaction::CompactionRequest, render};
use pyo3::prelude::*;

/// A prompt that asks a model for a summary. Pass the answer to `Manager.apply_summary`.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct CompactionJob {
    job: CompactionRequest,
}

impl CompactionJob {
    pub(crate) fn of(job: CompactionRequest) -> Self {
        Self { job }
    }

    pub(crate) fn core(&self) -> &CompactionRequest {
        &self.job
    }
}

#[pymethods]
impl CompactionJob {
    /// The model that the request is counted for.
    #[getter]
    fn model(&self) -> &str {
        self.job.model()
    }

    /// The most tokens that the summary may take.
    #[getter]
    fn max_tokens(&self) -> u64 {
        self.job.max_tokens()
    }

    /// Tokens of the request.
    #[getter]
    fn tokens(&self) -> u64 {
        self.job.tokens().tokens
    }

    /// The messages that the summary replaces.
    #[getter]
    fn archived_ids(&self) -> Vec<String> {
        texts(self.job.archived_ids())
    }

    /// The trigger that made it due.
    #[getter]
    fn trigger(&self) -> &'static str {
        self.job.trigger().text()
    }

    /// Builds a summary without a model: requests, tool calls and outcomes, in few words.
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.job.digest()).map_err(crate::error::raised)
    }

    /// The messages to send to the model.
    #[pyo3(signature = (wire_format="openai"))]
    fn messages<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &messages_of(body_json(render::body(&self.job, self::wire_format(wire_format)?))))
    }

    /// The body of the request: messages and tools, without the model's parameters.
    #[pyo3(signature = (wire_format="openai"))]
    fn body<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &render::body(&self.job, self::wire_format(wire_format)?))
    }

    fn __repr__(&self) -> String {
        format!(
            "CompactionJob({} messages, {} tokens)",
            self.job.messages_archived(),
            self.job.tokens().tokens
        )
    }
}
