//! Messages and request bodies in the formats of providers.

use crate::{error::input, json};
use context_window as core;
use core::{
    Message, WireFormat,
    message::Prompt,
    render::{self, Body},
};
use wasm_bindgen::prelude::*;

/// Returns the wire format with this name.
pub(crate) fn wire_format(name: Option<&str>) -> Result<WireFormat, JsValue> {
    match name {
        None | Some("openai" | "openai_chat") => Ok(WireFormat::OpenAiChat),
        Some("openai_responses") => Ok(WireFormat::OpenAiResponses),
        Some("anthropic") => Ok(WireFormat::Anthropic),
        Some("gemini") => Ok(WireFormat::Gemini),
        Some(other) => {
            let expected = "expected openai, openai_responses, anthropic or gemini";
            Err(input(format!("wire format `{other}`: {expected}")))
        }
    }
}

/// Returns a message or a list of messages as JSON.
pub(crate) fn messages_json(given: &JsValue) -> Result<String, JsValue> {
    // Text is data too, so without this check it would be read as JSON of a message.
    if !given.is_object() {
        let expected = "expected a message such as {role: \"user\", content: ...}, or a list of messages";
        return Err(input(format!("messages: {expected}, found {}", json::kind(given))));
    }
    json::text(given, "messages")
}

/// Returns an error about messages. Omits the position in a JSON text that the caller has never seen.
pub(crate) fn placed(error: &context_window_formats::Error) -> JsValue {
    let text = error.to_string();
    let key = text.strip_prefix("messages:").and_then(|rest| rest.split_once(": ")).map(|(_, key)| key);
    input(match key {
        Some(key) if key.starts_with('[') => format!("messages{key}"),
        Some(key) => format!("messages: {key}"),
        None => text,
    })
}

/// Parses one message in a provider's format.
pub(crate) fn message(json: &str, form: WireFormat) -> Result<Message, JsValue> {
    // The formats crate parses into a conversation; a temporary one yields the message.
    let mut one = core::Conversation::new();
    context_window_formats::push_json(&mut one, json, form).map_err(|error| placed(&error))?;
    match one.messages() {
        [message] => Ok(message.clone()),
        several => Err(input(format!("messages: expected one message, found {}", several.len()))),
    }
}

/// Returns a body as JSON.
pub(crate) fn body_json(body: Body<'_>) -> serde_json::Value {
    // A body is plain data with string keys, so serialization cannot fail.
    serde_json::to_value(body).unwrap_or_default()
}

/// Renders messages as a provider's request body.
pub(crate) fn rendered(messages: Vec<Message>, form: WireFormat) -> serde_json::Value {
    body_json(render::body(&Prompt::from(messages), form))
}

/// Returns the messages of a body. Wire formats use different keys for them.
pub(crate) fn messages_of(mut body: serde_json::Value) -> serde_json::Value {
    ["messages", "input", "contents"]
        .iter()
        .find_map(|key| body.get_mut(*key).map(serde_json::Value::take))
        .unwrap_or_default()
}
