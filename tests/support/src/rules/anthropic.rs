//! Anthropic Messages: rules 13 to 31, except 25 and 27.

use super::{Target, blank, filled, is_base64, is_web_address, items, kind, only, role, text};
use serde_json::Value;

/// Returns all violations of
/// `{"system"?: text or blocks, "messages": [...], "tools"?: [...], "cache_control"?: {...}}`, in which the
/// last is the automatic mark.
pub fn check(target: &Target, body: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let list = super::required_list(&mut out, body, "messages");
    need!(out, list.len() <= 100_000, 31, "{} messages", list.len());
    system(body, &mut out);
    tools(body, &mut out);
    for (at, message) in list.iter().enumerate() {
        self::message(message, &format!("message {at}"), &mut out);
    }
    order(target, list, &mut out);
    system_inside(target, list, &mut out);
    uses(list, &mut out);
    results(list, &mut out);
    server_tools(list, &mut out);
    trailing_space(list, &mut out);
    thinking(target, list, &mut out);
    marks(target, body, &mut out);
    out
}

fn blocks(message: &Value) -> &[Value] {
    items(&message["content"])
}

fn has(message: &Value, wanted: &str) -> bool {
    blocks(message).iter().any(|block| kind(block) == wanted)
}

fn is_thinking(block: &Value) -> bool {
    matches!(kind(block), "thinking" | "redacted_thinking")
}

/// Returns true for the result of a tool that the provider runs, such as `web_search_tool_result`.
fn is_server_result(block: &Value) -> bool {
    kind(block).ends_with("_tool_result")
}

/// Rules 13, 14 and 22: the user begins, adjacent roles differ, and the assistant is not last.
fn order(target: &Target, list: &[Value], out: &mut Vec<String>) {
    let first = list.first().map_or("user", role);
    need!(out, first == "user", 13, "the first message is of role `{first}`");
    for (at, pair) in list.windows(2).enumerate() {
        // Two adjacent system entries break rule 23 instead.
        let merged = role(&pair[0]) != role(&pair[1]) || role(&pair[0]) == "system";
        need!(out, merged, 14, "messages {at} and {} are both of role `{}`", at + 1, role(&pair[0]));
    }
    let trails = list.last().is_some_and(|message| role(message) == "assistant");
    need!(out, target.trailing_assistant || !trails, 22, "the last message is the assistant's");
}

/// Rule 23: a system entry follows a user message, or an assistant that waits for a tool of the provider. It
/// is the last message or comes before an assistant message.
fn system_inside(target: &Target, list: &[Value], out: &mut Vec<String>) {
    let entries = list.iter().enumerate().filter(|(_, message)| role(message) == "system");
    for (at, _) in entries {
        need!(out, target.system_inside, 23, "message {at}: the model takes no system entry here");
        let follows = at > 0 && {
            let before = &list[at - 1];
            let waits = |block: &Value| kind(block) == "server_tool_use" || is_server_result(block);
            role(before) == "user" || role(before) == "assistant" && blocks(before).last().is_some_and(waits)
        };
        need!(out, follows, 23, "message {at}: a system entry does not follow a user message");
        let leads = list.get(at + 1).is_none_or(|next| role(next) == "assistant");
        need!(out, leads, 23, "message {at}: a system entry is not followed by the assistant");
    }
}

/// Rules 15 and 18: each `tool_use` has one result, in the very next message.
fn uses(list: &[Value], out: &mut Vec<String>) {
    for (at, message) in list.iter().enumerate().filter(|(_, message)| role(message) == "assistant") {
        for call in blocks(message).iter().filter(|block| kind(block) == "tool_use") {
            let id = text(call, "id");
            let answers = |block: &&Value| kind(block) == "tool_result" && text(block, "tool_use_id") == id;
            let next = list.get(at + 1).filter(|next| role(next) == "user");
            let count = next.map_or(0, |next| blocks(next).iter().filter(answers).count());
            need!(out, count > 0, 15, "tool_use `{id}` has no tool_result in the next message");
            need!(out, count < 2, 18, "tool_use `{id}` has {count} results");
        }
    }
    let mut ids: Vec<&str> =
        list.iter().flat_map(blocks).filter(|block| is_use(block)).map(|b| text(b, "id")).collect();
    ids.sort_unstable();
    for pair in ids.windows(2) {
        need!(out, pair[0] != pair[1], "shape", "two tool uses have the id `{}`", pair[0]);
    }
}

fn is_use(block: &Value) -> bool {
    matches!(kind(block), "tool_use" | "server_tool_use")
}

/// Rules 16 and 17: results come first in their message, and their calls are in the message before.
fn results(list: &[Value], out: &mut Vec<String>) {
    for (at, message) in list.iter().enumerate() {
        let before = at.checked_sub(1).map_or(&[][..], |before| blocks(&list[before]));
        let mut others = false;
        for block in blocks(message) {
            if kind(block) != "tool_result" {
                others = true;
                continue;
            }
            let id = text(block, "tool_use_id");
            need!(out, !others, 16, "message {at}: the result of `{id}` comes after another block");
            let called = before.iter().any(|call| kind(call) == "tool_use" && text(call, "id") == id);
            need!(out, called, 17, "message {at}: no tool_use `{id}` in the message before");
        }
    }
}

/// Rule 19: the result of a server tool comes once, after its use, and before the next user text. A use may
/// be open at the end, and while results of other tools are returned.
fn server_tools(list: &[Value], out: &mut Vec<String>) {
    let mut open = Vec::new();
    for (at, message) in list.iter().enumerate() {
        if role(message) == "user" && !only_results(message) {
            for id in open.drain(..) {
                need!(out, false, 19, "server_tool_use `{id}` has no result before message {at}");
            }
        }
        for block in blocks(message) {
            if kind(block) == "server_tool_use" {
                open.push(text(block, "id"));
            } else if is_server_result(block) {
                let id = text(block, "tool_use_id");
                let place = open.iter().position(|call| *call == id);
                need!(out, place.is_some(), 19, "message {at}: a {} without its use `{id}`", kind(block));
                place.map(|place| open.remove(place));
            }
        }
    }
}

fn only_results(message: &Value) -> bool {
    let list = blocks(message);
    !list.is_empty() && list.iter().all(|block| kind(block) == "tool_result")
}

/// Rule 21: an assistant text to be continued does not end in white space.
fn trailing_space(list: &[Value], out: &mut Vec<String>) {
    let Some(last) = list.last().filter(|message| role(message) == "assistant") else { return };
    let block = blocks(last).last().filter(|block| kind(block) == "text").map(|block| text(block, "text"));
    let said = last["content"].as_str().or(block).unwrap_or_default();
    need!(out, said.trim_end() == said, 21, "the final assistant text ends in white space");
}

/// Rules 24 and 26: with thinking on, the running tool loop begins with thinking. With thinking off, the last
/// assistant message has none.
fn thinking(target: &Target, list: &[Value], out: &mut Vec<String>) {
    match target.thinking {
        Some(true) => {
            let Some(last) = list.iter().rposition(|message| role(message) != "system") else { return };
            if !has(&list[last], "tool_result") {
                return;
            }
            // By the page on extended thinking, any other content than results starts a new loop. Only in the
            // last message may it accompany results.
            let speaks = |message: &Value| role(message) == "user" && !only_results(message);
            let asked = list[..last].iter().rposition(speaks).unwrap_or(0);
            let opener = list[asked..last].iter().find(|message| role(message) == "assistant");
            let starts = opener.is_none_or(|message| blocks(message).first().is_some_and(is_thinking));
            need!(out, starts, 24, "the loop of calls after message {asked} does not start with thinking");
        }
        Some(false) => {
            let last = list.iter().rfind(|message| role(message) == "assistant");
            let bare = last.is_none_or(|message| !blocks(message).iter().any(is_thinking));
            need!(out, bare, 26, "thinking is off, but the final assistant message has some");
        }
        None => {}
    }
}

/// Returns everything that may have a mark, in the order of the prompt: tools, system, messages. Blocks
/// inside a result come before the result.
fn markable(body: &Value) -> Vec<&Value> {
    let mut all: Vec<&Value> = items(&body["tools"]).iter().chain(items(&body["system"])).collect();
    for block in items(&body["messages"]).iter().flat_map(blocks) {
        if kind(block) == "tool_result" {
            all.extend(blocks(block));
        }
        all.push(block);
    }
    all
}

fn ttl(mark: &Value) -> &str {
    mark["ttl"].as_str().unwrap_or("5m")
}

/// Rules 28 to 30: few marks, long-lived ones first, none on content that cannot be cached.
fn marks(target: &Target, body: &Value, out: &mut Vec<String>) {
    let all = markable(body);
    let automatic = body.get("cache_control");
    let mut marks: Vec<&Value> = Vec::new();
    for block in &all {
        let Some(mark) = block.get("cache_control") else { continue };
        marks.push(mark);
        need!(out, !is_thinking(block), 30, "a mark on thinking");
        need!(out, kind(block) != "text" || !blank(text(block, "text")), 30, "a mark on empty text");
        need!(out, block["defer_loading"] != true, 30, "a mark on the deferred tool {}", block["name"]);
    }
    let last =
        items(&body["messages"]).last().and_then(|message| blocks(message).last()?.get("cache_control"));
    if let (Some(automatic), Some(last)) = (automatic, last) {
        need!(out, ttl(automatic) == ttl(last), 29, "the automatic mark and the last block differ in TTL");
    }
    // The automatic mark is the last one, and counts even if it coincides with an explicit one.
    marks.extend(automatic);
    need!(out, marks.len() <= target.max_marks, 28, "{} marks, at most {}", marks.len(), target.max_marks);
    for (at, mark) in marks.iter().enumerate() {
        only(out, mark, &["type", "ttl"], "a mark");
        let lives = mark.get("ttl").is_none_or(|ttl| ttl == "5m" || ttl == "1h");
        need!(out, mark["type"] == "ephemeral" && lives, "shape", "the mark {mark}");
        let late = ttl(mark) == "1h" && marks[..at].iter().any(|before| ttl(before) == "5m");
        need!(out, !late, 29, "mark {at} of 1h comes after one of 5m");
    }
}

fn system(body: &Value, out: &mut Vec<String>) {
    match body.get("system") {
        None => {}
        Some(Value::String(text)) => need!(out, !blank(text), 20, "`system` is empty"),
        Some(Value::Array(list)) => {
            list.iter().for_each(|block| self::block(block, &["text"], "system", out))
        }
        Some(other) => need!(out, false, "shape", "`system` is {other}"),
    }
}

fn tools(body: &Value, out: &mut Vec<String>) {
    let Some(tools) = body.get("tools") else { return };
    need!(out, tools.is_array(), "shape", "`tools` is not a list");
    for (at, tool) in items(tools).iter().enumerate() {
        let name = text(tool, "name");
        let own = matches!(kind(tool), "" | "custom");
        filled(out, tool, &["name"], &format!("tool {at}"));
        need!(out, !own || tool["input_schema"].is_object(), "shape", "tool {at}: no `input_schema`");
        if own {
            super::parameters(out, &tool["input_schema"], &format!("tool {at}"));
        }
        let twice = items(tools)[..at].iter().any(|before| text(before, "name") == name);
        need!(out, !twice, "shape", "two tools are named `{name}`");
    }
}

fn message(message: &Value, at: &str, out: &mut Vec<String>) {
    only(out, message, &["role", "content"], at);
    let known: &[&str] = match role(message) {
        "user" => &["text", "image", "document", "tool_result", "search_result", "container_upload"],
        "assistant" => &[
            "text",
            "tool_use",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
            "_tool_result",
            "container_upload",
        ],
        // Rule 23 decides if it may be here.
        "system" => &["text"],
        _ => {
            need!(out, false, "shape", "{at}: unknown role {}", message["role"]);
            return;
        }
    };
    match &message["content"] {
        Value::String(text) => need!(out, !blank(text), 20, "{at}: empty content"),
        Value::Array(list) => {
            need!(out, !list.is_empty(), 20, "{at}: empty content");
            list.iter().for_each(|block| self::block(block, known, at, out));
            let ends = list.last().is_some_and(is_thinking);
            need!(out, !ends, "shape", "{at}: the last block is thinking");
        }
        other => need!(out, false, "shape", "{at}: content is {other}"),
    }
}

/// Checks one block, of one of these types; rule 20 for its text.
fn block(block: &Value, known: &[&str], at: &str, out: &mut Vec<String>) {
    let kind = if is_server_result(block) { "_tool_result" } else { kind(block) };
    if !known.contains(&kind) {
        need!(out, false, "shape", "{at}: a block of type {} here", block["type"]);
        return;
    }
    // Rule 30 covers marks on thinking.
    let keys: &[&str] = match kind {
        "text" => &["text", "citations"],
        "image" => &["source"],
        "document" => &["source", "title", "context", "citations"],
        "search_result" => &["source", "title", "content", "citations"],
        "container_upload" => &["file_id"],
        "thinking" => &["thinking", "signature"],
        "redacted_thinking" => &["data"],
        "tool_use" | "server_tool_use" => &["id", "name", "input", "caller"],
        "tool_result" => &["tool_use_id", "content", "is_error"],
        _ => &["tool_use_id", "content", "is_error", "caller"],
    };
    only(out, block, &[&["type", "cache_control"], keys].concat(), at);
    match kind {
        "text" => need_text(block, at, out),
        "image" => image(&block["source"], at, out),
        "document" => document(&block["source"], at, out),
        "search_result" => {
            filled(out, block, &["source", "title"], at);
            need!(out, !blocks(block).is_empty(), "shape", "{at}: a search result without content");
            blocks(block).iter().for_each(|inner| self::block(inner, &["text"], at, out));
        }
        "container_upload" => filled(out, block, &["file_id"], at),
        "thinking" => {
            // Some models omit the text, but never the signature.
            need!(out, block["thinking"].is_string(), "shape", "{at}: thinking without its text");
            filled(out, block, &["signature"], at);
        }
        "redacted_thinking" => filled(out, block, &["data"], at),
        "tool_use" | "server_tool_use" => {
            filled(out, block, &["name"], at);
            need!(out, is_id(text(block, "id")), "shape", "{at}: the id {} is not allowed", block["id"]);
            need!(
                out,
                block["input"].is_object(),
                "shape",
                "{at}: the input of {} is no object",
                block["id"]
            );
        }
        "tool_result" => result(block, at, out),
        _ => {
            filled(out, block, &["tool_use_id"], at);
            need!(out, block.get("content").is_some(), "shape", "{at}: a server result without content");
        }
    }
}

fn need_text(block: &Value, at: &str, out: &mut Vec<String>) {
    need!(out, block["text"].is_string(), "shape", "{at}: a text block without text");
    need!(out, !block["text"].is_string() || !blank(text(block, "text")), 20, "{at}: an empty text block");
}

/// Returns true for `^[a-zA-Z0-9_-]+$`.
fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !id.is_empty() && id.bytes().all(fits)
}

fn result(block: &Value, at: &str, out: &mut Vec<String>) {
    let error = block.get("is_error").is_none_or(Value::is_boolean);
    need!(out, error, "shape", "{at}: `is_error` is {}", block["is_error"]);
    need!(out, is_id(text(block, "tool_use_id")), "shape", "{at}: `tool_use_id` {}", block["tool_use_id"]);
    match block.get("content") {
        None => {}
        // A plain text is equal to one block of it.
        Some(Value::String(text)) => need!(out, !blank(text), 20, "{at}: a result of empty text"),
        Some(Value::Array(list)) => {
            for inner in list {
                self::block(inner, &["text", "image", "document", "search_result"], at, out);
            }
        }
        Some(other) => need!(out, false, "shape", "{at}: the content of a result is {other}"),
    }
    let says = block["content"].is_string() || !blocks(block).is_empty();
    need!(out, says || block["is_error"] != true, "shape", "{at}: an error without content");
}

fn image(source: &Value, at: &str, out: &mut Vec<String>) {
    match kind(source) {
        "base64" => {
            only(out, source, &["type", "media_type", "data"], at);
            let known = ["image/jpeg", "image/png", "image/gif", "image/webp"];
            let media = text(source, "media_type");
            need!(out, known.contains(&media), "shape", "{at}: a picture of type `{media}`");
            need!(out, is_base64(text(source, "data")), "shape", "{at}: the picture is not base64");
        }
        "url" => {
            only(out, source, &["type", "url"], at);
            need!(out, is_web_address(text(source, "url")), "shape", "{at}: no address of a picture");
        }
        _ => need!(out, false, "shape", "{at}: a picture from {}", source["type"]),
    }
}

fn document(source: &Value, at: &str, out: &mut Vec<String>) {
    let fits = match kind(source) {
        "base64" => source["media_type"] == "application/pdf" && is_base64(text(source, "data")),
        "text" => source["media_type"] == "text/plain" && !blank(text(source, "data")),
        "url" => is_web_address(text(source, "url")),
        "content" => source["content"].is_string() || source["content"].is_array(),
        "file" => !text(source, "file_id").is_empty(),
        _ => false,
    };
    need!(out, fits, "shape", "{at}: a document from {}", source["type"]);
}
