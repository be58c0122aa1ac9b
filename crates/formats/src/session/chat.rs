//! The JSON object of an `OpenAI` Chat message, and of its calls, kept if it differs from the form that this
//! library writes (unchanged replies, H6).

use super::{
    content::Content,
    dialects,
    keys::Key,
    wire::{self, Role},
};
use context_window::{message::Reasoning, text::object::Object};
use std::collections::BTreeSet;

/// The message keys that belong to the session file and are not sent.
const OWN: [&str; 6] = ["id", "pinned", "priority", "ttl", "ttl_asked", "documents"];

/// The keys that this library sends, in the order in which it writes them.
const USUAL: [&str; 6] = ["role", "name", "content", "reasoning_content", "tool_calls", "tool_call_id"];

/// Message keys of `OpenAI` Chat servers, for messages of any role.
const OF_SERVERS: [&str; 8] = [
    "refusal",
    "reasoning",
    "reasoning_details",
    "thinking",
    "images",
    "tool_name",
    "prefix",
    "cache_control",
];

/// Keys that describe the generation of a reply. No server accepts them in a request.
const ABOUT_A_REPLY: [&str; 14] = [
    "usage",
    "finish_reason",
    "stop_reason",
    "stop_sequence",
    "index",
    "logprobs",
    "model",
    "created",
    "created_at",
    "timestamp",
    "latency",
    "cost",
    "response_metadata",
    "type",
];

/// Unknown keys that also occur in messages of other roles than the assistant's. The application's log added
/// them, so they are not sent.
#[derive(Default)]
pub(crate) struct LogKeys(BTreeSet<String>);

impl LogKeys {
    pub(crate) fn from_messages(messages: &[wire::Message]) -> Self {
        let others = messages.iter().filter(|message| message.role != Role::Assistant);
        let unread = others.flat_map(|message| &message.keys).filter(|key| key.unread.is_some());
        Self(unread.map(|key| key.name.to_string()).collect())
    }

    pub(super) fn is_sent(&self, role: Role, key: &str) -> bool {
        OF_SERVERS.contains(&key)
            || role == Role::Assistant && !ABOUT_A_REPLY.contains(&key) && !self.0.contains(key)
    }
}

/// The reading of a message's keys beyond those of every session.
pub(crate) struct Around {
    /// The object with its content emptied. `None` for an object in the usual form.
    pub(crate) json: Option<String>,
    /// The model's reasoning under another key than `reasoning_content`.
    pub(crate) reasoning: Option<Reasoning>,
    /// The assistant's refusal, if the message has no other content.
    pub(crate) refusal: Option<String>,
}

impl Around {
    /// Reads the keys of a message.
    pub(crate) fn read(wire: &wire::Message, log_keys: &LogKeys) -> Self {
        let nothing = Self { json: None, reasoning: None, refusal: None };
        // A legacy call or result is sent in the current form, so its object is not kept.
        if wire.role == Role::Function || wire.function_call.is_some() {
            return nothing;
        }
        let mut around = nothing;
        let mut object = Object::default();
        let mut is_usual = true;
        let mut last = None;
        for key in &wire.keys {
            let name = key.name.as_ref();
            // OpenAI's type of a tool message has no name (message names, H7).
            let is_result_name = wire.role == Role::Tool && name == "name";
            let is_own = OWN.contains(&name) || is_result_name;
            if is_own || key.unread.is_some() && !log_keys.is_sent(wire.role, name) {
                continue;
            }
            // The form is usual only if the keys come in the order in which they are written.
            let place = USUAL.iter().position(|usual| *usual == name);
            is_usual &= place.is_some() && last <= place;
            last = place;
            let value = match &key.unread {
                Some(value) => around.unread(wire, name, value.get()),
                None => Self::known(wire, name),
            };
            is_usual &= value.is_usual;
            object.push(name.to_owned(), value.json);
        }
        is_usual &= wire.keys.iter().any(|key| key.name == "content");
        around.json = (!is_usual).then(|| object.to_json());
        around
    }

    fn known(wire: &wire::Message, key: &str) -> Value {
        let calls = wire.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        match key {
            "content" => match &wire.content {
                Content::Null => Value { json: "null".into(), is_usual: calls },
                Content::Text(text) => Value { json: "\"\"".into(), is_usual: !text.is_empty() || !calls },
                Content::Parts(parts) => Value { json: "[]".into(), is_usual: !parts.is_empty() },
            },
            "function_call" => Value { json: "null".into(), is_usual: false },
            "tool_calls" if wire.tool_calls.is_none() => Value { json: "null".into(), is_usual: false },
            "tool_calls" => Value { json: "[]".into(), is_usual: calls },
            "tool_call_id" if wire.tool_call_id.is_none() => Value { json: "null".into(), is_usual: false },
            "name" if wire.name.is_none() => Value { json: "null".into(), is_usual: false },
            "reasoning_content" => match wire.reasoning_content.as_deref() {
                None => Value { json: "null".into(), is_usual: false },
                Some(text) => Value { json: "\"\"".into(), is_usual: !text.is_empty() },
            },
            "audio" => {
                let audio = wire.audio.as_ref().map_or("null", |audio| audio.get());
                Value { json: audio.into(), is_usual: false }
            }
            _ => Value { json: "\"\"".into(), is_usual: true },
        }
    }

    fn unread(&mut self, wire: &wire::Message, key: &str, json: &str) -> Value {
        let text = || serde_json::from_str::<String>(json).ok().filter(|text| !text.is_empty());
        let thinks = wire.reasoning_content.as_deref().is_none_or(str::is_empty)
            && wire.role == Role::Assistant
            && self.reasoning.is_none();
        let json = match key {
            "refusal" if !says(&wire.content) && text().is_some() => {
                self.refusal = text();
                "\"\"".to_owned()
            }
            // An empty refusal means no refusal. The text is under another key.
            "refusal" if json == "\"\"" => "null".to_owned(),
            "images" if dialects::images(wire, json).is_some() => "[]".to_owned(),
            _ => json.to_owned(),
        };
        // The reasoning stays in the object too, so that omitting it removes the whole key.
        if thinks {
            self.reasoning = dialects::reasoning(key, &json).map(Reasoning::text);
        }
        Value { json, is_usual: false }
    }
}

struct Value {
    json: String,
    is_usual: bool,
}

fn says(content: &Content) -> bool {
    match content {
        Content::Null => false,
        Content::Text(text) => !text.is_empty(),
        Content::Parts(parts) => !parts.is_empty(),
    }
}

/// Returns the JSON of a call as a template: the values that `ToolCall` stores are emptied. Returns `None`
/// for a call in the usual form.
pub(crate) fn call_json(call: &wire::Call) -> Option<String> {
    let is = |keys: &[Key], expected: &[&str]| keys.iter().map(|key| &key.name).eq(expected);
    let is_function = |key: &Key| {
        key.name != "type" || key.unread.as_ref().is_some_and(|kind| kind.get() == "\"function\"")
    };
    let arguments = call.function.arguments.as_ref().map_or("\"\"", |arguments| arguments.get());
    let is_text = arguments.starts_with('"');
    let usual = is(&call.keys, &["id", "type", "function"])
        && call.keys.iter().all(is_function)
        && is(&call.function.keys, &["name", "arguments"])
        && is_text;
    // A call without an id gets one. The exception is a call with an object as arguments: its server (Ollama)
    // has no call ids.
    if usual || call.id.is_none() && is_text {
        return None;
    }
    let takes_objects = call.id.is_none() || call.function.keys.iter().any(|key| key.name == "index");
    let mut function = Object::default();
    for key in &call.function.keys {
        let own = key.unread.as_ref().map(|value| value.get().to_owned());
        let object = (takes_objects && key.name == "arguments").then(|| arguments.to_owned());
        function.push(key.name.to_string(), own.or(object).unwrap_or_else(|| "\"\"".into()));
    }
    let mut object = Object::default();
    for key in &call.keys {
        let own = key.unread.as_ref().map(|value| value.get().to_owned());
        let inner = || if key.name == "id" { "\"\"".into() } else { function.to_json() };
        object.push(key.name.to_string(), own.unwrap_or_else(inner));
    }
    Some(object.to_json())
}
