//! OpenAI Chat Completions and strict compatible servers: rules 1 to 6, and 12.

use super::{Form, Target, blank, breakpoint, filled, is_image_address, items, kind, only, role, text};
use serde_json::Value;

/// Returns all violations of `{"messages": [...], "tools"?: [...]}`.
pub fn check(target: &Target, body: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let list = super::required_list(&mut out, body, "messages");
    messages(target, list, &mut out);
    tools(target, body, &mut out);
    systems(target, list, &mut out);
    starts(list, &mut out);
    super::breakpoints(target, body, &mut out);
    out
}

/// Checks each message, and the pairs of calls and results, in a body or in the list for a template.
pub(super) fn messages(target: &Target, list: &[Value], out: &mut Vec<String>) {
    for (at, message) in list.iter().enumerate() {
        shape(target, message, &format!("message {at}"), out);
    }
    contents(list, out);
    pairs(list, out);
}

/// Rules 1 to 3: the results of a message's calls follow it at once, one per call, and there are no other
/// results.
fn pairs(list: &[Value], out: &mut Vec<String>) {
    let (mut calls, mut open) = (Vec::new(), Vec::new());
    for (at, message) in list.iter().enumerate() {
        if role(message) == "tool" {
            let id = text(message, "tool_call_id");
            if let Some(place) = open.iter().position(|call| *call == id) {
                open.remove(place);
            } else {
                need!(out, !calls.contains(&id), 3, "message {at} answers `{id}` once more");
                need!(
                    out,
                    calls.contains(&id),
                    1,
                    "message {at} answers `{id}`, which was not called before it"
                );
            }
            continue;
        }
        unanswered(&open, out);
        calls = items(&message["tool_calls"]).iter().map(|call| text(call, "id")).collect();
        for (place, id) in calls.iter().enumerate() {
            need!(out, !calls[..place].contains(id), 3, "message {at} has two calls `{id}`");
        }
        open.clone_from(&calls);
    }
    unanswered(&open, out);
}

fn unanswered(open: &[&str], out: &mut Vec<String>) {
    for id in open {
        need!(out, false, 2, "`{id}` is not answered before the next role");
    }
}

/// Rule 4: the first message after the system messages is not a result.
fn starts(list: &[Value], out: &mut Vec<String>) {
    let first = list.iter().find(|message| !is_system(message));
    need!(out, first.is_none_or(|message| role(message) != "tool"), 4, "the list starts with a tool message");
}

/// Rule 5, except for arguments: an assistant message has content or calls.
fn contents(list: &[Value], out: &mut Vec<String>) {
    for (at, message) in list.iter().enumerate().filter(|(_, message)| role(message) == "assistant") {
        let calls = !items(&message["tool_calls"]).is_empty();
        need!(out, calls || !is_empty(&message["content"]), 5, "message {at} has neither content nor calls");
    }
}

fn is_empty(content: &Value) -> bool {
    let said = |part: &Value| !text(part, "text").is_empty() || !text(part, "refusal").is_empty();
    content.as_str().unwrap_or_default().is_empty() && !items(content).iter().any(said)
}

/// Rule 6: one system message in the first position, unless the server is known to accept more.
fn systems(target: &Target, list: &[Value], out: &mut Vec<String>) {
    for (at, message) in list.iter().enumerate().skip(1) {
        let allowed = target.many_system || !is_system(message);
        need!(out, allowed, 6, "message {at} is a later system message");
    }
}

fn is_system(message: &Value) -> bool {
    matches!(role(message), "system" | "developer")
}

fn shape(target: &Target, message: &Value, at: &str, out: &mut Vec<String>) {
    let role = role(message);
    let (keys, parts): (&[&str], &[&str]) = match role {
        "system" | "developer" => (&["name"], &["text"]),
        "user" => (&["name"], &["text", "image_url", "input_audio", "file"]),
        "assistant" => (&["name", "tool_calls", "refusal"], &["text", "refusal"]),
        "tool" => (&["name", "tool_call_id"], &["text"]),
        _ => {
            need!(out, false, "shape", "{at}: unknown role {}", message["role"]);
            return;
        }
    };
    need!(out, role != "developer" || target.developer_role, 6, "{at}: the server knows no developer role");
    let mut allowed = [&["role", "content"], keys].concat();
    if role == "assistant" && target.reasoning_content {
        allowed.push("reasoning_content");
    }
    only(out, message, &allowed, at);
    for key in ["refusal", "reasoning_content"] {
        let fits = message.get(key).is_none_or(|value| value.is_string() || value.is_null());
        need!(out, fits, "shape", "{at}: `{key}` is not a text");
    }
    if let Some(name) = message.get("name") {
        let fits = name.as_str().is_some_and(is_name);
        need!(out, fits, "shape", "{at}: the name {name} is not allowed");
    }
    if role == "tool" {
        filled(out, message, &["tool_call_id"], at);
    }
    content(target, message, parts, at, out);
    if let Some(calls) = message.get("tool_calls") {
        need!(out, !items(calls).is_empty(), "shape", "{at}: `tool_calls` is empty or not a list");
        for call in items(calls) {
            tool_call(target, call, at, out);
        }
    }
}

/// Returns true for `^[^\s<|\\/>]{1,64}$`.
fn is_name(name: &str) -> bool {
    let fits = |letter: char| !letter.is_whitespace() && !"<|\\/>".contains(letter);
    (1..=64).contains(&name.chars().count()) && name.chars().all(fits)
}

/// Checks for text or parts. Only the assistant's content may be null or absent, which rule 5 decides.
fn content(target: &Target, message: &Value, known: &[&str], at: &str, out: &mut Vec<String>) {
    match &message["content"] {
        Value::String(_) => {}
        Value::Null => need!(out, role(message) == "assistant", "shape", "{at}: no content"),
        Value::Array(parts) => {
            need!(out, !parts.is_empty(), "shape", "{at}: an empty list of parts");
            for part in parts {
                content_part(target, message, part, known, at, out);
            }
        }
        other => need!(out, false, "shape", "{at}: content is {other}"),
    }
}

fn content_part(
    target: &Target,
    message: &Value,
    part: &Value,
    known: &[&str],
    at: &str,
    out: &mut Vec<String>,
) {
    let kind = kind(part);
    if target.form == Form::ChatTemplate && role(message) == "user" && kind == "image" {
        // Templates insert a placeholder, and the picture is passed separately.
        return;
    }
    need!(out, known.contains(&kind), "shape", "{at}: a part of type {} here", part["type"]);
    let mut allowed = vec!["type", kind];
    if role(message) != "assistant" && target.form == Form::OpenAiChat {
        allowed.push(super::BREAKPOINT);
        breakpoint(out, part, at);
    }
    only(out, part, &allowed, at);
    match kind {
        "text" | "refusal" => need!(out, part[kind].is_string(), "shape", "{at}: a part without `{kind}`"),
        "image_url" => {
            let image = &part["image_url"];
            only(out, image, &["url", "detail"], at);
            need!(out, is_image_address(text(image, "url")), "shape", "{at}: no address of a picture");
            let detail = image.get("detail").and_then(Value::as_str).unwrap_or("auto");
            let fits = ["auto", "low", "high", "original"].contains(&detail);
            need!(out, fits, "shape", "{at}: detail `{detail}`");
        }
        "input_audio" => {
            only(out, &part[kind], &["data", "format"], at);
            filled(out, &part[kind], &["data", "format"], at);
        }
        "file" => only(out, &part[kind], &["file_data", "file_id", "filename"], at),
        _ => {}
    }
}

/// Rule 5 for arguments, as far as visible: they are text, which a template may get parsed.
fn tool_call(target: &Target, call: &Value, at: &str, out: &mut Vec<String>) {
    let function = &call["function"];
    only(out, call, &["id", "type", "function"], at);
    only(out, function, &["name", "arguments"], at);
    filled(out, call, &["id"], at);
    filled(out, function, &["name"], at);
    need!(out, kind(call) == "function", "shape", "{at}: a call of type {}", call["type"]);
    let arguments = &function["arguments"];
    let object = target.form == Form::ChatTemplate && arguments.is_object();
    need!(out, object || arguments.is_string(), 5, "{at}: arguments are not the text they came as");
}

/// Checks for functions with names. An empty list is refused.
pub(super) fn tools(target: &Target, body: &Value, out: &mut Vec<String>) {
    let Some(tools) = body.get("tools") else { return };
    need!(out, !items(tools).is_empty(), "shape", "`tools` is empty or not a list");
    for (at, tool) in items(tools).iter().enumerate() {
        let function = &tool["function"];
        need!(out, kind(tool) == "function", "shape", "tool {at}: of type {}", tool["type"]);
        need!(out, !blank(text(function, "name")), "shape", "tool {at}: no name");
        let fits = function.get("parameters").is_none_or(Value::is_object);
        need!(out, fits, "shape", "tool {at}: parameters are no object");
        if let (true, Some(schema)) = (target.form == Form::OpenAiChat, function.get("parameters")) {
            super::parameters(out, schema, &format!("tool {at}"));
        }
    }
}
