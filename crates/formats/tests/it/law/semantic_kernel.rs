//! Chat histories of Semantic Kernel: Python 1.45 (`serialize()`), and C# as `JsonSerializer` writes them.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let keeps = Keeps { late_system: true, failures: false, ..ALL };
    let shape = |name, write| Shape { name, format: FileFormat::SemanticKernel, write, keeps };
    vec![
        shape("semantic-kernel", |events| {
            json!({ "messages": events.iter().map(python).collect::<Vec<_>>() }).to_string()
        }),
        shape("semantic-kernel-csharp", |events| {
            Value::from(events.iter().map(csharp).collect::<Vec<_>>()).to_string()
        }),
        shape("semantic-kernel-web", |events| {
            Value::from(events.iter().map(|event| camel(csharp(event))).collect::<Vec<_>>()).to_string()
        }),
    ]
}

fn python(event: &Event) -> Value {
    let text = |text: &String| json!({ "metadata": {}, "content_type": "text", "text": text });
    let (role, items): (_, Vec<Value>) = match event {
        Event::System(said) => ("system", vec![text(said)]),
        Event::User { text: said, image } => {
            let image = image.as_ref().map(|data| {
                json!({ "metadata": {}, "content_type": "image", "data_uri": format!("data:image/png;base64,{data}") })
            });
            ("user", [text(said)].into_iter().chain(image).collect())
        }
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought
                .iter()
                .map(|text| json!({ "metadata": {}, "content_type": "reasoning", "text": text }));
            let call = |call: &Called| {
                json!({ "metadata": {}, "content_type": "function_call", "id": call.id, "name": call.name,
                    "function_name": call.name, "arguments": call.arguments.to_string() })
            };
            ("assistant", thought.chain(said.iter().map(text)).chain(calls.iter().map(call)).collect())
        }
        Event::Result { call, text, .. } => {
            let result = json!({ "metadata": {}, "content_type": "function_result", "id": call.id, "result": text,
                "name": call.name, "function_name": call.name });
            ("tool", vec![result])
        }
    };
    json!({ "metadata": {}, "content_type": "message", "role": role, "items": items })
}

fn csharp(event: &Event) -> Value {
    let text = |text: &String| json!({ "$type": "TextContent", "Text": text });
    // The model knows a plugin's function by both names.
    let name = |name: &str| {
        name.split_once('-').map_or((Value::Null, json!(name)), |(plugin, own)| (json!(plugin), json!(own)))
    };
    let (role, items): (_, Vec<Value>) = match event {
        Event::System(said) => ("system", vec![text(said)]),
        Event::User { text: said, image } => {
            let image = image
                .as_ref()
                .map(|data| json!({ "$type": "ImageContent", "MimeType": "image/png", "data": data }));
            ("user", [text(said)].into_iter().chain(image).collect())
        }
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought.iter().map(|text| json!({ "$type": "ReasoningContent", "Text": text }));
            let call = |call: &Called| {
                let (plugin, own) = name(&call.name);
                json!({ "$type": "FunctionCallContent", "Id": call.id, "PluginName": plugin, "FunctionName": own,
                    "Arguments": call.arguments })
            };
            ("assistant", thought.chain(said.iter().map(text)).chain(calls.iter().map(call)).collect())
        }
        Event::Result { call, text, .. } => {
            let (plugin, own) = name(&call.name);
            let result = json!({ "$type": "FunctionResultContent", "CallId": call.id, "PluginName": plugin,
                "FunctionName": own, "Result": text });
            ("tool", vec![result])
        }
    };
    json!({ "Role": { "Label": role }, "Items": items, "ModelId": "gpt-4o" })
}

/// Returns the same value in the spelling of ASP.NET.
fn camel(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let entry = |(key, value): (String, Value)| {
                let inner = if key == "Arguments" { value } else { camel(value) };
                (key[..1].to_lowercase() + &key[1..], inner)
            };
            Value::Object(object.into_iter().map(entry).collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(camel).collect()),
        other => other,
    }
}
