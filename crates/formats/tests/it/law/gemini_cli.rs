//! Gemini CLI: checkpoints, and sessions as one object and as lines.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::GeminiCli;
    let keeps = Keeps { system: false, failures: false, ..ALL };
    let shape = |name, write| Shape { name, format, write, keeps };
    vec![
        shape("gemini-cli-list", |events| Value::from(contents(events)).to_string()),
        shape("gemini-cli", |events| {
            json!({ "history": contents(events), "authType": "oauth-personal" }).to_string()
        }),
        shape("gemini-cli-session", session),
        shape("gemini-cli-lines", lines),
    ]
}

fn data(image: &str) -> Value {
    json!({ "inlineData": { "mimeType": "image/png", "data": image } })
}

fn response(call: &super::Called, text: &str) -> Value {
    json!({ "functionResponse": { "id": call.id, "name": call.name, "response": { "output": text } } })
}

fn contents(events: &[Event]) -> Vec<Value> {
    let content = |event: &Event| {
        let (role, parts) = match event {
            Event::System(_) => ("user", vec![]),
            Event::User { text, image } => (
                "user",
                [json!({ "text": text })].into_iter().chain(image.iter().map(|image| data(image))).collect(),
            ),
            Event::Assistant { thought, text, calls } => {
                let thought = thought.iter().map(|text| json!({ "text": text, "thought": true }));
                let said = text.iter().map(|text| json!({ "text": text }));
                let calls = calls.iter().map(
                    |call| json!({ "functionCall": { "id": call.id, "name": call.name, "args": call.arguments } }),
                );
                ("model", thought.chain(said).chain(calls).collect::<Vec<_>>())
            }
            Event::Result { call, text, .. } => ("user", vec![response(call, text)]),
        };
        json!({ "role": role, "parts": parts })
    };
    events.iter().map(content).collect()
}

fn header() -> Value {
    json!({ "sessionId": "s1", "projectHash": "p", "startTime": "2026-11-01T10:00:00Z", "lastUpdated": "x" })
}

fn session(events: &[Event]) -> String {
    let mut session = header();
    session["messages"] = records(events).into();
    session.to_string()
}

fn lines(events: &[Event]) -> String {
    let records = records(events);
    // A message is written again when its calls are done.
    let again = records.last().cloned();
    let all =
        [header()].into_iter().chain(records).chain(again).chain([json!({ "$set": { "lastUpdated": "y" } })]);
    all.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
}

fn records(events: &[Event]) -> Vec<Value> {
    let mut records: Vec<Value> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let about =
            |kind: &str| json!({ "id": format!("r{at}"), "timestamp": "2026-11-01T10:00:00Z", "type": kind });
        let mut record = match event {
            Event::System(_) => continue,
            Event::Result { call, text, .. } => {
                let calls = records.last_mut().unwrap()["toolCalls"].as_array_mut().unwrap();
                let own = calls.iter_mut().find(|own| own["id"] == call.id).unwrap();
                own["result"] = json!([response(call, text)]);
                continue;
            }
            Event::User { .. } => about("user"),
            Event::Assistant { .. } => about("gemini"),
        };
        match event {
            Event::User { text, image: None } => record["content"] = json!(text),
            Event::User { text, image: Some(image) } => {
                record["content"] = json!([{ "text": text }, data(image)])
            }
            Event::Assistant { thought, text, calls } => {
                record["content"] = json!(text.clone().unwrap_or_default());
                let thought = thought
                    .iter()
                    .map(|text| json!({ "subject": "", "description": text, "timestamp": "x" }));
                record["thoughts"] = thought.collect();
                record["model"] = json!("gemini-2.5-pro");
                let call = |call: &super::Called| {
                    json!({ "id": call.id, "name": call.name, "args": call.arguments, "status": "success",
                        "timestamp": "x", "displayName": "Free boats of a day", "renderOutputAsMarkdown": false })
                };
                record["toolCalls"] = calls.iter().map(call).collect();
            }
            _ => {}
        }
        records.push(record);
    }
    records
}
