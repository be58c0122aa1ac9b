//! Messages of Pydantic AI (pydantic-ai-slim 0.1 and 2.68), as `ModelMessagesTypeAdapter` dumps them.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let keeps = Keeps { late_system: true, ..ALL };
    let shape = |name, write| Shape { name, format: FileFormat::PydanticAi, write, keeps };
    vec![
        shape("pydantic-ai", |events| Value::from(messages(events)).to_string()),
        shape("pydantic-ai-lines", |events| {
            messages(events).iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
        }),
    ]
}

fn messages(events: &[Event]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for event in events {
        let (kind, parts): (_, Vec<Value>) = match event {
            Event::System(text) => (
                "request",
                vec![json!({ "content": text, "timestamp": "2026-11-01T10:00:00Z",
                "dynamic_ref": null, "scope": "conversation", "part_kind": "system-prompt" })],
            ),
            Event::User { text, image: None } => {
                ("request", vec![json!({ "content": text, "part_kind": "user-prompt" })])
            }
            Event::User { text, image: Some(image) } => (
                "request",
                vec![json!({ "content": [text,
                { "data": image, "media_type": "image/png", "vendor_metadata": null, "kind": "binary", "identifier": "4a5eb7" }],
                "part_kind": "user-prompt" })],
            ),
            Event::Assistant { thought, text, calls } => {
                let thought = thought.iter().map(|text| {
                    json!({ "content": text, "id": null, "signature": "c2ln", "provider_name": "anthropic", "part_kind": "thinking" })
                });
                let text = text.iter().map(|text| json!({ "content": text, "part_kind": "text" }));
                let call = |call: &Called| json!({ "tool_name": call.name, "args": call.arguments, "tool_call_id": call.id, "part_kind": "tool-call" });
                ("response", thought.chain(text).chain(calls.iter().map(call)).collect())
            }
            Event::Result { call, text, is_failed } => (
                "request",
                vec![json!({ "tool_name": call.name, "content": text,
                "tool_call_id": call.id, "metadata": null, "outcome": if *is_failed { "failed" } else { "success" },
                "part_kind": "tool-return" })],
            ),
        };
        // Parts of one request are in one message.
        match all.last_mut().filter(|last| kind == "request" && last["kind"] == "request") {
            Some(last) => last["parts"].as_array_mut().unwrap().extend(parts),
            None if kind == "request" => {
                all.push(json!({ "parts": parts, "instructions": null, "kind": kind, "run_id": null, "state": "complete" }));
            }
            None => all.push(json!({ "parts": parts, "usage": {}, "model_name": "gpt-4o", "kind": kind })),
        }
    }
    all
}
