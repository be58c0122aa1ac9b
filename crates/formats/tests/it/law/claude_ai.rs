//! Exports of Claude.ai: a list with one conversation, a conversation, and an older one in which calls have
//! no ids.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

const ROOT: &str = "00000000-0000-4000-8000-000000000000";

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::ClaudeAi;
    let keeps = Keeps { system: false, images: false, ..ALL };
    vec![
        Shape {
            name: "claude-ai-list",
            format,
            write: |events| json!([conversation(events, true)]).to_string(),
            keeps,
        },
        Shape {
            name: "claude-ai",
            format,
            write: |events| {
                let mut chat = conversation(events, true);
                let last = chat["chat_messages"].as_array().unwrap().last().unwrap()["uuid"].clone();
                chat["current_leaf_message_uuid"] = last;
                chat.to_string()
            },
            keeps,
        },
        Shape {
            name: "claude-ai-idless",
            format,
            write: |events| conversation(events, false).to_string(),
            keeps: Keeps { ids: false, ..keeps },
        },
    ]
}

fn conversation(events: &[Event], has_ids: bool) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for event in events {
        let (sender, blocks) = match event {
            Event::System(_) => continue,
            Event::User { text, .. } => {
                ("human", vec![json!({ "type": "text", "text": text, "citations": [] })])
            }
            Event::Assistant { thought, text, calls } => {
                let thought = thought.iter().map(
                    |text| json!({ "type": "thinking", "thinking": text, "summaries": [], "cut_off": false }),
                );
                let said = text.iter().map(|text| json!({ "type": "text", "text": text, "citations": [] }));
                let calls = calls.iter().map(|call| {
                    let mut block = json!({ "type": "tool_use", "name": call.name, "input": call.arguments });
                    if has_ids {
                        block["id"] = json!(call.id);
                    }
                    block
                });
                ("assistant", thought.chain(said).chain(calls).collect())
            }
            Event::Result { call, text, is_failed } => {
                let content = json!([{ "type": "text", "text": text, "uuid": "u" }]);
                let mut block = json!({ "type": "tool_result", "name": call.name, "content": content,
                    "is_error": is_failed });
                if has_ids {
                    block["tool_use_id"] = json!(call.id);
                }
                ("assistant", vec![block])
            }
        };
        match messages.last_mut() {
            Some((before, all)) if *before == sender && sender == "assistant" => all.extend(blocks),
            _ => messages.push((sender, blocks)),
        }
    }
    let message = |(at, (sender, content)): (usize, (&str, Vec<Value>))| {
        let parent = if at == 0 { ROOT.to_owned() } else { format!("u{}", at - 1) };
        json!({ "uuid": format!("u{at}"), "text": "", "content": content, "sender": sender, "index": at,
            "created_at": "2026-11-01T10:00:00Z", "attachments": [], "files": [], "parent_message_uuid": parent })
    };
    let messages: Vec<Value> = messages.into_iter().enumerate().map(message).collect();
    json!({ "uuid": "c1", "name": "A chat about boats", "created_at": "2026-11-01T10:00:00Z",
        "account": { "uuid": "a" }, "chat_messages": messages })
}
