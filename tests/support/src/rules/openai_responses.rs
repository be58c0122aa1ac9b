//! OpenAI Responses: rules 8 to 12.

use super::{Target, breakpoint, filled, is_image_address, items, kind, only, role, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns all violations of `{"input": [...], "instructions"?: "...", "tools"?: [...]}`.
pub fn check(target: &Target, body: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let input = super::required_list(&mut out, body, "input");
    for (at, item) in input.iter().enumerate() {
        shape(item, &format!("item {at}"), &mut out);
    }
    let fits = body.get("instructions").is_none_or(Value::is_string);
    need!(out, fits, "shape", "`instructions` is not a text");
    tools(body, &mut out);
    pairs(input, &mut out);
    reasoning(input, &mut out);
    compaction(input, &mut out);
    super::breakpoints(target, body, &mut out);
    out
}

/// Returns the type of an item, which a message may omit.
fn item_kind(item: &Value) -> &str {
    if item.get("type").is_none() && item.get("role").is_some() { "message" } else { kind(item) }
}

/// Rules 8 and 9: each call has one output after it, and each output its own call before it. An id shared by
/// two calls is refused, or pairs a result with the wrong one.
fn pairs(input: &[Value], out: &mut Vec<String>) {
    let (mut open, mut called) = (Vec::new(), BTreeSet::new());
    for (at, item) in input.iter().enumerate() {
        let id = text(item, "call_id");
        match item_kind(item) {
            "function_call" => {
                need!(out, called.insert(id), 8, "item {at} calls as `{id}`, which an earlier call has");
                open.push(id);
            }
            "function_call_output" => match open.iter().position(|call| *call == id) {
                Some(place) => drop(open.remove(place)),
                None => need!(out, false, 9, "item {at} answers `{id}`, which is not an open call"),
            },
            _ => {}
        }
    }
    for id in open {
        need!(out, false, 8, "no output behind the call `{id}`");
    }
}

/// Rule 10, as far as visible: reasoning is followed by its call or assistant message.
fn reasoning(input: &[Value], out: &mut Vec<String>) {
    for (at, item) in input.iter().enumerate().filter(|(_, item)| item_kind(item) == "reasoning") {
        let led = input.get(at + 1).is_some_and(|next| match item_kind(next) {
            "reasoning" | "function_call" | "item_reference" | "web_search_call" => true,
            "message" => role(next) == "assistant",
            _ => false,
        });
        need!(out, led, 10, "the reasoning {} (item {at}) is not followed by its item", item["id"]);
    }
}

/// Rule 11: no item of the conversation comes before its latest compaction; lasting system text may.
fn compaction(input: &[Value], out: &mut Vec<String>) {
    let latest = input.iter().rposition(|item| item_kind(item) == "compaction").unwrap_or(0);
    for (at, item) in input[..latest].iter().enumerate() {
        let standing = item_kind(item) == "message" && matches!(role(item), "system" | "developer");
        need!(out, standing, 11, "item {at} comes before the latest compaction");
    }
}

fn shape(item: &Value, at: &str, out: &mut Vec<String>) {
    match item_kind(item) {
        "message" => message(item, at, out),
        "function_call" => {
            only(out, item, &["type", "id", "call_id", "name", "arguments", "status"], at);
            filled(out, item, &["call_id", "name"], at);
            let fits = item["arguments"].is_string();
            need!(out, fits, "shape", "{at}: arguments are not the text they came as");
        }
        "function_call_output" => {
            only(out, item, &["type", "id", "call_id", "output", "status"], at);
            filled(out, item, &["call_id"], at);
            content(&item["output"], &["input_text", "input_image", "input_file"], at, out);
        }
        "reasoning" => {
            only(out, item, &["type", "id", "summary", "content", "encrypted_content", "status"], at);
            filled(out, item, &["id"], at);
            need!(out, item["summary"].is_array(), "shape", "{at}: reasoning without a list as summary");
            for part in items(&item["summary"]) {
                let fits = kind(part) == "summary_text" && part["text"].is_string();
                need!(out, fits, "shape", "{at}: a summary part {part}");
                only(out, part, &["type", "text"], at);
            }
        }
        "compaction" => {
            only(out, item, &["type", "id", "encrypted_content"], at);
            filled(out, item, &["encrypted_content"], at);
        }
        "item_reference" => {
            only(out, item, &["type", "id"], at);
            filled(out, item, &["id"], at);
        }
        // Items of the provider's own tools are complete by themselves.
        "web_search_call" | "file_search_call" | "code_interpreter_call" | "mcp_call" => {
            filled(out, item, &["id"], at);
        }
        _ => need!(out, false, "shape", "{at}: unknown type {}", item["type"]),
    }
    // An absent provider id is valid, an empty one is not.
    let id = item.get("id").is_none_or(|id| id.as_str().is_some_and(|id| !id.is_empty()));
    need!(out, id, "shape", "{at}: id {}", item["id"]);
}

fn message(item: &Value, at: &str, out: &mut Vec<String>) {
    only(out, item, &["type", "id", "role", "content", "status", "phase"], at);
    match role(item) {
        "user" | "system" | "developer" => {
            content(&item["content"], &["input_text", "input_image", "input_file"], at, out);
        }
        "assistant" => content(&item["content"], &["output_text", "refusal"], at, out),
        _ => need!(out, false, "shape", "{at}: unknown role {}", item["role"]),
    }
}

/// Checks for text, or parts of these types.
fn content(content: &Value, known: &[&str], at: &str, out: &mut Vec<String>) {
    need!(out, content.is_string() || content.is_array(), "shape", "{at}: no content");
    need!(out, content.is_string() || !items(content).is_empty(), "shape", "{at}: an empty list of parts");
    for part in items(content) {
        let kind = kind(part);
        need!(out, known.contains(&kind), "shape", "{at}: a part of type {} here", part["type"]);
        let keys: &[&str] = match kind {
            "input_text" => &["text", super::BREAKPOINT],
            "input_image" => &["image_url", "file_id", "detail", super::BREAKPOINT],
            "input_file" => &["file_id", "file_data", "file_url", "filename", "detail", super::BREAKPOINT],
            "output_text" => &["text", "annotations", "logprobs"],
            "refusal" => &["refusal"],
            _ => continue,
        };
        only(out, part, &[&["type"], keys].concat(), at);
        breakpoint(out, part, at);
        let fits = match kind {
            "input_text" | "output_text" => part["text"].is_string(),
            "refusal" => part["refusal"].is_string(),
            "input_image" => is_image_address(text(part, "image_url")) || !text(part, "file_id").is_empty(),
            _ => ["file_id", "file_data", "file_url"].iter().any(|key| !text(part, key).is_empty()),
        };
        need!(out, fits, "shape", "{at}: nothing in a part of type {kind}");
    }
}

/// Functions are not nested here and have a name; other tools have only a type.
fn tools(body: &Value, out: &mut Vec<String>) {
    let Some(tools) = body.get("tools") else { return };
    need!(out, tools.is_array(), "shape", "`tools` is not a list");
    for (at, tool) in items(tools).iter().enumerate() {
        filled(out, tool, &["type"], &format!("tool {at}"));
        if kind(tool) == "function" {
            filled(out, tool, &["name"], &format!("tool {at}"));
            let fits = tool.get("parameters").is_none_or(|schema| schema.is_object() || schema.is_null());
            need!(out, fits, "shape", "tool {at}: parameters are no object");
            if let Some(schema) = tool.get("parameters").filter(|schema| !schema.is_null()) {
                super::parameters(out, schema, &format!("tool {at}"));
            }
            need!(out, tool.get("function").is_none(), "shape", "tool {at}: a function of the other API");
        }
    }
}
