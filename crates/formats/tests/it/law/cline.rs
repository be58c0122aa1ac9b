//! Cline's `api_conversation_history.json`, and the messages of its newer sessions.

use super::{ALL, Event, Keeps, Shape, roo};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Cline;
    // A conversation with only user messages is also valid for Roo Code.
    vec![
        Shape { name: "cline", format, write: list, keeps: Keeps { system: false, ..ALL } },
        Shape { name: "cline-session", format, write: session, keeps: ALL },
    ]
}

fn list(events: &[Event]) -> String {
    let mut messages = roo::messages(events, false);
    for message in &mut messages {
        if message["role"] == "assistant" {
            message["modelInfo"] =
                json!({ "modelId": "claude-sonnet-4-5", "providerId": "anthropic", "mode": "act" });
            message["metrics"] = json!({ "tokens": { "prompt": 5, "completion": 2 }, "cost": 0.1 });
        }
    }
    Value::from(messages).to_string()
}

fn session(events: &[Event]) -> String {
    let mut system = Value::Null;
    let mut said = Vec::new();
    for event in events {
        match event {
            Event::System(text) => system = json!(text),
            event => said.push(event.clone()),
        }
    }
    let mut messages = roo::messages(&said, false);
    let mut names = std::collections::BTreeMap::new();
    for (at, message) in messages.iter_mut().enumerate() {
        message["id"] = json!(format!("msg_{at}"));
        for block in message["content"].as_array_mut().unwrap() {
            if block["type"] == "tool_use" {
                names.insert(block["id"].to_string(), block["name"].clone());
            }
            if block["type"] == "tool_result" {
                block["name"] = names[&block["tool_use_id"].to_string()].clone();
            }
            if block["type"] == "image" {
                *block =
                    json!({ "type": "image", "data": block["source"]["data"], "mediaType": "image/png" });
            }
        }
    }
    let mut session = json!({ "version": 1, "updated_at": "2026-07-15T05:42:04.818Z", "agent": "lead",
        "sessionId": "1784_r", "messages": messages });
    if !system.is_null() {
        session["system_prompt"] = system;
    }
    session.to_string()
}
