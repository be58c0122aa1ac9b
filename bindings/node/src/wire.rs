//! Messages and request bodies in the formats of providers.

use crate::{error::input, json};
use context_window::{Message, WireFormat};
pub(crate) use context_window_bindings::{body_json, messages_of, rendered};
use wasm_bindgen::prelude::*;

/// Returns the wire format with this name, `openai` by default.
pub(crate) fn wire_format(name: Option<&str>) -> Result<WireFormat, JsValue> {
    context_window_bindings::wire_format(name.unwrap_or("openai")).map_err(input)
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

/// Returns an error about messages.
pub(crate) fn placed(error: &context_window_formats::Error) -> JsValue {
    input(context_window_bindings::placed_text(error))
}

/// Reads one message in a provider's format. `name` names it in errors.
pub(crate) fn message(json: &str, form: WireFormat, name: &str) -> Result<Message, JsValue> {
    context_window_bindings::read_message(json, form).map_err(|detail| input(format!("{name}: {detail}")))
}
