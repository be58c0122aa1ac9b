//! Exports of opencode.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::Opencode;
    vec![
        Shape { name: "opencode", format, write: export, keeps: ALL },
        Shape {
            name: "opencode-list",
            format,
            write: |events| Value::from(messages(events)).to_string(),
            keeps: Keeps { images: false, ..ALL },
        },
    ]
}

fn export(events: &[Event]) -> String {
    let info = json!({ "id": "ses_1", "slug": "s", "projectID": "p", "directory": "/boats", "title": "A chat about boats",
        "version": "1.19.3", "time": { "created": 1, "updated": 2 } });
    json!({ "info": info, "messages": messages(events) }).to_string()
}

fn messages(events: &[Event]) -> Vec<Value> {
    let mut system = Value::Null;
    let mut messages: Vec<Value> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let part = |nth: usize, mut part: Value| {
            part["id"] = json!(format!("prt_{at}_{nth}"));
            part["sessionID"] = json!("ses_1");
            part["messageID"] = json!(format!("msg_{at}"));
            part
        };
        match event {
            Event::System(text) => system = json!(text),
            Event::User { text, image } => {
                let mut info = json!({ "id": format!("msg_{at}"), "sessionID": "ses_1", "role": "user",
                    "time": { "created": at }, "agent": "build",
                    "model": { "providerID": "anthropic", "modelID": "claude-sonnet-4-5" } });
                if !system.is_null() {
                    info["system"] = system.take();
                }
                let mut parts = vec![part(0, json!({ "type": "text", "text": text }))];
                parts.extend(image.as_ref().map(|data| {
                    let url = format!("data:image/png;base64,{data}");
                    part(1, json!({ "type": "file", "mime": "image/png", "filename": "a.png", "url": url }))
                }));
                messages.push(json!({ "info": info, "parts": parts }));
            }
            Event::Assistant { thought, text, calls } => {
                let info = json!({ "id": format!("msg_{at}"), "sessionID": "ses_1", "role": "assistant",
                    "time": { "created": at }, "parentID": "msg_0", "modelID": "claude-sonnet-4-5",
                    "providerID": "anthropic", "mode": "build", "agent": "build", "cost": 0.1,
                    "path": { "cwd": "/boats", "root": "/" }, "finish": "stop" });
                let mut parts = vec![part(0, json!({ "type": "step-start" }))];
                parts.extend(thought.as_ref().map(|text| {
                    part(
                        1,
                        json!({ "type": "reasoning", "text": text, "time": { "start": 1, "end": 2 },
                        "metadata": { "anthropic": { "signature": "c2ln" } } }),
                    )
                }));
                parts.extend(text.as_ref().map(|text| part(2, json!({ "type": "text", "text": text }))));
                parts.extend(calls.iter().enumerate().map(|(nth, call)| {
                    part(
                        3 + nth,
                        json!({ "type": "tool", "callID": call.id, "tool": call.name,
                        "state": { "status": "running", "input": call.arguments, "time": { "start": 1 } } }),
                    )
                }));
                parts.push(part(
                    9,
                    json!({ "type": "step-finish", "reason": "stop", "cost": 0.1, "tokens": {} }),
                ));
                messages.push(json!({ "info": info, "parts": parts }));
            }
            Event::Result { call, text, is_failed } => {
                let parts = messages.last_mut().unwrap()["parts"].as_array_mut().unwrap();
                let own = parts.iter_mut().find(|part| part["callID"] == call.id).unwrap();
                let time = json!({ "start": 1, "end": 2 });
                own["state"] = match is_failed {
                    true => {
                        json!({ "status": "error", "input": call.arguments, "error": text, "time": time })
                    }
                    false => {
                        json!({ "status": "completed", "input": call.arguments, "output": text, "title": "t",
                        "metadata": {}, "time": time })
                    }
                };
            }
        }
    }
    messages
}
