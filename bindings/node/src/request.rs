//! The request of a prompt, beside its conversation.

use crate::{
    data::Beside,
    error::{input, thrown},
    json,
};
use context_window::{Conversation, PlanRequest, Tool};
use context_window_bindings::KeptRequest;
use context_window_formats::Session;
use context_window_recall::Recall;
use serde_json::{Map, Value};
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

/// The keys of limits.
const LIMITS: [&str; 6] =
    ["context_len", "max_completion", "max_input", "safety_buffer", "prompt_budget", "unknown"];

/// A request that is kept, so that a plan can answer questions later.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) kept: KeptRequest,
    /// True if the earlier messages that the question needs are added.
    recalls: bool,
}

impl Asked {
    /// Reads a request.
    pub(crate) fn read(given: &JsValue) -> Result<Self, JsValue> {
        let given: Map<String, Value> = match given {
            absent if absent.is_null() || absent.is_undefined() => Map::new(),
            // A list would be read as a map without entries.
            given if given.is_object() && !js_sys::Array::is_array(given) => {
                check_limits(given)?;
                json::read(given, "request")?
            }
            given => return Err(input(format!("request: expected an object, found {}", json::kind(given)))),
        };
        // Keys of a session file are read by its reader, so errors and rules are the same.
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
        let Beside { account, end_user, excluded_messages, recall } =
            serde_json::from_value(Value::Object(beside))
                .map_err(|error| input(format!("request: {error}")))?;
        let kept =
            KeptRequest { account, end_user, excluded_messages, ..KeptRequest::from_session(&session) };
        Ok(Self { kept, recalls: recall })
    }

    /// Copies the request of a session.
    pub(crate) fn from_session(session: &Session) -> Self {
        Self { kept: KeptRequest::from_session(session), recalls: false }
    }

    /// Builds the request for a conversation.
    pub(crate) fn request<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.with_recall(self.kept.request(log))
    }

    /// Builds a request for figures about a conversation.
    pub(crate) fn measured<'a>(&'a self, log: &'a Conversation) -> PlanRequest<'a> {
        self.with_recall(self.kept.measured(log))
    }

    fn with_recall<'a>(&self, request: PlanRequest<'a>) -> PlanRequest<'a> {
        if self.recalls { Recall::new().for_request(request) } else { request }
    }

    /// Adds the recalled messages to the documents. Later questions about a plan then are about the same
    /// ones.
    pub(crate) fn find_recalled(&mut self, log: &Conversation) {
        if std::mem::take(&mut self.recalls) {
            // Documents of the request stay before the recalled ones.
            let request = PlanRequest::new(log).with_retrieved(std::mem::take(&mut self.kept.documents));
            self.kept.documents = Recall::new().for_request(request).rag;
        }
    }
}

/// Checks the limits of a request. A session file may have keys of other programs, a request has none.
fn check_limits(request: &JsValue) -> Result<(), JsValue> {
    let limits = js_sys::Reflect::get(request, &"limits".into())?;
    if limits.is_null() || limits.is_undefined() {
        return Ok(());
    }
    let expected = LIMITS.join(", ");
    if !limits.is_object() || js_sys::Array::is_array(&limits) {
        let found = json::kind(&limits);
        return Err(input(format!("request: limits: expected an object of {expected}, found {found}")));
    }
    for entry in js_sys::Object::entries(limits.unchecked_ref()).iter() {
        let entry: js_sys::Array = entry.unchecked_into();
        let (key, value) = (entry.get(0).as_string().unwrap_or_default(), entry.get(1));
        if !LIMITS.contains(&key.as_str()) {
            return Err(input(format!("request: limits: unknown key `{key}`; expected one of {expected}")));
        }
        // JSON has no such numbers, and null would be no limit.
        if value.as_f64().is_some_and(|number| !number.is_finite()) {
            return Err(input(format!("request: limits.{key}: expected a number of tokens")));
        }
    }
    Ok(())
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
