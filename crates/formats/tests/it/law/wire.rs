//! Request bodies of providers, as a session file holds them.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Session;
    // OpenAI says nowhere that a call failed.
    let of_openai = Keeps { failures: false, late_system: true, ..ALL };
    vec![
        Shape {
            name: "chat",
            format,
            write: |events| json!({ "messages": chat(events) }).to_string(),
            keeps: of_openai,
        },
        Shape {
            name: "chat-list",
            format,
            write: |events| Value::from(chat(events)).to_string(),
            keeps: of_openai,
        },
        Shape {
            name: "chat-lines",
            format,
            write: |events| chat(events).iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
            keeps: of_openai,
        },
        Shape { name: "anthropic", format, write: anthropic, keeps: ALL },
    ]
}

fn data(image: &str) -> String {
    format!("data:image/png;base64,{image}")
}

fn chat(events: &[Event]) -> Vec<Value> {
    let message = |event: &Event| match event {
        Event::System(text) => json!({ "role": "system", "content": text }),
        Event::User { text, image: None } => json!({ "role": "user", "content": text }),
        Event::User { text, image: Some(image) } => json!({ "role": "user", "content": [
            { "type": "text", "text": text }, { "type": "image_url", "image_url": { "url": data(image) } }] }),
        Event::Assistant { thought, text, calls } => {
            let mut message = json!({ "role": "assistant", "content": text });
            if let Some(thought) = thought {
                message["reasoning_content"] = json!(thought);
            }
            if !calls.is_empty() {
                let call = |call: &super::Called| {
                    json!({ "id": call.id, "type": "function",
                        "function": { "name": call.name, "arguments": call.arguments.to_string() } })
                };
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            message
        }
        Event::Result { call, text, .. } => {
            json!({ "role": "tool", "tool_call_id": call.id, "content": text })
        }
    };
    events.iter().map(message).collect()
}

fn anthropic(events: &[Event]) -> String {
    let mut system = Value::Null;
    let mut messages: Vec<Value> = Vec::new();
    for event in events {
        let (role, blocks) = match event {
            Event::System(text) => {
                system = json!(text);
                continue;
            }
            Event::User { text, image } => {
                let mut blocks = vec![json!({ "type": "text", "text": text })];
                blocks.extend(image.as_ref().map(|data| {
                    json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } })
                }));
                ("user", blocks)
            }
            Event::Assistant { thought, text, calls } => {
                let mut blocks = Vec::new();
                blocks.extend(
                    thought
                        .as_ref()
                        .map(|text| json!({ "type": "thinking", "thinking": text, "signature": "c2ln" })),
                );
                blocks.extend(text.as_ref().map(|text| json!({ "type": "text", "text": text })));
                blocks.extend(calls.iter().map(
                    |call| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments }),
                ));
                ("assistant", blocks)
            }
            Event::Result { call, text, is_failed } => {
                let mut block = json!({ "type": "tool_result", "tool_use_id": call.id, "content": text });
                if *is_failed {
                    block["is_error"] = json!(true);
                }
                ("user", vec![block])
            }
        };
        messages.push(json!({ "role": role, "content": blocks }));
    }
    let mut body = json!({ "model": "claude-sonnet-4-5", "messages": messages });
    if !system.is_null() {
        body["system"] = system;
    }
    body.to_string()
}
