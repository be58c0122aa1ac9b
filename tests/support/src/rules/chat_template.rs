//! Local chat templates (vLLM, llama.cpp, LM Studio): rules 43 to 45, and 1 to 3 and 5 for the list passed to
//! them.

use super::{Target, items, openai_chat, role};
use serde_json::Value;

/// Returns all violations of
/// `{"messages": [...], "tools"?: [...], "text"?: "...", "content_markers"?: [...]}`. The messages are
/// searched for the markers, because the rendered text also contains the template's own.
pub fn check(target: &Target, body: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let list = super::required_list(&mut out, body, "messages");
    openai_chat::messages(target, list, &mut out);
    openai_chat::tools(target, body, &mut out);
    one_system(list, &mut out);
    alternates(list, &mut out);
    let fits = body.get("text").is_none_or(Value::is_string);
    need!(out, fits, "shape", "`text` is not a text");
    let markers =
        items(&body["content_markers"]).iter().filter_map(|marker| marker.as_str().map(str::to_owned));
    out.extend(control_tokens_in_content(&body["messages"], &markers.collect::<Vec<_>>()));
    out
}

/// Rule 43: only the first message is a system message.
fn one_system(list: &[Value], out: &mut Vec<String>) {
    for (at, message) in list.iter().enumerate().skip(1) {
        need!(out, !is_system(message), 43, "message {at} is a system message");
    }
}

fn is_system(message: &Value) -> bool {
    matches!(role(message), "system" | "developer")
}

/// Rule 44: user and assistant alternate, the user begins, and the assistant is next. A call, its results and
/// the assistant after them are one turn. Rule 1 checks the calls of tool messages.
fn alternates(list: &[Value], out: &mut Vec<String>) {
    let (mut speaker, mut calls, mut answered) = ("", false, false);
    for (at, message) in list.iter().enumerate().filter(|(_, message)| !is_system(message)) {
        let now = role(message);
        let fits = match now {
            "user" => speaker != "user",
            "assistant" => speaker == "user" || calls && answered,
            _ => !speaker.is_empty(),
        };
        need!(out, fits, 44, "message {at} of role `{now}` does not follow `{speaker}`");
        if now == "tool" {
            answered = true;
        } else {
            (speaker, calls, answered) = (now, !items(&message["tool_calls"]).is_empty(), false);
        }
    }
    let ends = list.last().is_none_or(|message| matches!(role(message), "user" | "tool"));
    need!(out, ends, 44, "the last message is not the user's or a tool's");
}

/// Rule 45: content contains nothing that becomes a control token, flagged as special or not. All texts of a
/// message that a template can print are searched, and adjacent parts together as well, since templates join
/// them.
pub fn control_tokens_in_content(messages: &Value, markers: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for (at, message) in items(messages).iter().enumerate() {
        let mut texts = Vec::new();
        printed(message, &mut texts);
        let parts = items(&message["content"]).iter().filter_map(|part| part["text"].as_str());
        texts.push(parts.collect());
        for marker in markers.iter().filter(|marker| !marker.is_empty()) {
            let found = texts.iter().any(|text| text.contains(marker.as_str()));
            need!(out, !found, 45, "message {at} holds the control token `{marker}`");
        }
    }
    out
}

/// Collects all texts in a message except its role and types. The names of arguments count, pictures do not.
fn printed(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| printed(item, texts)),
        Value::Object(fields) => {
            for (key, field) in fields {
                texts.push(key.clone());
                if !["role", "type", "image_url"].contains(&key.as_str()) {
                    printed(field, texts);
                }
            }
        }
        _ => {}
    }
}
