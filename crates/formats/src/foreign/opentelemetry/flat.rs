//! Messages spread over many attributes, as `OpenLLMetry` (`gen_ai.prompt.0.content`) and `OpenInference`
//! (`llm.input_messages.0.message.content`) write them.

use super::{Fault, Reading, Span, events, messages};
use crate::foreign::node::{Fields, Node};
use context_window::{Role, Tool};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Reads the messages and tools of such attributes.
pub(super) fn read(fields: &Fields<'_>, span: &mut Span, reading: &mut Reading) -> Result<(), Fault> {
    let path = fields.node().path();
    let all = [
        ("gen_ai.prompt.", Role::User),
        ("llm.input_messages.", Role::User),
        ("gen_ai.completion.", Role::Assistant),
        ("llm.output_messages.", Role::Assistant),
    ];
    for (prefix, role) in all {
        // Attributes come in any order; the map sorts the messages by their indexes.
        let mut numbered: BTreeMap<usize, Map<String, Value>> = BTreeMap::new();
        for (key, node) in fields.with_prefix(prefix) {
            let unknown = || node.fault("is not a known key of a message");
            let (index, rest) = key.split_once('.').ok_or_else(unknown)?;
            let index = index.parse().map_err(|_| unknown())?;
            set(numbered.entry(index).or_default(), rest, &node)?;
        }
        let is_reply = role == Role::Assistant;
        let others = numbered.len().saturating_sub(1);
        if is_reply && others > 0 {
            reading.note(format!("{others} other choices of one reply are left out"));
        }
        // Only the first choice of a reply continues the conversation.
        let most = if is_reply { 1 } else { usize::MAX };
        for message in numbered.into_values().take(most) {
            let json = Value::Object(message).to_string();
            let node = Node::at(&json, path);
            match events::message(&node.object()?, role, reading) {
                Ok(entry) => span.entries.push(entry),
                Err(fault) => reading.leave(fault)?,
            }
        }
    }
    let mut tools: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (key, node) in fields.with_prefix("llm.request.functions.") {
        if let Some((index, name)) = key.split_once('.') {
            tools.entry(index.to_owned()).or_default().insert(name.to_owned(), json!(node.text_or_json()));
        }
    }
    for (key, node) in fields.with_prefix("llm.tools.") {
        if let Some((_, "tool.json_schema")) = key.split_once('.') {
            let list = format!("[{}]", node.text_or_json());
            span.tools.extend(messages::tools(&Node::at(&list, node.path()), reading)?);
        }
    }
    for tool in tools.into_values() {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        span.tools.push(Tool::new(text("name"), text("description"), text("parameters")));
    }
    Ok(())
}

/// Sets the field of a message from one attribute.
fn set(message: &mut Map<String, Value>, key: &str, node: &Node<'_>) -> Result<(), Fault> {
    let is_step = |step: &&str| !matches!(*step, "message" | "tool_call" | "function" | "message_content");
    let steps: Vec<&str> = key.split('.').filter(is_step).collect();
    let value: Value = serde_json::from_str(node.json()).unwrap_or_default();
    match steps.as_slice() {
        [key] => drop(message.insert((*key).to_owned(), value)),
        ["tool_calls", index, key] => {
            let call = element(message, "tool_calls", index, node)?;
            call.insert((*key).to_owned(), value);
            call.entry("arguments").or_insert_with(|| json!("{}"));
        }
        ["contents", index, "image", ..] => {
            let part = element(message, "content", index, node)?;
            part.insert("type".into(), json!("image_url"));
            part.insert("image_url".into(), json!({ "url": value }));
        }
        ["contents", index, "type"] => {
            let part = element(message, "content", index, node)?;
            part.entry("type").or_insert(value);
        }
        ["contents", index, key] => {
            drop(element(message, "content", index, node)?.insert((*key).to_owned(), value));
        }
        _ => return Err(node.fault("is not a known key of a message")),
    }
    Ok(())
}

/// Returns the object at an index of a list. Extends the list if needed.
fn element<'m>(
    message: &'m mut Map<String, Value>,
    list: &str,
    index: &str,
    node: &Node<'_>,
) -> Result<&'m mut Map<String, Value>, Fault> {
    // The bound keeps one attribute with a large index from filling memory.
    const MOST: usize = 10_000;
    let unknown = || node.fault("has a key without a valid index");
    let index: usize = index.parse().map_err(|_| unknown())?;
    let all = message.entry(list).or_insert_with(|| json!([])).as_array_mut().ok_or_else(unknown)?;
    if index > MOST {
        return Err(unknown());
    }
    while all.len() <= index {
        all.push(json!({}));
    }
    all[index].as_object_mut().ok_or_else(unknown)
}
