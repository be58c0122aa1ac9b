//! Chat messages of Haystack: 3.4 (`to_dict()`), 2.9 to 2.11, and a dump by Pydantic.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let keeps = Keeps { late_system: true, ..ALL };
    let shape = |name, write, keeps| Shape { name, format: FileFormat::Haystack, write, keeps };
    vec![
        shape("haystack", |events| Value::from(messages(events, true, true)).to_string(), keeps),
        shape(
            "haystack-no-ids",
            |events| Value::from(messages(events, true, false)).to_string(),
            Keeps { ids: false, ..keeps },
        ),
        shape(
            "haystack-2.9",
            |events| {
                Value::from(messages(events, true, true).into_iter().map(underscored).collect::<Vec<_>>())
                    .to_string()
            },
            keeps,
        ),
        shape(
            "haystack-pydantic",
            |events| {
                Value::from(messages(events, false, true).into_iter().map(underscored).collect::<Vec<_>>())
                    .to_string()
            },
            keeps,
        ),
        shape(
            "haystack-state",
            |events| {
                json!({ "serialization_schema": { "type": "object" },
                    "serialized_data": { "messages": messages(events, true, true) } })
                .to_string()
            },
            keeps,
        ),
    ]
}

fn underscored(message: Value) -> Value {
    let Value::Object(object) = message else { unreachable!() };
    object.into_iter().map(|(key, value)| (format!("_{key}"), value)).collect()
}

fn messages(events: &[Event], is_wrapped: bool, has_ids: bool) -> Vec<Value> {
    let wrap = |key: &str, part: Value| if is_wrapped { json!({ key: part }) } else { part };
    let call = |call: &Called| {
        let id = has_ids.then_some(&call.id);
        json!({ "tool_name": call.name, "arguments": call.arguments, "id": id, "extra": null })
    };
    let text = |text: &String| json!({ "text": text });
    let message = |event: &Event| {
        let (role, content): (_, Vec<Value>) = match event {
            Event::System(said) => ("system", vec![text(said)]),
            Event::User { text: said, image } => {
                let image = image.as_ref().map(|data| {
                    let image = json!({ "base64_image": data, "mime_type": "image/png", "detail": null, "meta": {},
                        "validation": true });
                    wrap("image", image)
                });
                ("user", [text(said)].into_iter().chain(image).collect())
            }
            Event::Assistant { thought, text: said, calls } => {
                let thought = thought
                    .iter()
                    .map(|text| wrap("reasoning", json!({ "reasoning_text": text, "extra": {} })));
                let calls = calls.iter().map(|own| wrap("tool_call", call(own)));
                ("assistant", thought.chain(said.iter().map(text)).chain(calls).collect())
            }
            Event::Result { call: own, text, is_failed } => {
                let result = json!({ "result": text, "origin": call(own), "error": is_failed });
                ("tool", vec![wrap("tool_call_result", result)])
            }
        };
        json!({ "role": role, "meta": {}, "name": null, "content": content })
    };
    events.iter().map(message).collect()
}
