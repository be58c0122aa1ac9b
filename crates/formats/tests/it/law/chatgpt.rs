//! Exports of `ChatGPT`: one conversation, and a list with one.

use super::{ALL, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::ChatGpt;
    let keeps = Keeps { images: false, ids: false, parallel: false, ..ALL };
    vec![
        Shape { name: "chatgpt", format, write: |events| conversation(events).to_string(), keeps },
        Shape {
            name: "chatgpt-list",
            format,
            write: |events| json!([conversation(events)]).to_string(),
            keeps,
        },
    ]
}

fn conversation(events: &[Event]) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    let mut add = |role: &str, name: Value, to: &str, content: Value| {
        let id = format!("n{}", messages.len());
        messages.push(
            json!({ "id": id, "author": { "role": role, "name": name, "metadata": {} }, "create_time": 1.0,
            "update_time": null, "content": content, "status": "finished_successfully", "end_turn": null,
            "weight": 1.0, "metadata": { "model_slug": "gpt-5" }, "recipient": to, "channel": null }),
        );
    };
    let text = |text: &str| json!({ "content_type": "text", "parts": [text] });
    for event in events {
        match event {
            Event::System(said) => {
                let content = json!({ "content_type": "user_editable_context", "user_profile": "",
                    "user_instructions": said });
                add("user", Value::Null, "all", content);
            }
            Event::User { text: said, .. } => add("user", Value::Null, "all", text(said)),
            Event::Assistant { thought, text: said, calls } => {
                if let Some(thought) = thought {
                    let thought =
                        json!({ "summary": "Thinking", "content": thought, "chunks": [], "finished": true });
                    let content = json!({ "content_type": "thoughts", "thoughts": [thought] });
                    add("assistant", Value::Null, "all", content);
                }
                if let Some(said) = said {
                    add("assistant", Value::Null, "all", text(said));
                }
                for call in calls {
                    let content = json!({ "content_type": "code", "language": "unknown", "text": call.arguments.to_string() });
                    add("assistant", Value::Null, &call.name, content);
                }
            }
            Event::Result { call, text: said, is_failed } => {
                let kind = if *is_failed { "system_error" } else { "execution_output" };
                add("tool", json!(call.name), "all", json!({ "content_type": kind, "text": said }));
            }
        }
    }
    let last = messages.len() - 1;
    let node = |(at, message): (usize, Value)| {
        let parent = if at == 0 { "root".to_owned() } else { format!("n{}", at - 1) };
        let children = if at == last { vec![] } else { vec![format!("n{}", at + 1)] };
        let id = format!("n{at}");
        (id.clone(), json!({ "id": id, "message": message, "parent": parent, "children": children }))
    };
    let mut mapping: serde_json::Map<String, Value> = messages.into_iter().enumerate().map(node).collect();
    mapping
        .insert("root".into(), json!({ "id": "root", "message": null, "parent": null, "children": ["n0"] }));
    json!({ "title": "A chat about boats", "create_time": 1.0, "update_time": 2.0, "mapping": mapping,
        "current_node": format!("n{last}"), "conversation_id": "c1", "id": "c1", "default_model_slug": "gpt-5" })
}
