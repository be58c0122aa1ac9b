//! Chat messages of `LlamaIndex` (llama-index-core), as `model_dump()` gives them.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let write = |events: &[Event]| Value::from(messages(events)).to_string();
    let keeps = Keeps { late_system: true, ..ALL };
    vec![Shape { name: "llamaindex", format: FileFormat::LlamaIndex, write, keeps }]
}

fn text(text: &str) -> Value {
    json!({ "block_type": "text", "text": text })
}

fn messages(events: &[Event]) -> Vec<Value> {
    let message = |event: &Event| {
        let (role, beside, blocks) = match event {
            Event::System(said) => ("system", json!({}), vec![text(said)]),
            Event::User { text: said, image } => {
                let image = image.as_ref().map(|data| {
                    json!({ "block_type": "image", "image": data, "path": null, "url": null,
                        "image_mimetype": "image/png", "detail": null })
                });
                ("user", json!({}), [text(said)].into_iter().chain(image).collect())
            }
            Event::Assistant { thought, text: said, calls } => {
                let thought = thought.iter().map(|thought| {
                    json!({ "block_type": "thinking", "content": thought, "num_tokens": null,
                        "additional_information": {} })
                });
                let call = |call: &Called| {
                    json!({ "block_type": "tool_call", "tool_call_id": call.id, "tool_name": call.name,
                        "tool_kwargs": call.arguments })
                };
                let said = said.iter().map(|said| text(said));
                ("assistant", json!({}), thought.chain(said).chain(calls.iter().map(call)).collect())
            }
            Event::Result { call, text: said, is_failed } => {
                let beside = json!({ "tool_call_id": call.id, "name": call.name, "is_error": is_failed });
                ("tool", beside, vec![text(said)])
            }
        };
        json!({ "role": role, "additional_kwargs": beside, "blocks": blocks })
    };
    events.iter().map(message).collect()
}
