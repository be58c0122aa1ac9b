//! Roo Code's `api_conversation_history.json`.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Roo;
    let keeps = Keeps { system: false, ..ALL };
    vec![
        Shape {
            name: "roo",
            format,
            write: |events| Value::from(messages(events, false)).to_string(),
            keeps,
        },
        // Reasoning of other providers is stored in blocks that Anthropic does not have.
        Shape {
            name: "roo-reasoning",
            format,
            write: |events| Value::from(messages(events, true)).to_string(),
            keeps,
        },
    ]
}

pub fn messages(events: &[Event], is_of_others: bool) -> Vec<Value> {
    let message = |(at, event): (usize, &Event)| {
        let (role, content) = match event {
            Event::System(_) => ("user", vec![]),
            Event::User { text, image } => {
                let image = image.as_ref().map(|data| {
                    json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } })
                });
                ("user", [json!({ "type": "text", "text": text })].into_iter().chain(image).collect())
            }
            Event::Assistant { thought, text, calls } => {
                let thought = thought.iter().map(|text| match is_of_others {
                    true => json!({ "type": "reasoning", "text": text, "summary": [] }),
                    false => json!({ "type": "thinking", "thinking": text, "signature": "c2ln" }),
                });
                let said = text.iter().map(|text| json!({ "type": "text", "text": text }));
                let calls = calls.iter().map(
                    |call| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments }),
                );
                ("assistant", thought.chain(said).chain(calls).collect())
            }
            Event::Result { call, text, is_failed } => {
                let mut block = json!({ "type": "tool_result", "tool_use_id": call.id, "content": text });
                if *is_failed {
                    block["is_error"] = json!(true);
                    block["content"] = json!([{ "type": "text", "text": text }]);
                }
                ("user", vec![block])
            }
        };
        json!({ "role": role, "content": content, "ts": 1_700_000_000_000_u64 + at as u64 })
    };
    events.iter().enumerate().map(message).collect()
}
