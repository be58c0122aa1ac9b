//! The request of a prompt, beside its conversation.

use crate::{
    data::Beside,
    error::{input, thrown},
    json,
};
use context_window::{
    Conversation, PlanRequest, RequestLimits, RetrievedItems, Tool,
    plan::{Anchor, RemoteContext},
};
use context_window_formats::Session;
use context_window_recall::Recall;
use serde_json::{Map, Value};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// A request of a prompt: keys of a session file, and those of `Beside`.
    #[wasm_bindgen(typescript_type = "PlanRequest")]
    pub type Request;
}

/// The keys of a request that a session file has, too. They are read as there.
const SHARED: [&str; 7] = ["tools", "rag", "focus", "state", "limits", "previous", "output_config"];

/// The names of the keys that only a request has.
const BESIDE: [&str; 4] = ["account", "end_user", "excluded_messages", "recall"];

/// A request that is kept, so that a plan can answer questions later.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    tools: Rc<[Tool]>,
    documents: RetrievedItems,
    focus: Option<String>,
    state: Vec<(String, String)>,
    limits: RequestLimits,
    remote: Vec<RemoteContext>,
    structured_output: bool,
    pub(crate) previous: Option<Anchor>,
    beside: Beside,
}

impl Asked {
    /// Reads a request.
    pub(crate) fn read(given: &JsValue) -> Result<Self, JsValue> {
        let given: Map<String, Value> = match given {
            absent if absent.is_null() || absent.is_undefined() => Map::new(),
            // A list would be read as a map without entries.
            given if given.is_object() && !js_sys::Array::is_array(given) => json::read(given, "request")?,
            given => return Err(input(format!("request: expected an object, found {}", json::kind(given)))),
        };
        let (mut session, mut beside) = (Map::new(), Map::new());
        // Null counts as absent, so that callers can pass optional values through.
        for (key, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            match key.as_str() {
                "state" => drop(session.insert(key, state(value))),
                shared if SHARED.contains(&shared) => drop(session.insert(key, value)),
                own if BESIDE.contains(&own) => drop(beside.insert(key, value)),
                other => {
                    let known = SHARED.iter().chain(&BESIDE).copied().collect::<Vec<_>>().join(", ");
                    return Err(input(format!("request: unknown key `{other}`; expected one of {known}")));
                }
            }
        }
        // A session file without messages is an error, and the conversation is elsewhere.
        session.insert("messages".into(), serde_json::json!([{"role": "user", "content": "."}]));
        let session =
            Session::from_json(&Value::Object(session).to_string()).map_err(|error| placed(&error))?;
        let beside = serde_json::from_value(Value::Object(beside));
        let beside = beside.map_err(|error| input(format!("request: {error}")))?;
        Ok(Self { beside, ..Self::of_session(session).0 })
    }

    /// Returns the request of a session, and its conversation.
    pub(crate) fn of_session(session: Session) -> (Self, Conversation) {
        let asked = Self {
            tools: session.tools.into(),
            documents: session.rag,
            focus: session.focus,
            state: session.state.into_iter().map(|(id, text)| (id.to_string(), text)).collect(),
            limits: session.limits,
            remote: session.remote,
            structured_output: session.structured_output,
            previous: session.previous,
            beside: Beside::default(),
        };
        (asked, session.log)
    }

    /// Builds the request for a conversation.
    pub(crate) fn request<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.completed(PlanRequest::new(log))
    }

    /// Builds a request for figures about a conversation. Without limits, tools and focus hint, it uses those
    /// of the last prompt.
    pub(crate) fn measured<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        // Any of the three makes it a request of its own.
        let is_alone = self.tools.is_empty() && self.limits == RequestLimits::new() && self.focus.is_none();
        self.completed(if is_alone { PlanRequest::like_last(log) } else { PlanRequest::new(log) })
    }

    fn completed<'a>(&'a self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        let mut request =
            request.with_tools(&self.tools).with_retrieved(self.documents.clone()).with_limits(self.limits);
        request = request.with_remote_context(self.remote.iter().cloned());
        if let Some(focus) = &self.focus {
            request = request.with_focus(focus);
        }
        for (id, text) in &self.state {
            request = request.with_state(id.as_str(), text);
        }
        if self.structured_output {
            request = request.with_structured_output();
        }
        if let Some(anchor) = &self.previous {
            request = request.with_previous(anchor.clone());
        }
        if let Some(account) = &self.beside.account {
            request = request.with_account(account);
        }
        if let Some(end_user) = &self.beside.end_user {
            request = request.with_end_user(end_user);
        }
        if self.beside.excluded_messages {
            request = request.with_excluded_messages();
        }
        if self.beside.recall { Recall::new().for_request(request) } else { request }
    }

    /// Adds the recalled messages to the documents. Later questions about a plan then are about the same
    /// ones.
    pub(crate) fn find_recalled(&mut self, log: &Conversation) {
        if std::mem::take(&mut self.beside.recall) {
            let request = PlanRequest::new(log).with_retrieved(std::mem::take(&mut self.documents));
            self.documents = Recall::new().for_request(request).rag;
        }
    }

    /// Sets another prompt budget in tokens.
    pub(crate) fn set_budget(&mut self, tokens: u64) {
        self.limits.prompt_budget = Some(tokens);
    }

    /// Sets limits that the request lacks.
    pub(crate) fn limit_to(&mut self, budget: Option<u64>) {
        self.limits.prompt_budget = budget.or(self.limits.prompt_budget);
    }

    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    pub(crate) fn limits(&self) -> RequestLimits {
        self.limits
    }
}

/// Returns state as a session file has it: an object of texts by their ids is a list there.
fn state(given: Value) -> Value {
    match given {
        Value::Object(texts) => {
            texts.into_iter().map(|(id, text)| serde_json::json!({"id": id, "text": text})).collect()
        }
        list => list,
    }
}

/// Returns an error about a key. Omits the position in a JSON text that the caller has never seen.
fn placed(error: &context_window_formats::Error) -> JsValue {
    let text = error.to_string();
    match text.strip_prefix("session:").and_then(|rest| rest.split_once(": ")) {
        Some((_, key)) => input(format!("request: {key}")),
        None => input(text),
    }
}

/// Reads tools in any provider's format.
pub(crate) fn tools(given: &JsValue) -> Result<Vec<Tool>, JsValue> {
    if given.is_null() || given.is_undefined() {
        return Ok(Vec::new());
    }
    context_window_formats::tools_from_json(&json::text(given, "tools")?).map_err(thrown)
}
