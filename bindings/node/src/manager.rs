//! The planner for one model.

use crate::{
    compaction::CompactionJob,
    conversation::{Conversation, Messages},
    counter,
    data::{ManagerOptions, RetrievalBudget},
    error::{input, thrown},
    json::{self, Plain, UsageJson},
    plan::Plan,
    request::{Asked, Request, tools},
    shared_log::SharedLog,
    wire::{messages_json, placed, wire_format},
};
use context_window as core;
use context_window_formats::SessionFile;
use core::{Config, ContextWindowManager, ItemId, Model, Registry, WireFormat, config::ConfigLayers};
use serde_json::Value;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// The options of a manager.
    #[wasm_bindgen(typescript_type = "ManagerOptions")]
    pub type Options;
    /// Token budgets for documents.
    #[wasm_bindgen(typescript_type = "RetrievalBudget")]
    pub type Budget;
}

/// Plans prompts for one model with one set of options. It never changes.
#[wasm_bindgen]
pub struct Manager {
    inner: Rc<(ContextWindowManager, Model)>,
    config: Config,
    /// True if the application chose the wire format.
    has_own_format: bool,
    has_own_counter: bool,
}

#[wasm_bindgen]
impl Manager {
    /// Creates a manager for a model from `models()`. Any other name gets default limits, with a notice in
    /// each plan, and estimates by `o200k_base`, if it is loaded, or by `tokenizer`.
    #[wasm_bindgen(constructor)]
    pub fn new(model: String, options: Option<Options>) -> Result<Manager, JsValue> {
        let (settings, own) = settings(options.as_ref())?;
        let has_own_counter = own.is_some();
        let form = settings.wire_format.as_deref().map(|name| wire_format(Some(name))).transpose()?;
        let tables = settings.config.map(config_text).transpose()?;
        let made = || -> Result<_, core::Error> {
            let mut layers = ConfigLayers::new();
            if let Some(preset) = &settings.preset {
                layers = layers.with_pairs("preset", [("preset", preset)]);
            }
            if let Some(text) = &tables {
                layers = layers.with_text("config", text);
            }
            let config = layers.load()?.config;
            // The manager completes its own copy by the model.
            let asked_config = config.clone();
            let model = match &settings.models {
                Some(text) => {
                    Registry::from_toml(text, "models")?.with_fallback(Registry::built_in()?).model(&model)
                }
                None => Model::named(&model)?,
            };
            let mut model = form.into_iter().fold(model, Model::with_wire_format);
            let manager = if let Some(own) = own {
                ContextWindowManager::new(model.clone(), counter::of_function(own), config)?
            } else {
                // A model that is only estimated stays so with another tokenizer.
                model.tokenizer = settings.tokenizer.clone().or(model.tokenizer);
                ContextWindowManager::configured(model.clone(), config)?
            };
            Ok(((manager, model), asked_config))
        };
        let (inner, config) = made().map_err(thrown)?;
        Ok(Self { inner: Rc::new(inner), config, has_own_format: form.is_some(), has_own_counter })
    }

    /// The model's name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.inner.1.name.clone()
    }

    /// True if the model is known by name. Other models have default limits and estimated counts.
    #[wasm_bindgen(getter)]
    pub fn known(&self) -> bool {
        !self.inner.1.unknown
    }

    /// The model's wire format.
    #[wasm_bindgen(getter, js_name = wireFormat)]
    pub fn wire_format(&self) -> String {
        self.inner.1.wire_format.name().to_owned()
    }

    /// Plans the next prompt of a conversation. If the required items do not fit, the plan has an overflow
    /// and no error is thrown.
    pub fn plan(&self, conversation: &Conversation, request: Option<Request>) -> Result<Plan, JsValue> {
        let asked = asked(request.as_ref())?;
        Plan::planned(&self.inner, conversation.shared(), asked, false, ContextWindowManager::build_plan)
    }

    /// Plans the next prompt of a session file of any known format, as `plan-inspect NAME` does. `id` names
    /// one session of a file of several. `promptBudget` overrides the file's limits, in tokens.
    #[wasm_bindgen(js_name = planSession)]
    pub fn plan_session(
        &self,
        name: &str,
        text: String,
        id: Option<String>,
        prompt_budget: Option<f64>,
    ) -> Result<Plan, JsValue> {
        let file = SessionFile::new(name, text.into_bytes()).map_err(thrown)?;
        let session = file.session(id.as_deref()).map_err(thrown)?;
        // A logged body is counted in its own format, as the tool does it.
        let manager = self.for_body(session.wire_format).map_err(thrown)?;
        let mut asked = Asked::from_session(&session);
        if let Some(budget) = prompt_budget {
            let tokens = json::whole(budget);
            let fault = || input("promptBudget: expected a number of tokens, 0 or more");
            asked.kept.limits.prompt_budget = Some(tokens.ok_or_else(fault)?);
        }
        let log = SharedLog::new(session.log);
        Plan::planned(&manager, &log, asked, false, ContextWindowManager::build_plan)
    }

    /// Plans the same request with a smaller budget. Call it after the provider reported that a prompt
    /// exceeds its window.
    #[wasm_bindgen(js_name = planAfterOverflow)]
    pub fn plan_after_overflow(
        &self,
        conversation: &Conversation,
        refused: &Plan,
        request: Option<Request>,
    ) -> Result<Plan, JsValue> {
        let asked = asked(request.as_ref())?;
        Plan::planned(&self.inner, conversation.shared(), asked, true, |manager, request| {
            manager.plan_after_overflow(request, refused.core())
        })
    }

    /// Counts the tokens of a string.
    pub fn count(&self, text: &str) -> Result<f64, JsValue> {
        Ok(self.inner.0.count(text).map_err(thrown)?.tokens as f64)
    }

    /// Counts the tokens of a prompt with exactly these messages and tools.
    #[wasm_bindgen(js_name = countMessages)]
    pub fn count_messages(
        &self,
        messages: Messages,
        #[wasm_bindgen(unchecked_optional_param_type = "unknown[]")] tools: JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<f64, JsValue> {
        let form = self::wire_format(wire_format.as_deref())?;
        let tools = self::tools(&tools)?;
        // A log reads messages as `push` does, so both accept the same.
        let mut log = core::Conversation::new();
        context_window_formats::push_json(&mut log, &messages_json(&messages)?, form)
            .map_err(|error| placed(&error))?;
        let counted = self.inner.0.count_messages(log.messages(), &tools);
        Ok(counted.map_err(thrown)?.tokens as f64)
    }

    /// Returns the token budget for documents in the next prompt: `share`, `free` and `most`.
    #[wasm_bindgen(js_name = retrievalBudget)]
    pub fn retrieval_budget(
        &self,
        conversation: &Conversation,
        request: Option<Request>,
    ) -> Result<Budget, JsValue> {
        let asked = asked(request.as_ref())?;
        let budget = self.inner.0.retrieval_budget(&asked.request(&*conversation.shared().read()?));
        let budget = budget.map_err(thrown)?;
        let (share, free, most) = (budget.share as f64, budget.free as f64, budget.most as f64);
        Ok(json::value(&RetrievalBudget { share, free, most })?.unchecked_into())
    }

    /// Returns the use of the context window: tokens, `percent` and `level`. If you pass no limits, tools or
    /// focus hint, those of the last sent prompt are used.
    pub fn usage(&self, conversation: &Conversation, request: Option<Request>) -> Result<UsageJson, JsValue> {
        let asked = asked(request.as_ref())?;
        let usage = self.inner.0.usage(&asked.measured(&*conversation.shared().read()?));
        Ok(json::value(&usage.map_err(thrown)?)?.unchecked_into())
    }

    /// Returns the request for a summary if a compaction is due, and nothing otherwise. `now` requests a
    /// compaction even if none is due. `first` and `last` select a range of messages.
    #[wasm_bindgen(js_name = compactionDue)]
    pub fn compaction_due(
        &self,
        conversation: &Conversation,
        request: Option<Request>,
        now: Option<bool>,
        first: Option<String>,
        last: Option<String>,
    ) -> Result<Option<CompactionJob>, JsValue> {
        let asked = asked(request.as_ref())?;
        let log = conversation.shared().read()?;
        let (compactor, request) = (self.inner.0.compactor(), asked.measured(&log));
        let id = |id: Option<String>| id.map(ItemId::from);
        let job = match (id(first), id(last)) {
            (None, None) if now == Some(true) => compactor.now(&request),
            (None, None) => compactor.due(&request),
            // A range is an explicit wish, so it need not be due.
            (first, last) => compactor.range(&request, first.as_ref(), last.as_ref()),
        };
        Ok(job.map_err(thrown)?.map(CompactionJob::from_request))
    }

    /// Applies a summary. The messages that it replaces are archived, and nothing is deleted. Returns the
    /// record of the compaction.
    #[wasm_bindgen(js_name = applySummary)]
    pub fn apply_summary(
        &self,
        conversation: &Conversation,
        job: &CompactionJob,
        summary: &str,
    ) -> Result<Plain, JsValue> {
        compacted(conversation, |log| self.inner.0.compactor().apply_summary(log, job.core(), summary))
    }

    /// Compacts without a model: by a digest, or by a sliding window.
    #[wasm_bindgen(js_name = compactWithoutModel)]
    pub fn compact_without_model(
        &self,
        conversation: &Conversation,
        job: &CompactionJob,
    ) -> Result<Plain, JsValue> {
        compacted(conversation, |log| self.inner.0.compactor().compact_without_model(log, job.core()))
    }

    /// Compacts without a model if a compaction is due. Returns nothing if none is due.
    #[wasm_bindgen(js_name = compactIfDue)]
    pub fn compact_if_due(
        &self,
        conversation: &Conversation,
        request: Option<Request>,
    ) -> Result<Option<Plain>, JsValue> {
        let asked = asked(request.as_ref())?;
        let mut log = conversation.shared().change()?;
        let record = self.inner.0.compactor().compact_if_due(&mut log, &asked.kept.tools, asked.kept.limits);
        let record = record.map_err(thrown)?;
        record.map(|record| Ok(json::value(&record)?.unchecked_into())).transpose()
    }

    /// Returns the planner for a logged body: with its wire format if the model is unknown, or if the model
    /// supports both formats of `OpenAI`.
    fn for_body(&self, logged: Option<WireFormat>) -> Result<Rc<(ContextWindowManager, Model)>, core::Error> {
        let (manager, model) = &*self.inner;
        let takes = |form| match form {
            WireFormat::OpenAiResponses => model.unknown || model.wire_format == WireFormat::OpenAiChat,
            _ => model.unknown,
        };
        let Some(form) = logged.filter(|form| !self.has_own_format && takes(*form)) else {
            return Ok(Rc::clone(&self.inner));
        };
        // The counter depends on the format, so the manager is another one.
        let model = model.clone().with_wire_format(form);
        let (own, config) = (manager.counter(), self.config.clone());
        let manager = if self.has_own_counter {
            ContextWindowManager::new(model.clone(), own.clone(), config)?
        } else {
            ContextWindowManager::configured(model.clone(), config)?
        };
        Ok(Rc::new((manager, model)))
    }
}

/// Compacts a conversation. Returns the record of the compaction.
fn compacted<T: serde::Serialize>(
    conversation: &Conversation,
    compact: impl FnOnce(&mut core::Conversation) -> Result<T, core::Error>,
) -> Result<Plain, JsValue> {
    let record = compact(&mut *conversation.shared().change()?).map_err(thrown)?;
    Ok(json::value(&record)?.unchecked_into())
}

fn asked(request: Option<&Request>) -> Result<Asked, JsValue> {
    Asked::read(request.map_or(&JsValue::UNDEFINED, AsRef::as_ref))
}

/// Reads the options of a manager, and its counter, which no JSON can have.
fn settings(options: Option<&Options>) -> Result<(ManagerOptions, Option<js_sys::Function>), JsValue> {
    let Some(options) = options else { return Ok((ManagerOptions::default(), None)) };
    if !options.is_object() || js_sys::Array::is_array(options) {
        return Err(input(format!("options: expected an object, found {}", json::kind(options))));
    }
    let own = js_sys::Reflect::get(options, &"counter".into())?;
    let own = match own.dyn_into::<js_sys::Function>() {
        Ok(function) => Some(function),
        Err(absent) if absent.is_undefined() || absent.is_null() => None,
        Err(other) => {
            return Err(input(format!(
                "counter: expected a function of a text, found {}",
                json::kind(&other)
            )));
        }
    };
    let mut read: Value = json::read(options, "options")?;
    // `null` counts as absent, so that callers can pass optional values through.
    if let Value::Object(read) = &mut read {
        read.retain(|key, value| key != "counter" && !value.is_null());
    }
    let settings = serde_json::from_value(read).map_err(|error| input(format!("options: {error}")))?;
    Ok((settings, own))
}

/// Returns options as TOML, from a text or from tables.
fn config_text(given: Value) -> Result<String, JsValue> {
    if let Value::String(text) = given {
        return Ok(text);
    }
    let mut tables = given;
    unset(&mut tables);
    toml::to_string(&tables).map_err(|error| input(format!("config: {error}")))
}

/// Removes options that are null, because they count as unset.
fn unset(tables: &mut Value) {
    if let Value::Object(table) = tables {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(unset);
    }
}
