//! Messages and request bodies in the formats of providers.

use context_window as core;
use context_window_formats as formats;
use core::{
    Message, WireFormat,
    message::Prompt,
    render::{self, Body},
};
use serde_json::Value;

/// Returns the wire format with the name that bindings use.
///
/// # Errors
///
/// Returns a description of the expected names for any other one.
pub fn wire_format(name: &str) -> Result<WireFormat, String> {
    match name {
        // Files and the tool have the longer name.
        "openai" | "openai_chat" => Ok(WireFormat::OpenAiChat),
        "openai_responses" => Ok(WireFormat::OpenAiResponses),
        "anthropic" => Ok(WireFormat::Anthropic),
        "gemini" => Ok(WireFormat::Gemini),
        other => {
            let expected = "expected openai, openai_responses, anthropic or gemini";
            Err(format!("wire format `{other}`: {expected}"))
        }
    }
}

/// Describes an error about messages. Omits the position in an intermediate JSON text that the caller has
/// never seen.
#[must_use]
pub fn placed_text(error: &formats::Error) -> String {
    let mut text = error.to_string();
    // The flags that a message names are those of the tool.
    while let Some((before, (_, after))) =
        text.split_once(" (--lenient").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
    {
        text = format!("{before}{after}");
    }
    let text = text.replace("; --lenient reads the rest)", ")");
    // The name `messages` and a place come first, then the key.
    let key = text.strip_prefix("messages:").and_then(|rest| rest.split_once(": ")).map(|(_, key)| key);
    match key {
        Some(key) if key.starts_with('[') => format!("messages{key}"),
        Some(key) => format!("messages: {key}"),
        None => text,
    }
}

/// Reads one message in a provider's format.
///
/// # Errors
///
/// Returns a description if the JSON is no message, or more than one.
pub fn read_message(json: &str, form: WireFormat) -> Result<Message, String> {
    // The formats crate reads into a conversation; a temporary one yields the message.
    let mut one = core::Conversation::new();
    formats::push_json(&mut one, json, form).map_err(|error| placed_text(&error))?;
    match one.messages() {
        [message] => Ok(message.clone()),
        several => Err(format!("expected one message, found {}", several.len())),
    }
}

/// Returns a body as JSON.
#[must_use]
pub fn body_json(body: Body<'_>) -> Value {
    // A body is plain data with string keys, so serialization cannot fail.
    serde_json::to_value(body).unwrap_or_default()
}

/// Renders messages as a provider's request body.
#[must_use]
pub fn rendered(messages: Vec<Message>, form: WireFormat) -> Value {
    body_json(render::body(&Prompt::from(messages), form))
}

/// Returns the messages of a body. Wire formats use different keys for them.
#[must_use]
pub fn messages_of(mut body: Value) -> Value {
    // A body has exactly one of them, so the order has no meaning.
    ["messages", "input", "contents"]
        .iter()
        .find_map(|key| body.get_mut(*key).map(Value::take))
        .unwrap_or_default()
}
