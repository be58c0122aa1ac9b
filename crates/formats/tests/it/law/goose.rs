//! Sessions of goose: an export, and the older JSON lines.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Goose;
    let keeps = Keeps { system: false, ..ALL };
    // Older results cannot express a failure with content.
    let old = Keeps { failures: false, ..keeps };
    vec![
        Shape { name: "goose", format, write: export, keeps },
        Shape { name: "goose-lines", format, write: lines, keeps: old },
    ]
}

fn export(events: &[Event]) -> String {
    json!({
        "id": "20261101_1", "working_dir": "/boats", "name": "A chat about boats", "session_type": "user",
        "created_at": "2026-11-01T10:00:00Z", "extension_data": {}, "conversation": messages(events, false),
        "message_count": events.len(), "provider_name": "anthropic",
        "model_config": { "model_name": "claude-sonnet-4-5", "context_limit": 200_000 },
    })
    .to_string()
}

fn lines(events: &[Event]) -> String {
    let header = json!({ "description": "A chat about boats", "working_dir": "/boats", "message_count": events.len(),
        "total_tokens": 12 });
    let lines = [header].into_iter().chain(messages(events, true));
    lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
}

fn messages(events: &[Event], is_old: bool) -> Vec<Value> {
    let call = |call: &Called| {
        json!({ "type": "toolRequest", "id": call.id, "toolCall": { "status": "success",
            "value": { "name": call.name, "arguments": call.arguments } } })
    };
    let message = |(at, event): (usize, &Event)| {
        let (role, content) = match event {
            Event::System(_) => ("user", vec![]),
            Event::User { text, image } => {
                let image = image
                    .as_ref()
                    .map(|data| json!({ "type": "image", "data": data, "mimeType": "image/png" }));
                ("user", [json!({ "type": "text", "text": text })].into_iter().chain(image).collect())
            }
            Event::Assistant { thought, text, calls } => {
                let thought = thought
                    .iter()
                    .map(|text| json!({ "type": "thinking", "thinking": text, "signature": "c2ln" }));
                let said = text.iter().map(|text| json!({ "type": "text", "text": text }));
                ("assistant", thought.chain(said).chain(calls.iter().map(call)).collect())
            }
            Event::Result { call, text, is_failed } => {
                let content = json!([{ "type": "text", "text": text }]);
                let value =
                    if is_old { content } else { json!({ "content": content, "isError": is_failed }) };
                let result = json!({ "status": "success", "value": value });
                ("user", vec![json!({ "type": "toolResponse", "id": call.id, "toolResult": result })])
            }
        };
        let mut message =
            json!({ "id": format!("m_{at}"), "role": role, "created": 1000 + at, "content": content });
        if is_old {
            message["id"] = Value::Null;
        } else {
            message["metadata"] = json!({ "userVisible": true, "agentVisible": true });
        }
        message
    };
    events.iter().enumerate().map(message).collect()
}
