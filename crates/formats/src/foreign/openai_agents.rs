//! Items of the `OpenAI` Agents SDK: what `to_input_list()` returns and a session stores. They are input items of `OpenAI`
//! Responses in a list of their own, or one a line.

use super::{
    Reader,
    node::{Fault, Node, Reading},
    shape::{Shape, text},
    talk::{Step, Talk},
};
use crate::{format::FileFormat, session::responses};
use context_window::WireFormat;
use serde_json::value::RawValue;

pub(super) const READER: Reader = Reader::new(FileFormat::OpenAiAgents, fits, read);

/// Types of items that no message of another format has.
const ITEMS: [&str; 5] =
    ["function_call", "function_call_output", "custom_tool_call", "item_reference", "compaction"];

fn fits(shape: &Shape) -> bool {
    let is_item = |message: &serde_json::Value| {
        let kind = text(message, "type");
        ITEMS.contains(&kind)
            || kind == "reasoning" && message.get("summary").is_some()
            || kind.ends_with("_call") && message.get("role").is_none()
    };
    let is_message = |message: &serde_json::Value| {
        text(message, "type") == "message"
            || message.get("content").and_then(|content| content.as_array()).is_some_and(|parts| {
                parts.iter().any(|part| matches!(text(part, "type"), "input_text" | "output_text"))
            })
    };
    shape.container.is_empty()
        && shape.messages.iter().any(|message| is_item(message) || is_message(message))
        && shape.messages.iter().all(|message| message.get("role").is_some() || message.get("type").is_some())
        && !shape.messages.iter().any(|message| {
            message.get("message").is_some() || message.get("data").is_some() || message.get("ts").is_some()
        })
}

fn read(node: &Node<'_>, _: &mut Reading) -> Result<Talk, Fault> {
    let list = RawValue::from_string(node.json().to_owned()).map_err(|_| node.expected("a list of items"))?;
    let messages = responses::messages(&list)
        .map_err(|(at, detail)| Fault { path: at.map(|at| format!("[{at}]")).unwrap_or_default(), detail })?;
    let steps = messages.into_iter().map(|message| Step::Message(Box::new(message))).collect();
    Ok(Talk { wire_format: Some(WireFormat::OpenAiResponses), steps, ..Talk::default() })
}
