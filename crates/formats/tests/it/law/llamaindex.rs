//! Chat messages of `LlamaIndex` (llama-index-core 0.10 and 0.14), as `model_dump()`, chat stores and
//! memories return them.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let keeps = Keeps { late_system: true, ..ALL };
    let of_old = Keeps { thoughts: false, images: false, failures: false, ..keeps };
    let shape = |name, write, keeps| Shape { name, format: FileFormat::LlamaIndex, write, keeps };
    vec![
        shape("llamaindex", |events| Value::from(messages(events)).to_string(), keeps),
        shape(
            "llamaindex-old",
            |events| Value::from(events.iter().map(old).collect::<Vec<_>>()).to_string(),
            of_old,
        ),
        shape(
            "llamaindex-store",
            |events| {
                json!({ "store": { "ida": messages(events) }, "class_name": "SimpleChatStore" }).to_string()
            },
            keeps,
        ),
        shape(
            "llamaindex-memory",
            |events| {
                json!({ "chat_store": { "store": { "chat_history": messages(events) }, "class_name": "SimpleChatStore" },
                    "chat_store_key": "chat_history", "token_limit": 3000, "class_name": "ChatMemoryBuffer" })
                .to_string()
            },
            keeps,
        ),
        shape(
            "llamaindex-lines",
            |events| messages(events).iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
            keeps,
        ),
    ]
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
                let beside = json!({ "tool_calls": calls.iter().map(by_openai).collect::<Vec<_>>() });
                ("assistant", beside, thought.chain(said).chain(calls.iter().map(call)).collect())
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

fn by_openai(call: &Called) -> Value {
    json!({ "id": call.id, "type": "function",
        "function": { "name": call.name, "arguments": call.arguments.to_string() } })
}

fn old(event: &Event) -> Value {
    let (role, content, beside) = match event {
        Event::System(text) => ("system", json!(text), json!({})),
        Event::User { text, .. } => ("user", json!(text), json!({})),
        Event::Assistant { text, calls, .. } => {
            let calls: Vec<Value> = calls.iter().map(by_openai).collect();
            ("assistant", json!(text), json!({ "tool_calls": calls }))
        }
        Event::Result { call, text, .. } => {
            ("tool", json!(text), json!({ "name": call.name, "tool_call_id": call.id }))
        }
    };
    json!({ "role": role, "content": content, "additional_kwargs": beside })
}
