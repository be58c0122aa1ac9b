//! Amazon Bedrock's Converse (botocore 1.44.8).

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Bedrock;
    let log = |events: &[Event]| {
        json!({ "schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "timestamp": "2026-11-20T09:00:00Z",
            "accountId": "123456789012", "region": "us-east-1", "requestId": "a1", "operation": "Converse",
            "modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "input": { "inputContentType": "application/json", "inputBodyJson": body(events), "inputTokenCount": 9 },
            "output": { "outputContentType": "application/json", "outputTokenCount": 0 } })
        .to_string()
    };
    let no_system = Keeps { system: false, ..ALL };
    vec![
        Shape { name: "bedrock", format, write: |events| body(events).to_string(), keeps: ALL },
        Shape {
            name: "bedrock-list",
            format,
            write: |events| body(events)["messages"].to_string(),
            keeps: no_system,
        },
        Shape { name: "bedrock-log", format, write: log, keeps: ALL },
    ]
}

fn body(events: &[Event]) -> Value {
    let mut system = Vec::new();
    let mut messages: Vec<Value> = Vec::new();
    for event in events {
        let (role, blocks) = match event {
            Event::System(text) => {
                system.push(json!({ "text": text }));
                continue;
            }
            Event::User { text, image } => {
                let image = image
                    .iter()
                    .map(|data| json!({ "image": { "format": "png", "source": { "bytes": data } } }));
                ("user", [json!({ "text": text })].into_iter().chain(image).collect::<Vec<_>>())
            }
            Event::Assistant { thought, text, calls } => {
                let thought = thought.iter().map(|text| {
                    json!({ "reasoningContent": { "reasoningText": { "text": text, "signature": "c2ln" } } })
                });
                let text = text.iter().map(|text| json!({ "text": text }));
                let calls = calls.iter().map(|call| {
                    json!({ "toolUse": { "toolUseId": call.id, "name": call.name, "input": call.arguments } })
                });
                ("assistant", thought.chain(text).chain(calls).collect())
            }
            Event::Result { call, text, is_failed } => {
                let status = if *is_failed { "error" } else { "success" };
                let block = json!({ "toolResult": { "toolUseId": call.id, "content": [{ "text": text }], "status": status } });
                // The results for one message of calls are in one user message.
                if let Some(last) =
                    messages.last_mut().filter(|last| last["content"][0].get("toolResult").is_some())
                {
                    last["content"].as_array_mut().unwrap().push(block);
                    continue;
                }
                ("user", vec![block])
            }
        };
        messages.push(json!({ "role": role, "content": blocks }));
    }
    let tool = json!({ "toolSpec": { "name": "tide", "description": "The tide.",
        "inputSchema": { "json": { "type": "object" } } } });
    let mut body = json!({ "messages": messages, "inferenceConfig": { "maxTokens": 500 }, "toolConfig": { "tools": [tool] } });
    if !system.is_empty() {
        body["system"] = json!(system);
    }
    body
}
