//! Items of the `OpenAI` Agents SDK 0.6, as `to_input_list()` gives them.

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
    ]
}

fn items(events: &[Event]) -> Vec<Value> {
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
