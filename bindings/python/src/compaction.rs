//! Requests for summaries.

use crate::{
    json,
    wire::{body_json, messages_of, texts, wire_format},
};
use context_window as core;
use core::{compaction::CompactionRequest, render};
use pyo3::prelude::*;
use std::sync::Arc;

/// A prompt that requests a summary from a model. Pass the answer to `Manager.apply_summary`.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct CompactionJob {
    job: Arc<CompactionRequest>,
}

impl CompactionJob {
    pub(crate) fn from_request(job: CompactionRequest) -> Self {
        Self { job: Arc::new(job) }
    }

    pub(crate) fn core(&self) -> &Arc<CompactionRequest> {
        &self.job
    }
}

#[pymethods]
impl CompactionJob {
    /// The model whose tokenizer counts the request.
    #[getter]
    fn model(&self) -> &str {
        self.job.model()
    }

    /// The maximum number of tokens of the summary.
    #[getter]
    fn max_tokens(&self) -> u64 {
        self.job.max_tokens()
    }

    /// The number of tokens of the request.
    #[getter]
    fn tokens(&self) -> u64 {
        self.job.tokens().tokens
    }

    /// The ids of the messages that the summary replaces.
    #[getter]
    fn archived_ids(&self) -> Vec<String> {
        texts(self.job.archived_ids())
    }

    /// The trigger of the compaction.
    #[getter]
    fn trigger(&self) -> &'static str {
        self.job.trigger().text()
    }

    /// Builds a summary without a model: requests, tool calls and outcomes in brief.
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.job.digest()).map_err(crate::error::raised)
    }

    /// Returns the messages to send to the model.
    #[pyo3(signature = (wire_format="openai"))]
    fn messages<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &messages_of(body_json(render::body(&*self.job, self::wire_format(wire_format)?))))
    }

    /// Returns the body of the request: messages and tools, without the model's parameters.
    #[pyo3(signature = (wire_format="openai"))]
    fn body<'py>(&self, py: Python<'py>, wire_format: &str) -> PyResult<Bound<'py, PyAny>> {
        json::python(py, &render::body(&*self.job, self::wire_format(wire_format)?))
    }

    fn __repr__(&self) -> String {
        format!(
            "CompactionJob({} messages, {} tokens)",
            self.job.messages_archived(),
            self.job.tokens().tokens
        )
    }
}
