//! The planner for one model.

use crate::{
    compaction::CompactionJob,
    conversation::{Conversation, reading, writing},
    error::{Fault, input, raised},
    json,
    plan::Plan,
    request::{Asked, tools},
};
use context_window as core;
use context_window_formats::SessionTexts;
use core::{ContextWindowManager, Model, Registry, TokenCounter, WireFormat, config::ConfigLayers, usage};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};
use std::{path::PathBuf, sync::Arc};

/// Plans prompts for one model with one set of options. A manager never changes, is cheap to copy, and may be
/// shared between threads.
///
/// `model` is a name from `models()`. Any other name gets default limits and estimates, with a notice in each
/// plan (`known` is False). `config` is a dict of tables, TOML text, or the path of a TOML file. `preset` is
/// the name of a set of options. `tokenizer` is the name of another tokenizer or the path of a
/// `tokenizer.json`. `models` is the path of a file of models. `wire_format` is the format in which prompts
/// are counted, if it is not the model's own.
///
/// Raises `ConfigError` for options that are unknown or out of range, and `CountError` for a tokenizer that
/// is not available.
#[pyclass(frozen, from_py_object, module = "context_window")]
#[derive(Clone)]
pub(crate) struct Manager {
    inner: Arc<Inner>,
}

struct Inner {
    manager: ContextWindowManager,
    model: Model,
    /// The constructor's arguments, for pickling.
    made_of: MadeOf,
}

/// The constructor's arguments, with the contents of files.
#[derive(Clone, Default)]
struct MadeOf {
    model: String,
    preset: Option<String>,
    /// The name of the options in errors, and the options as TOML.
    config: Option<(String, String)>,
    tokenizer: Option<String>,
    /// The name and the text of a model file.
    models: Option<(String, String)>,
    /// The wire format, if it is not the model's own.
    wire_format: Option<String>,
}

/// Creates the manager. `form` is the parsed wire format.
impl MadeOf {
    fn manager(self, form: Option<WireFormat>) -> Result<Inner, core::Error> {
        let mut layers = ConfigLayers::new();
        if let Some(preset) = &self.preset {
            layers = layers.with_pairs("preset", [("preset", preset)]);
        }
        if let Some((name, text)) = &self.config {
            layers = layers.with_text(name, text);
        }
        let config = layers.load()?.config;
        let model = match &self.models {
            Some((name, text)) => {
                Registry::from_toml(text, name)?.with_fallback(Registry::built_in()?).model(&self.model)
            }
            None => Model::named(&self.model)?,
        };
        let model = form.into_iter().fold(model, Model::with_wire_format);
        let manager = match &self.tokenizer {
            Some(name) => ContextWindowManager::new(model.clone(), TokenCounter::named(name)?, config)?,
            None => ContextWindowManager::configured(model.clone(), config)?,
        };
        Ok(Inner { manager, model, made_of: self })
    }
}

/// Returns the name and the text of options as TOML, from a file, a string, or a dict of tables.
pub(crate) fn config_text(given: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    if given.is_instance_of::<PyString>() {
        let text: String = given.extract()?;
        // Every line of options contains one of these characters, so a string without them is a path.
        let is_path = !text.is_empty() && !text.contains(['=', '[', '\n', '#']);
        return if is_path { file_text(given) } else { Ok(("config".into(), text)) };
    }
    if given.is_instance_of::<PyDict>() {
        let json = json::dumps(given, "config")?;
        let mut tables: serde_json::Value =
            serde_json::from_str(&json).map_err(|error| input(error.to_string()))?;
        unset(&mut tables);
        let text = toml::to_string(&tables).map_err(|error| input(format!("config: {error}")))?;
        return Ok(("config".into(), text));
    }
    file_text(given)
}

/// Removes options that are None, because they count as unset.
fn unset(tables: &mut serde_json::Value) {
    if let serde_json::Value::Object(table) = tables {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(unset);
    }
}

/// Returns the name and the text of a file.
fn file_text(path: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    let path: PathBuf = path.extract()?;
    let name = path.display().to_string();
    let text = std::fs::read_to_string(&path);
    Ok((name.clone(), text.map_err(|error| input(format!("{name}: cannot be read: {error}")))?))
}

impl Manager {
    pub(crate) fn core(&self) -> &ContextWindowManager {
        &self.inner.manager
    }

    pub(crate) fn model(&self) -> &Model {
        &self.inner.model
    }

    fn made(py: Python<'_>, made_of: MadeOf) -> PyResult<Self> {
        let form = made_of.wire_format.as_deref().map(crate::conversation::wire_format).transpose()?;
        let inner = py.detach(|| made_of.manager(form)).map_err(raised)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Creates a manager for a model by name. `texts` are options as TOML, and later ones override earlier
    /// ones. `tokenizer` replaces the model's own tokenizer.
    pub(crate) fn layered<const N: usize>(
        model: &str,
        tokenizer: Option<&str>,
        texts: [&str; N],
    ) -> Result<Self, core::Error> {
        let layers = texts.into_iter().filter(|text| !text.is_empty());
        let layers = layers.fold(ConfigLayers::new(), |layers, text| layers.with_text("config", text));
        let mut model = Model::named(model)?;
        if let Some(name) = tokenizer.filter(|name| model.tokenizer.as_deref() != Some(*name)) {
            model.tokenizer = Some(name.to_owned());
        }
        let manager = ContextWindowManager::configured(model.clone(), layers.load()?.config)?;
        // Managers of batches are never pickled, so the arguments are not needed.
        Ok(Self { inner: Arc::new(Inner { manager, model, made_of: MadeOf::default() }) })
    }
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
            config: config.map(config_text).transpose()?,
            tokenizer: tokenizer.map(|name| name.str()?.extract()).transpose()?,
            models: models.map(file_text).transpose()?,
            wire_format,
        };
        Self::made(py, made_of)
    }

    /// The model's name.
    #[getter]
    fn name(&self) -> &str {
        &self.model().name
    }

    /// True if the model is known by name. Other models have default limits and estimated counts.
    #[getter]
    fn known(&self) -> bool {
        !self.model().unknown
    }

    /// The model's wire format.
    #[getter]
    fn wire_format(&self) -> &'static str {
        self.model().wire_format.name()
    }

    /// Plans the next prompt of a conversation.
    ///
    /// Keyword arguments:
    ///
    /// - `documents`: `Document` objects, dicts, or tuples of id, score and text.
    /// - `tools`: dicts in any provider's format.
    /// - `focus`: a string.
    /// - `state`: a dict of strings by id.
    /// - `prompt_budget`, `model_context_len`, `max_completion_tokens`, `max_input`, `safety_buffer`: limits
    ///   in tokens.
    /// - `unknown_limit`: True if the context length is unknown.
    /// - `previous`: the result of `Plan.anchor()`.
    /// - `account`, `end_user`: strings.
    /// - `excluded_messages`: True for a separate row for each excluded message.
    ///
    /// Raises `BudgetError` if the limits leave no tokens, and `InputError` for duplicate ids and scores that
    /// are not numbers. If the required items do not fit, the plan has an `overflow` and no error is raised.
    #[pyo3(signature = (conversation, **request))]
    fn plan(
        &self,
        py: Python<'_>,
        conversation: &Conversation,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Plan> {
        Plan::new(py, self, conversation, Asked::of(request)?)
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
        let asked = Asked::of(request)?;
        Plan::made(py, self, conversation.shared(), asked, true, |manager, request| {
            manager.plan_after_overflow(request, refused.core())
        })
    }

    /// Counts the tokens of a string.
    fn count(&self, py: Python<'_>, text: &str) -> PyResult<u64> {
        Ok(py.detach(|| self.core().count(text)).map_err(raised)?.tokens)
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
        let form = crate::conversation::wire_format(wire_format)?;
        let json = crate::conversation::messages_json(messages)?;
        let tools = tools.map(self::tools).transpose()?.unwrap_or_default();
        let counted = py.detach(|| {
            let mut log = core::Conversation::new();
            context_window_formats::push_json(&mut log, &json, form)?;
            self.core().count_messages(log.messages(), &tools).map_err(Fault::from)
        });
        Ok(counted.map_err(raised)?.tokens)
    }

    /// Returns the token budget for documents in the next prompt: a dict of `share`, `free` and `most`.
    #[pyo3(signature = (conversation, **request))]
    fn retrieval_budget<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        request: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked::of(request)?;
        let budget = conversation.read(py, |log| self.core().retrieval_budget(&asked.request(log)))?;
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
        let asked = Asked::of(request)?;
        let usage = conversation.read(py, |log| self.core().usage(&asked.measured(log)))?;
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
        let asked = Asked::of(request)?;
        let job = conversation.read(py, |log| {
            let (compactor, request) = (self.core().compactor(), asked.measured(log));
            match (first.map(core::ItemId::from), last.map(core::ItemId::from)) {
                (None, None) if now => compactor.now(&request),
                (None, None) => compactor.due(&request),
                (first, last) => compactor.range(&request, first.as_ref(), last.as_ref()),
            }
        })?;
        Ok(job.map(CompactionJob::of))
    }

    /// Applies a summary. The messages that it replaces are archived, and nothing is deleted. Returns the
    /// record of the compaction as a dict. Raises a `CompactionError` if nothing was archived.
    fn apply_summary<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        job: &CompactionJob,
        summary: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let record =
            conversation.change(py, |log| self.core().compactor().apply_summary(log, job.core(), summary))?;
        json::python(py, &record)
    }

    /// Compacts without a model: by a digest, or by a sliding window.
    fn compact_without_model<'py>(
        &self,
        py: Python<'py>,
        conversation: &Conversation,
        job: &CompactionJob,
    ) -> PyResult<Bound<'py, PyAny>> {
        let record =
            conversation.change(py, |log| self.core().compactor().compact_without_model(log, job.core()))?;
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
        let asked = Asked::of(request)?;
        let record = py.detach(|| {
            // One write lock for the check and the compaction, so that no other thread can change the log in
            // between.
            let mut log = writing(conversation.shared());
            self.core().compactor().compact_if_due(&mut log, asked.tools(), asked.limits())
        });
        record.map_err(raised)?.map(|record| json::python(py, &record)).transpose()
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
        let asked = Asked::of(request)?;
        let texts = if redact { SessionTexts::Redacted } else { SessionTexts::Kept };
        py.detach(|| {
            let log = reading(conversation.shared());
            context_window_formats::session_json(self.core(), &asked.request(&log), texts)
        })
        .map_err(raised)
    }

    fn __repr__(&self) -> String {
        format!("Manager({:?})", self.model().name)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let MadeOf { model, preset, config, tokenizer, models, wire_format } = &self.inner.made_of;
        // The pickle contains the texts of files instead of their paths, so it works on another machine.
        let again = py.import("context_window._core")?.getattr("Manager")?.getattr("_of")?;
        Ok((
            again,
            (
                model,
                preset.as_deref(),
                config.as_ref(),
                tokenizer.as_deref(),
                models.as_ref(),
                wire_format.as_deref(),
            )
                .into_pyobject(py)?,
        ))
    }

    /// Restores a manager from its pickle.
    #[staticmethod]
    fn _of(
        py: Python<'_>,
        model: String,
        preset: Option<String>,
        config: Option<(String, String)>,
        tokenizer: Option<String>,
        models: Option<(String, String)>,
        wire_format: Option<String>,
    ) -> PyResult<Self> {
        Self::made(py, MadeOf { model, preset, config, tokenizer, models, wire_format })
    }
}

/// Counts the tokens of a string. `tokenizer` is `o200k_base`, `cl100k_base`, an estimate (`chars/4`,
/// `chars/3.5`, `bytes`), or the path of a `tokenizer.json`.
#[pyfunction]
#[pyo3(signature = (text, tokenizer="o200k_base"))]
pub(crate) fn count(py: Python<'_>, text: &str, tokenizer: &str) -> PyResult<u64> {
    let counted = py.detach(|| TokenCounter::named(tokenizer)?.count(text));
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
