//! Request bodies of providers, as session files.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Session;
    // OpenAI's format cannot express a failed call.
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
        Shape { name: "responses", format, write: responses, keeps: Keeps { failures: false, ..ALL } },
        Shape { name: "gemini", format, write: gemini, keeps: Keeps { failures: false, ..ALL } },
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

/// Returns the messages of Anthropic without system texts: the role and the blocks of each.
pub fn blocks(events: &[Event]) -> Vec<(&'static str, Vec<Value>)> {
    let mut messages = Vec::new();
    for event in events {
        messages.push(match event {
            Event::System(_) => continue,
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
                    thought.as_ref().map(|text| json!({ "type": "thinking", "thinking": text, "signature": "c2ln" })),
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
        });
    }
    messages
}

/// Returns the first system text.
fn system(events: &[Event]) -> Option<&str> {
    events.iter().find_map(|event| match event {
        Event::System(text) => Some(text.as_str()),
        _ => None,
    })
}

fn anthropic(events: &[Event]) -> String {
    let messages =
        blocks(events).into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks }));
    let mut body = json!({ "model": "claude-sonnet-4-5", "messages": messages.collect::<Vec<_>>() });
    if let Some(system) = system(events) {
        body["system"] = json!(system);
    }
    body.to_string()
}

fn responses(events: &[Event]) -> String {
    let mut body = json!({ "model": "gpt-5", "input": super::openai_agents::items(events) });
    if let Some(system) = system(events) {
        body["instructions"] = json!(system);
    }
    body.to_string()
}

fn gemini(events: &[Event]) -> String {
    let mut contents = Vec::new();
    for event in events {
        let (role, parts) = match event {
            Event::System(_) => continue,
            Event::User { text, image } => {
                let image = image
                    .as_ref()
                    .map(|data| json!({ "inlineData": { "mimeType": "image/png", "data": data } }));
                ("user", [json!({ "text": text })].into_iter().chain(image).collect::<Vec<_>>())
            }
            Event::Assistant { thought, text, calls } => {
                let thought = thought.iter().map(|text| json!({ "text": text, "thought": true }));
                let text = text.iter().map(|text| json!({ "text": text }));
                let calls = calls.iter().map(
                    |call| json!({ "functionCall": { "id": call.id, "name": call.name, "args": call.arguments } }),
                );
                ("model", thought.chain(text).chain(calls).collect())
            }
            Event::Result { call, text, .. } => {
                let response = json!({ "id": call.id, "name": call.name, "response": { "output": text } });
                ("user", vec![json!({ "functionResponse": response })])
            }
        };
        contents.push(json!({ "role": role, "parts": parts }));
    }
    let mut body = json!({ "contents": contents });
    if let Some(system) = system(events) {
        body["systemInstruction"] = json!({ "parts": [{ "text": system }] });
    }
    body.to_string()
}
