//! A plan, with its request bodies, explanations and reports.

use crate::{
    data::{Change, Citation, Explanation, NativeCitation, PromptItem},
    error::{Fault, thrown},
    json::{self, UsageJson, WireBody, WireList},
    request::Asked,
    shared_log::SharedLog,
    wire::{body_json, message, messages_json, messages_of, wire_format},
};
use context_window as core;
use context_window_formats::SessionTexts;
use context_window_report as report;
use core::{
    ContextPlan, ContextWindowManager, ItemId, Model, PlanRequest, WireFormat, analysis::Diff, render,
    usage::CacheLife,
};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A whole plan as plain data.
    #[wasm_bindgen(typescript_type = "PlanJSON")]
    pub type PlanJson;
    /// Rows of included items.
    #[wasm_bindgen(typescript_type = "PlanJSON[\"included\"]")]
    pub type IncludedRows;
    /// Rows of excluded items.
    #[wasm_bindgen(typescript_type = "PlanJSON[\"excluded\"]")]
    pub type ExcludedRows;
    /// An explanation as plain data.
    #[wasm_bindgen(typescript_type = "Explanation")]
    pub type Explained;
    /// Explanations as plain data.
    #[wasm_bindgen(typescript_type = "Explanation[]")]
    pub type AllExplained;
    /// The changes between two plans.
    #[wasm_bindgen(typescript_type = "Change[]")]
    pub type Changes;
    /// The record of a prompt, as `previous` of a request.
    #[wasm_bindgen(typescript_type = "Anchor")]
    pub type AnchorJson;
    /// The checked citations of a reply.
    #[wasm_bindgen(typescript_type = "Citation[]")]
    pub type Citations;
    /// The checked citations of a reply of Anthropic.
    #[wasm_bindgen(typescript_type = "NativeCitation[]")]
    pub type NativeCitations;
    /// The names and values of HTTP headers.
    #[wasm_bindgen(typescript_type = "[string, string][]")]
    pub type Headers;
    /// The part of the last prompt that a prompt repeats.
    #[wasm_bindgen(typescript_type = "NonNullable<PlanJSON[\"prefix\"]>")]
    pub type Repeated;
    /// Messages of a prompt.
    #[wasm_bindgen(typescript_type = "PromptItem[]")]
    pub type PromptItems;
}

/// A planned prompt: included and excluded items, each with its reason and its tokens. `Manager.plan` creates
/// it, and it never changes.
#[wasm_bindgen]
pub struct Plan {
    inner: ContextPlan,
    manager: Rc<(ContextWindowManager, Model)>,
    log: SharedLog,
    /// The number of log entries when the plan was made.
    entries: usize,
    asked: Asked,
}

impl Plan {
    /// Plans with the function `plan`. `smaller` is true if the plan chooses its own budget. Explanations
    /// then use that budget.
    pub(crate) fn planned(
        manager: &Rc<(ContextWindowManager, Model)>,
        log: &SharedLog,
        mut asked: Asked,
        smaller: bool,
        plan: impl FnOnce(&ContextWindowManager, &PlanRequest<'_>) -> Result<ContextPlan, core::Error>,
    ) -> Result<Self, JsValue> {
        let read = log.read()?;
        asked.find_recalled(&read);
        let inner = plan(&manager.0, &asked.request(&read)).map_err(thrown)?;
        asked.kept.remember(&read, smaller.then_some(inner.prompt_budget));
        let entries = read.event_count();
        Ok(Self { inner, manager: Rc::clone(manager), log: log.clone(), entries, asked })
    }

    pub(crate) fn core(&self) -> &ContextPlan {
        &self.inner
    }

    /// Returns a copy of the conversation as it was when the plan was made.
    fn past(&self) -> Result<core::Conversation, JsValue> {
        let log = self.log.read()?;
        // Without new entries, a clone is cheaper than applying the entries again.
        if log.event_count() == self.entries {
            return Ok(log.clone());
        }
        core::Conversation::from_events(log.events().take(self.entries)).map_err(thrown)
    }

    /// Calls `question` with the request of this plan.
    fn ask<T>(
        &self,
        question: impl FnOnce(&ContextWindowManager, &PlanRequest<'_>) -> Result<T, Fault>,
    ) -> Result<T, JsValue> {
        let past = self.past()?;
        question(&self.manager.0, &self.asked.request(&past)).map_err(thrown)
    }

    fn form(&self, name: Option<&str>) -> Result<WireFormat, JsValue> {
        match name {
            None => Ok(self.inner.wire_format),
            name => wire_format(name),
        }
    }
}

#[wasm_bindgen]
impl Plan {
    /// The tokens of the prompt.
    #[wasm_bindgen(getter)]
    pub fn tokens(&self) -> f64 {
        self.inner.estimated_tokens_total.tokens as f64
    }

    /// The prompt's budget in tokens.
    #[wasm_bindgen(getter)]
    pub fn budget(&self) -> f64 {
        self.inner.prompt_budget as f64
    }

    /// True if the required items alone exceed the budget. `toJSON().overflow` names them.
    #[wasm_bindgen(getter, js_name = isOverflow)]
    pub fn is_overflow(&self) -> bool {
        self.inner.overflow.is_some()
    }

    /// The rows of the included items, in prompt order.
    #[wasm_bindgen(getter)]
    pub fn included(&self) -> Result<IncludedRows, JsValue> {
        Ok(self.part("included")?.unchecked_into())
    }

    /// The rows of the excluded items, each with its reason.
    #[wasm_bindgen(getter)]
    pub fn excluded(&self) -> Result<ExcludedRows, JsValue> {
        Ok(self.part("excluded")?.unchecked_into())
    }

    fn part(&self, key: &str) -> Result<JsValue, JsValue> {
        // The rows have the keys of the whole plan's JSON.
        js_sys::Reflect::get(&json::parse(&self.inner.to_json())?, &key.into())
    }

    /// The reason of an item in words. Nothing if the plan has no row of its own for it.
    pub fn reason(&self, id: &str) -> Option<String> {
        self.inner.reason(id).map(|reason| reason.to_string())
    }

    /// The id of the first message of the oldest retained exchange.
    #[wasm_bindgen(getter, js_name = windowStart)]
    pub fn window_start(&self) -> Option<String> {
        self.inner.window_start.as_ref().map(ItemId::to_string)
    }

    /// The HTTP headers that parts of this prompt need.
    #[wasm_bindgen(getter)]
    pub fn headers(&self) -> Result<Headers, JsValue> {
        Ok(json::value(&self.inner.headers)?.unchecked_into())
    }

    /// The hash of the whole plan. Equal plans have equal hashes.
    #[wasm_bindgen(getter)]
    pub fn fingerprint(&self) -> String {
        self.inner.fingerprint()
    }

    /// Returns the body of a request: messages, tools and related fields of the provider, without the model's
    /// parameters. The default format is the model's own. `breakpoints` marks the ends of cacheable parts.
    pub fn body(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
        #[wasm_bindgen(unchecked_optional_param_type = "boolean")] breakpoints: Option<bool>,
    ) -> Result<WireBody, JsValue> {
        let body = render::body(&self.inner, self.form(wire_format.as_deref())?);
        // Marks change the body's bytes, so they are added only on request.
        let marked = breakpoints == Some(true);
        let body = if marked { body.with_breakpoints(CacheLife::FiveMinutes) } else { body };
        Ok(json::value(&body_json(body))?.unchecked_into())
    }

    /// Returns only the messages of the body. Anthropic and Gemini have a separate field for the system text:
    /// use `body` for them.
    pub fn messages(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "WireFormat")] wire_format: Option<String>,
    ) -> Result<WireList, JsValue> {
        let body = render::body(&self.inner, self.form(wire_format.as_deref())?);
        Ok(json::value(&messages_of(body_json(body)))?.unchecked_into())
    }

    /// Returns the ids of each message of the prompt, before the provider's format joins messages.
    #[wasm_bindgen(js_name = byItem)]
    pub fn by_item(&self) -> Result<PromptItems, JsValue> {
        let items: Vec<_> = self.inner.by_item().into_iter().map(PromptItem::from).collect();
        Ok(json::value(&items)?.unchecked_into())
    }

    /// Returns the record of this prompt, for servers that store no conversation. Pass it to the next plan as
    /// `previous`.
    pub fn anchor(&self) -> Result<AnchorJson, JsValue> {
        Ok(json::value(&self.inner.anchor())?.unchecked_into())
    }

    /// Explains why an item is included or excluded, and at which budgets that changes. If a document and a
    /// message share an id, use `rag:ID` or `item:ID`.
    pub fn explain(&self, id: String) -> Result<Explained, JsValue> {
        let explained = self.ask(|manager, request| Ok(manager.explainer(request).explain(&id)?))?;
        Ok(json::value(&Explanation::from(&explained))?.unchecked_into())
    }

    /// Explains every item.
    #[wasm_bindgen(js_name = explainAll)]
    pub fn explain_all(&self) -> Result<AllExplained, JsValue> {
        let explained = self.ask(|manager, request| Ok(manager.explainer(request).explain_all()?))?;
        let explained: Vec<_> = explained.iter().map(Explanation::from).collect();
        Ok(json::value(&explained)?.unchecked_into())
    }

    /// Compares this plan with a later one. Returns each change with the single input that causes it.
    pub fn diff(&self, later: &Plan) -> Result<Changes, JsValue> {
        // Both plans are explained with their own conversation, options and model.
        let past = later.past()?;
        let request = later.asked.request(&past);
        let after = later.manager.0.explainer(&request);
        let diff = self.ask(|manager, request| Ok(Diff::between(&manager.explainer(request), &after)?))?;
        let changes: Vec<_> = diff.changes.iter().map(Change::from).collect();
        Ok(json::value(&changes)?.unchecked_into())
    }

    /// Checks the citations in the text of a reply, such as `[1]`, with the option `rag.labels`. Ranges count
    /// UTF-16 units, as JavaScript strings do.
    #[wasm_bindgen(js_name = checkCitations)]
    pub fn check_citations(&self, reply: &str) -> Result<Citations, JsValue> {
        let citation = |one| Citation::from_core(one, reply);
        let found: Vec<_> = self.inner.citations().check(reply).into_iter().map(citation).collect();
        Ok(json::value(&found)?.unchecked_into())
    }

    /// Checks the citations that Anthropic writes beside the text of a reply, which is a message as it came.
    #[wasm_bindgen(js_name = checkNativeCitations)]
    pub fn check_native_citations(
        &self,
        #[wasm_bindgen(unchecked_param_type = "WireMessage")] reply: JsValue,
    ) -> Result<NativeCitations, JsValue> {
        let reply = message(&messages_json(&reply)?, WireFormat::Anthropic, "reply")?;
        let found = self.inner.citations().check_native(&reply).into_iter().map(NativeCitation::try_from);
        let found = found.collect::<Result<Vec<_>, _>>()?;
        Ok(json::value(&found)?.unchecked_into())
    }

    /// The use of the context window: tokens, `percent` and `level`.
    #[wasm_bindgen(getter)]
    pub fn usage(&self) -> Result<UsageJson, JsValue> {
        Ok(json::value(&self.inner.usage)?.unchecked_into())
    }

    /// The part of the last prompt that this one repeats, and that a cache may contain. Nothing for a first
    /// prompt.
    #[wasm_bindgen(getter)]
    pub fn repeated(&self) -> Result<Option<Repeated>, JsValue> {
        let repeated = self.inner.repeated();
        repeated.map(|prefix| Ok(json::value(&prefix)?.unchecked_into())).transpose()
    }

    /// Returns the whole plan as JSON text, with the same bytes as `plan-inspect --json`.
    pub fn json(&self) -> String {
        self.inner.to_json()
    }

    /// Returns the whole plan as plain data.
    #[wasm_bindgen(js_name = toJSON)]
    pub fn to_json(&self) -> Result<PlanJson, JsValue> {
        Ok(json::parse(&self.inner.to_json())?.unchecked_into())
    }

    /// Returns lines for a snapshot test. They contain no text of the conversation.
    pub fn snapshot(&self) -> String {
        report::snapshot(&self.inner).to_string()
    }

    /// Returns the plan as a readable table, `width` columns wide (default: 100).
    pub fn text(&self, width: Option<usize>) -> String {
        report::text(&self.inner).with_width(width.unwrap_or(100)).to_string()
    }

    /// Returns the plan in Markdown.
    pub fn markdown(&self) -> String {
        report::markdown(&self.inner).to_string()
    }

    /// Returns the plan as a self-contained web page. It contains the texts of the prompt, unless `redact` is
    /// true. Unless `explain` is false, it lists for each item the budgets at which it is included, which
    /// takes seconds for thousands of items.
    pub fn html(&self, redact: Option<bool>, explain: Option<bool>) -> Result<String, JsValue> {
        self.ask(|manager, request| {
            let is_explained = explain != Some(false);
            let explained = if is_explained { manager.explainer(request).explain_all()? } else { Vec::new() };
            let page = report::html(&self.inner).with_explanations(&explained).with_model(&self.manager.1);
            Ok(page.with_request(request).with_redaction(redact == Some(true)).render()?)
        })
    }

    /// Returns the request of this plan as the JSON of a session file, for which `plan-inspect` makes the
    /// same plan. With `redact`, the texts are left out.
    #[wasm_bindgen(js_name = sessionJSON)]
    pub fn session_json(&self, redact: Option<bool>) -> Result<String, JsValue> {
        let texts = if redact == Some(true) { SessionTexts::Redacted } else { SessionTexts::Kept };
        self.ask(|manager, request| Ok(context_window_formats::session_json(manager, request, texts)?))
    }

    /// Returns the plan as a readable table.
    #[wasm_bindgen(js_name = toString)]
    pub fn to_js_string(&self) -> String {
        self.text(None)
    }
}
