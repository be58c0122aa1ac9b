//! Messages and request bodies in the formats of providers.

use crate::{error::input, json};
use context_window as core;
use core::{
    ItemId, Message, WireFormat,
    message::Prompt,
    render::{self, Body},
};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyString},
};

/// Returns the wire format with this Python name.
pub(crate) fn wire_format(name: &str) -> PyResult<WireFormat> {
    match name {
        "openai" | "openai_chat" => Ok(WireFormat::OpenAiChat),
        "openai_responses" => Ok(WireFormat::OpenAiResponses),
        "anthropic" => Ok(WireFormat::Anthropic),
        "gemini" => Ok(WireFormat::Gemini),
        other => {
            let expected = "expected openai, openai_responses, anthropic or gemini";
            Err(input(format!("wire format `{other}`: {expected}")))
        }
    }
}

/// Converts a message or a list of messages to JSON. Dicts are used unchanged, other objects are read by
/// their attributes.
pub(crate) fn messages_json(given: &Bound<'_, PyAny>) -> PyResult<String> {
    static WIRE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // The common case of a single dict needs no Python helper.
    if let Ok(dict) = given.cast::<PyDict>()
        && dict.contains("role")?
    {
        return json::dumps(given, "messages");
    }
    // A string is iterable, so without this check it would be read as a list of messages.
    if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
        return Err(input(
            "messages: expected a dict or a list of dicts, not a str; pass {\"role\": \"user\", \"content\": ...}",
        ));
    }
    // The import is cached, because it happens for each call.
    let wire = WIRE.import(given.py(), "context_window._wire", "messages")?;
    json::dumps(&wire.call1((given,))?, "messages")
}

/// Returns an error about messages, with the text of [`placed_text`].
pub(crate) fn placed(error: &context_window_formats::Error) -> PyErr {
    input(placed_text(error))
}

/// Describes an error about messages. Omits the position in an intermediate JSON text that the caller has
/// never seen.
fn placed_text(error: &context_window_formats::Error) -> String {
    let text = error.to_string();
    let key = text.strip_prefix("messages:").and_then(|rest| rest.split_once(": ")).map(|(_, key)| key);
    match key {
        Some(key) if key.starts_with('[') => format!("messages{key}"),
        Some(key) => format!("messages: {key}"),
        None => text,
    }
}

/// Parses one message in a provider's format.
pub(crate) fn message(json: &str, form: WireFormat) -> Result<Message, String> {
    // The formats crate parses into a conversation; a temporary one yields the message.
    let mut one = core::Conversation::new();
    context_window_formats::push_json(&mut one, json, form).map_err(|error| placed_text(&error))?;
    match one.messages() {
        [message] => Ok(message.clone()),
        several => Err(format!("expected one message, found {}", several.len())),
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

/// Returns ids as strings.
pub(crate) fn texts(ids: &[ItemId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
