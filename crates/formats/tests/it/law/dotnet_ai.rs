//! Messages of `Microsoft.Extensions.AI` (dotnet/extensions of August 2026) and of the Agent Framework.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Map, Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::DotnetAi;
    let keeps = Keeps { failures: false, late_system: true, ..ALL };
    let session = |events: &[Event]| {
        json!({ "stateBag": { "InMemoryChatHistoryProvider": { "messages": messages(events) } } }).to_string()
    };
    vec![
        Shape { name: "dotnet-ai", format, write: |events| messages(events).to_string(), keeps },
        Shape {
            name: "dotnet-ai-pascal",
            format,
            write: |events| in_pascal(messages(events)).to_string(),
            keeps,
        },
        Shape { name: "agent-framework", format, write: session, keeps },
        Shape {
            name: "agent-framework-python",
            format,
            write: of_python,
            keeps: Keeps { failures: true, ..keeps },
        },
    ]
}

fn messages(events: &[Event]) -> Value {
    let text = |text: &String| json!({ "$type": "text", "text": text });
    let message = |event: &Event| match event {
        Event::System(said) => json!({ "role": "system", "contents": [text(said)] }),
        Event::User { text: said, image } => {
            let image = image
                .iter()
                .map(|data| json!({ "$type": "data", "uri": format!("data:image/png;base64,{data}") }));
            let contents: Vec<_> = [text(said)].into_iter().chain(image).collect();
            json!({ "authorName": "Fred", "role": "user", "contents": contents })
        }
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought.iter().map(|text| json!({ "$type": "reasoning", "text": text }));
            let calls = calls.iter().map(|call| {
                json!({ "$type": "functionCall", "name": call.name, "arguments": call.arguments,
                    "informationalOnly": false, "callId": call.id })
            });
            let contents: Vec<_> = thought.chain(said.iter().map(text)).chain(calls).collect();
            json!({ "role": "assistant", "contents": contents })
        }
        Event::Result { call, text, .. } => {
            json!({ "role": "tool", "contents": [{ "$type": "functionResult", "result": text, "callId": call.id }] })
        }
    };
    events.iter().map(message).collect()
}

/// Returns the value as a serialiser without options writes it: capitalised names, and nulls for absent
/// values.
fn in_pascal(value: Value) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(in_pascal).collect(),
        Value::Object(object) => {
            let mut all = Map::new();
            for (key, value) in object {
                let is_own = key == "arguments" || key == "result";
                let name = match key.split_at(1) {
                    ("$", _) => key.clone(),
                    (first, rest) => first.to_uppercase() + rest,
                };
                all.insert(name, if is_own { value } else { in_pascal(value) });
            }
            all.insert("AdditionalProperties".into(), Value::Null);
            Value::Object(all)
        }
        other => other,
    }
}

fn of_python(events: &[Event]) -> String {
    let message = |(event, mut message): (&Event, Value)| {
        message["type"] = json!("chat_message");
        if let Some(name) = message.as_object_mut().unwrap().remove("authorName") {
            message["author_name"] = name;
        }
        for content in message["contents"].as_array_mut().unwrap() {
            let object = content.as_object_mut().unwrap();
            let kind = object.remove("$type").unwrap();
            let kind = match kind.as_str().unwrap() {
                "functionCall" => "function_call",
                "functionResult" => "function_result",
                "reasoning" => "text_reasoning",
                kind => kind,
            };
            object.insert("type".into(), json!(kind));
            if let Some(id) = object.remove("callId") {
                object.insert("call_id".into(), id);
            }
            object.remove("informationalOnly");
            if let Event::Result { is_failed: true, .. } = event {
                let text = object.insert("result".into(), json!("")).unwrap();
                object.insert("exception".into(), text);
            }
        }
        message
    };
    let Value::Array(all) = messages(events) else { unreachable!("a list") };
    Value::from(events.iter().zip(all).map(message).collect::<Vec<_>>()).to_string()
}
