//! Items of the `OpenAI` Agents SDK 0.6, as `to_input_list()` returns them.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::OpenAiAgents;
    let keeps = Keeps { system: false, failures: false, ..ALL };
    vec![
        Shape {
            name: "openai-agents",
            format,
            write: |events| Value::from(items(events)).to_string(),
            keeps,
        },
        Shape {
            name: "openai-agents-lines",
            format,
            write: |events| items(events).iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
            keeps,
        },
        Shape {
            name: "openai-agents-state",
            format,
            write: |events| {
                let item = |item: Value| json!({ "type": "message_output_item", "raw_item": item, "agent": { "name": "Desk" } });
                let mut items = items(events);
                let first = items.remove(0);
                let made: Vec<Value> = items.into_iter().map(item).collect();
                json!({ "$schemaVersion": "1.21", "current_turn": 2, "current_agent": { "name": "Desk" },
                    "original_input": [first], "generated_items": made, "pending_input": [], "max_turns": 10 })
                .to_string()
            },
            keeps,
        },
        Shape {
            name: "openai-agents-js",
            format,
            write: |events| Value::from(items(events).into_iter().map(in_js).collect::<Vec<_>>()).to_string(),
            keeps,
        },
    ]
}

/// Returns the same item in the form of the SDK for JavaScript.
fn in_js(mut item: Value) -> Value {
    let id = item.as_object_mut().unwrap().remove("call_id");
    if let Some(id) = id {
        item["callId"] = id;
    }
    if item["type"] == "function_call_output" {
        item["type"] = json!("function_call_result");
        item["output"] = json!({ "type": "text", "text": item["output"] });
        item["status"] = json!("completed");
    }
    if let Some(summary) = item.as_object_mut().unwrap().remove("summary") {
        item["content"] = json!([{ "type": "input_text", "text": summary[0]["text"] }]);
    }
    for part in item["content"].as_array_mut().into_iter().flatten() {
        if let Some(url) = part.as_object_mut().unwrap().remove("image_url") {
            part["image"] = url;
        }
    }
    item
}

pub fn items(events: &[Event]) -> Vec<Value> {
    let mut items = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::System(_) => {}
            Event::User { text, image } => {
                let mut parts = vec![json!({ "type": "input_text", "text": text })];
                parts.extend(image.as_ref().map(|data| {
                    json!({ "type": "input_image", "detail": "auto", "image_url": format!("data:image/png;base64,{data}") })
                }));
                items.push(json!({ "role": "user", "content": parts }));
            }
            Event::Assistant { thought, text, calls } => {
                items.extend(thought.as_ref().map(|text| {
                    json!({ "id": format!("rs_{at}"), "type": "reasoning",
                        "summary": [{ "type": "summary_text", "text": text }] })
                }));
                items.extend(text.as_ref().map(|text| {
                    json!({ "id": format!("msg_{at}"), "type": "message", "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }] })
                }));
                items.extend(calls.iter().map(|call| {
                    json!({ "type": "function_call", "call_id": call.id, "name": call.name, "id": format!("fc_{}", call.id),
                        "arguments": call.arguments.to_string(), "status": "completed" })
                }));
            }
            Event::Result { call, text, .. } => {
                items.push(json!({ "type": "function_call_output", "call_id": call.id, "output": text }));
            }
        }
    }
    items
}
