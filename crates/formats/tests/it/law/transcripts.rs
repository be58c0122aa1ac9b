//! Transcripts of Claude Code 2.1 and Codex CLI 0.65, and `ShareGPT`.

use super::{ALL, Event, Keeps, Shape, wire};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let claude_code = Keeps { system: false, ..ALL };
    let codex = Keeps { system: false, failures: false, ..ALL };
    let sharegpt =
        Keeps { thoughts: false, images: false, failures: false, ids: false, parallel: false, ..ALL };
    vec![
        Shape { name: "claude-code", format: FileFormat::ClaudeCode, write: events, keeps: claude_code },
        Shape { name: "codex", format: FileFormat::Codex, write: rollout, keeps: codex },
        Shape { name: "sharegpt", format: FileFormat::Session, write: turns, keeps: sharegpt },
    ]
}

fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}

fn events(events: &[Event]) -> String {
    let mut lines_of = vec![
        json!({ "type": "file-history-snapshot", "messageId": "u0", "snapshot": {}, "isSnapshotUpdate": false }),
    ];
    let mut parent = Value::Null;
    for (at, (role, blocks)) in wire::blocks(events).into_iter().enumerate() {
        let uuid = format!("u{at}");
        let mut message = json!({ "role": role, "content": blocks });
        if role == "assistant" {
            message["id"] = json!(format!("msg_{at}"));
            message["model"] = json!("claude-sonnet-4-5");
        }
        lines_of.push(json!({ "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/user/boats",
            "sessionId": "s1", "version": "2.1.39", "type": role, "uuid": uuid, "timestamp": "2026-11-20T09:00:00.000Z",
            "message": message }));
        parent = json!(uuid);
    }
    lines(&lines_of)
}

fn rollout(events: &[Event]) -> String {
    let line = |kind: &str, payload: Value| json!({ "timestamp": "2026-11-20T10:00:00.000Z", "type": kind, "payload": payload });
    let mut all = vec![
        line("session_meta", json!({ "id": "s1", "cwd": "/home/user/boats", "cli_version": "0.65.0" })),
        line("turn_context", json!({ "cwd": "/home/user/boats", "model": "gpt-5-codex" })),
    ];
    let items = super::openai_agents::items(events).into_iter().map(|mut item| {
        if item.get("type").is_none() {
            item["type"] = json!("message");
        }
        item
    });
    all.extend(items.map(|item| line("response_item", item)));
    lines(&all)
}

fn turns(events: &[Event]) -> String {
    let turn = |from: &str, value: &str| json!({ "from": from, "value": value });
    let mut conversation = json!({ "id": "t1" });
    let mut all = Vec::new();
    for event in events {
        match event {
            Event::System(text) => conversation["system"] = json!(text),
            Event::User { text, .. } => all.push(turn("human", text)),
            Event::Assistant { text, calls, .. } => {
                all.extend(text.iter().map(|text| turn("gpt", text)));
                all.extend(calls.iter().map(|call| {
                    turn(
                        "function_call",
                        &json!({ "name": call.name, "arguments": call.arguments }).to_string(),
                    )
                }));
            }
            Event::Result { text, .. } => all.push(turn("observation", text)),
        }
    }
    conversation["conversations"] = all.into();
    conversation.to_string()
}
