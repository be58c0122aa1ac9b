//! The planner for one model.

use crate::{
    compaction::CompactionJob,
    error::{Fault, raised},
    json,
    log::{Conversation, change_copy, read},
    plan::Plan,
    planner::{MadeOf, Planner, config_text, file_text},
    request::{Asked, tools},
    wire::{messages_json, wire_format as form},
    work::{LONG, interruptible},
};
use context_window as core;
use context_window_formats::SessionTexts;
use core::{Registry, TokenCounter, usage};
use pyo3::{
    prelude::*,
    pybacked::PyBackedStr,
    types::{PyDict, PyTuple},
};
use std::sync::Arc;

/// Plans prompts for one model with one set of options. A manager never changes, is cheap to copy, and may be
/// shared between threads.
///
/// `model` is a name from `models()`. Any other name gets default limits and estimates, with a notice in each
/// plan (`known` is False). `config` is a dict of tables, TOML text, or the path of a TOML file. `preset` is
/// a name from `presets()`. `tokenizer` is the name of another tokenizer or the path of a
/// `tokenizer.json`. `models` is the path of a file of models. `wire_format` is the format in which prompts
/// are counted, if it is not the model's own.
///
/// Raises `ConfigError` for options that are unknown or out of range, and `CountError` for a tokenizer that
/// is not available.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Manager {
    planner: Planner,
}

#[pymethods]
impl Manager {
    /// Creates a manager for a model from `models()`. Any other name gets default limits and estimates, with
    /// a notice.
    ///
    /// `config` is a dict of tables, TOML text, or the path of a TOML file. `preset` is a name from
    /// `presets()`. `tokenizer` is the name of another tokenizer or the path of a `tokenizer.json`. `models`
    /// is the path of a file of models. `wire_format` is the format in which prompts are counted, if it is
    /// not the model's own.
    #[new]
    #[pyo3(signature = (model, *, config=None, preset=None, tokenizer=None, models=None, wire_format=None))]
    fn new(
        py: Python<'_>,
        model: String,
        config: Option<&Bound<'_, PyAny>>,
        preset: Option<String>,
        tokenizer: Option<&Bound<'_, PyAny>>,
        models: Option<&Bound<'_, PyAny>>,
        wire_format: Option<String>,
    ) -> PyResult<Self> {
        let made_of = MadeOf {
            model,
            preset,
            config: config.map(|given| config_text(given, "config")).transpose()?,
            tokenizer: tokenizer.map(|name| name.str()?.extract()).transpose()?,
            models: models.map(file_text).transpose()?,
            wire_format,
        };
        Ok(Self { planner: Planner::made(py, made_of)? })
    }

    /// The model's name.
    #[getter]
    fn name(&self) -> &str {
        &self.planner.model().name
    }

    /// True if the model is known by name. Other models have default limits and estimated counts.
    #[getter]
    fn known(&self) -> bool {
        !self.planner.model().unknown
    }

    /// The model's wire format.
    #[getter]
    fn wire_format(&self) -> &'static str {
        self.planner.model().wire_format.name()
    }

    /// Plans the next prompt of a conversation.
    ///
    /// Keyword arguments:
    ///
    /// - `documents`: `Document` objects, dicts, or tuples of id, score and text; or a dict of such lists by
    ///   the names of their retrievers, whose ranks are then fused.
    /// - `tools`: dicts in any provider's format.
    /// - `focus`: a string.
    /// - `state`: a dict of strings by id.
    /// - `prompt_budget`, `model_context_len`, `max_completion_tokens`, `max_input`, `safety_buffer`: limits
    ///   in tokens.
    /// - `unknown_limit`: True if the context length is unknown.
    /// - `previous`: the result of `Plan.anchor()`.
    /// - `account`, `end_user`: strings.
    /// - `excluded_messages`: True for a separate row for each excluded message.
    /// - `recall`: a `Recall` of the conversation, or True for an index that is built for this plan only. The
    ///   earlier messages that the question needs are added as documents.
    ///
    /// Raises `BudgetError` if the limits leave no tokens, `InputError` for an argument of the wrong type and
    /// for a score that is not a number, and `TypeError` for an unknown argument. Of two documents with one
    /// id, the later one is excluded as a duplicate. If the required items do not fit, the plan has an
    /// `overflow` and no error is raised.
    #[pyo3(signature = (conversation, **request))]
    fn plan(
        &self,
        py: Python<'_>,
        conversation: &Conversation,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Plan> {
        Plan::new(
            py,
            &self.planner,
            conversation.shared(),
            Asked::from_arguments(request, conversation.shared())?,
        )
    }

    /// Plans like `plan`, in a separate thread. Await the result.
    #[pyo3(signature = (conversation, **request))]
    fn plan_async<'py>(
        slf: &Bound<'py, Self>,
        conversation: &Bound<'py, Conversation>,
        request: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let plan = slf.getattr("plan")?;
        // Planning releases the interpreter lock, so a thread does not block the event loop.
        py.import("asyncio")?.call_method("to_thread", (plan, conversation), request)
    }

    /// Plans the same request with a smaller budget. Call it after the provider reported that a prompt
    /// exceeds its window.
    #[pyo3(signature = (conversation, refused, **request))]
    fn plan_after_overflow(
        &self,
        py: Python<'_>,
        conversation: &Conversation,
        refused: &Plan,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Plan> {
        let asked = Asked::from_arguments(request, conversation.shared())?;
        let refused = Arc::clone(refused.made());
        Plan::planned(py, &self.planner, conversation.shared(), asked, true, move |manager, request| {
            manager.plan_after_overflow(request, refused.core())
        })
    }

    /// Counts the tokens of a string.
    fn count(&self, py: Python<'_>, text: PyBackedStr) -> PyResult<u64> {
        let planner = self.planner.clone();
        let counted = counted(py, text.len(), move || planner.core().count(&text))?;
        Ok(counted.map_err(raised)?.tokens)
    }

    /// Counts the tokens of a prompt with exactly these messages and tools.
    #[pyo3(signature = (messages, *, tools=None, wire_format="openai"))]
    fn count_messages(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        wire_format: &str,
    ) -> PyResult<u64> {
        let form = form(wire_format)?;
        let json = messages_json(messages)?;
        let tools = tools.map(self::tools).transpose()?.unwrap_or_default();
        let planner = self.planner.clone();
        let counted = counted(py, json.len(), move || {
            let mut log = core::Conversation::new();
            context_window_formats::push_json(&mut log, &json, form)?;
            planner.core().count_messages(log.messages(), &tools).map_err(Fault::from)
        });
        Ok(counted?.map_err(raised)?.tokens)
    }

    /// Returns the token budget for documents in the next prompt: a dict of `share`, `free` and `most`.
    #[pyo3(signature = (conversation, **request))]
    fn retrieval_budget<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        request: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked::from_arguments(request, conversation.shared())?;
        let planner = self.planner.clone();
        let budget =
            read(py, conversation.shared(), move |log| planner.core().retrieval_budget(&asked.request(log)))?;
        json::python(py, &budget)
    }

    /// Returns the use of the context window: a dict of tokens, `percent` and `level`. If you pass no limits,
    /// tools or focus hint, those of the last sent prompt are used.
    #[pyo3(signature = (conversation, **request))]
    fn usage<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        request: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked::from_arguments(request, conversation.shared())?;
        let planner = self.planner.clone();
        let usage = read(py, conversation.shared(), move |log| planner.core().usage(&asked.measured(log)))?;
        json::python(py, &usage)
    }

    /// Returns the request for a summary if a compaction is due, and None otherwise. `now=True` requests a
    /// compaction even if none is due. `first` and `last` select a range of messages to compact. Pass the
    /// model's answer to `apply_summary`, or compact with `compact_without_model`.
    #[pyo3(signature = (conversation, *, now=false, first=None, last=None, **request))]
    fn compaction_due(
        &self,
        py: Python<'_>,
        conversation: &Conversation,
        now: bool,
        first: Option<&str>,
        last: Option<&str>,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<CompactionJob>> {
        let asked = Asked::from_arguments(request, conversation.shared())?;
        let planner = self.planner.clone();
        let (first, last) = (first.map(core::ItemId::from), last.map(core::ItemId::from));
        let job = read(py, conversation.shared(), move |log| {
            let (compactor, request) = (planner.core().compactor(), asked.measured(log));
            match (first, last) {
                (None, None) if now => compactor.now(&request),
                (None, None) => compactor.due(&request),
                (first, last) => compactor.range(&request, first.as_ref(), last.as_ref()),
            }
        })?;
        Ok(job.map(CompactionJob::from_request))
    }

    /// Applies a summary. The messages that it replaces are archived, and nothing is deleted. Returns the
    /// record of the compaction as a dict. Raises a `CompactionError` if nothing was archived.
    fn apply_summary<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        job: &CompactionJob,
        summary: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (planner, job) = (self.planner.clone(), Arc::clone(job.core()));
        let record = change_copy(py, conversation.shared(), move |log| {
            planner.core().compactor().apply_summary(log, &job, &summary)
        })?;
        json::python(py, &record)
    }

    /// Compacts without a model: by a digest, or by a sliding window.
    fn compact_without_model<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        job: &CompactionJob,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (planner, job) = (self.planner.clone(), Arc::clone(job.core()));
        let record = change_copy(py, conversation.shared(), move |log| {
            planner.core().compactor().compact_without_model(log, &job)
        })?;
        json::python(py, &record)
    }

    /// Compacts without a model if a compaction is due. Returns None if none is due.
    #[pyo3(signature = (conversation, **request))]
    fn compact_if_due<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        request: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let asked = Asked::from_arguments(request, conversation.shared())?;
        let planner = self.planner.clone();
        // One write lock for the check and the compaction, so that no other thread can change the log in
        // between.
        let record = change_copy(py, conversation.shared(), move |log| {
            planner.core().compactor().compact_if_due(log, &asked.kept.tools, asked.kept.limits)
        })?;
        record.map(|record| json::python(py, &record)).transpose()
    }

    /// Returns this request as the JSON of a session file, for which `plan-inspect` makes the same plan. With
    /// `redact=True`, the texts are left out.
    #[pyo3(signature = (conversation, *, redact=false, **request))]
    fn session_json(
        &self,
        py: Python<'_>,
        conversation: &Conversation,
        redact: bool,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let asked = Asked::from_arguments(request, conversation.shared())?;
        let texts = if redact { SessionTexts::Redacted } else { SessionTexts::Kept };
        let planner = self.planner.clone();
        read(py, conversation.shared(), move |log| {
            context_window_formats::session_json(planner.core(), &asked.request(log), texts)
        })
    }

    fn __repr__(&self) -> String {
        format!("Manager({:?})", self.planner.model().name)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        // The pickle contains the texts of files instead of their paths, so it works on another machine.
        let again = py.import("context_window._core")?.getattr("Manager")?.getattr("_of")?;
        Ok((again, (self.planner.made_of().clone(),).into_pyobject(py)?))
    }

    /// Restores a manager from its pickle.
    #[staticmethod]
    fn _of(py: Python<'_>, made_of: MadeOf) -> PyResult<Self> {
        Ok(Self { planner: Planner::made(py, made_of)? })
    }
}

/// Counts a text or messages of `bytes` bytes on this thread, or on another one if it takes long.
fn counted<T: Send + 'static>(
    py: Python<'_>,
    bytes: usize,
    count: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    if bytes < LONG { Ok(py.detach(count)) } else { interruptible(py, move |_| count()) }
}

/// Counts the tokens of a string. `tokenizer` is `o200k_base`, `cl100k_base`, an estimate (`chars/4`,
/// `chars/3.5`, `bytes`), or the path of a `tokenizer.json`.
#[pyfunction]
#[pyo3(signature = (text, tokenizer="o200k_base"))]
pub(crate) fn count(py: Python<'_>, text: PyBackedStr, tokenizer: &str) -> PyResult<u64> {
    let tokenizer = tokenizer.to_owned();
    let counted = counted(py, text.len(), move || TokenCounter::named(&tokenizer)?.count(&text))?;
    Ok(counted.map_err(raised)?.tokens)
}

/// Returns the models that are known by name, with their limits in tokens.
#[pyfunction]
pub(crate) fn models(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let registry = Registry::built_in().map_err(raised)?;
    let model = |entry: &core::provider::ModelEntry| {
        serde_json::json!({
            "name": entry.name, "provider": entry.provider, "wire_format": entry.wire_format,
            "context_len": entry.context_len, "max_output": entry.max_output, "tokenizer": entry.tokenizer,
            "estimated": entry.is_estimated(),
        })
    };
    json::python(py, &registry.entries().iter().map(model).collect::<Vec<_>>())
}

/// Returns the names of the presets, which are named sets of options.
#[pyfunction]
pub(crate) fn presets() -> Vec<&'static str> {
    core::config::Config::presets().collect()
}

/// Checks if a provider's error reports a prompt that exceeds its window.
#[pyfunction]
pub(crate) fn is_context_overflow(error: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(usage::is_context_overflow(&error.str()?.extract::<String>()?))
}

/// Checks if a provider's error rejects the reasoning of an earlier reply.
#[pyfunction]
pub(crate) fn is_reasoning_refusal(error: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(usage::is_reasoning_refusal(&error.str()?.extract::<String>()?))
}
