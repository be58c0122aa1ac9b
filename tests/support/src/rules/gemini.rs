//! Gemini `generateContent`: rules 32 to 42, except 41.

use super::{Target, filled, is_base64, items, role, text, unknown};
use serde_json::Value;

/// Returns all violations of `{"systemInstruction"?: {"parts": [...]}, "contents": [...], "tools"?: [...]}`.
pub fn check(target: &Target, body: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let contents = items(&body["contents"]);
    need!(out, !contents.is_empty(), 32, "`contents` is empty");
    fields(body, &mut out);
    for (at, content) in contents.iter().enumerate() {
        self::content(content, &format!("content {at}"), &mut out);
    }
    roles(contents, &mut out);
    calls(contents, &mut out);
    responses(contents, &mut out);
    if target.thought_signatures {
        signatures(contents, &mut out);
    }
    out
}

/// Rule 42: no other keys than these.
fn known(out: &mut Vec<String>, value: &Value, allowed: &[&str], at: &str) {
    for key in unknown(out, value, allowed, at) {
        need!(out, false, 42, "{at}: unknown field `{key}`");
    }
}

const TOOLS: [&str; 10] = [
    "functionDeclarations",
    "googleSearch",
    "googleSearchRetrieval",
    "googleMaps",
    "urlContext",
    "codeExecution",
    "computerUse",
    "fileSearch",
    "retrieval",
    "enterpriseWebSearch",
];

const DECLARATION: [&str; 7] = [
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "response",
    "responseJsonSchema",
    "behavior",
];

/// Checks the fields other than the contents.
fn fields(body: &Value, out: &mut Vec<String>) {
    let own = ["systemInstruction", "contents", "tools"];
    let settings = [
        "toolConfig",
        "safetySettings",
        "generationConfig",
        "cachedContent",
        "labels",
        "model",
        "serviceTier",
    ];
    known(out, body, &[&own[..], &settings].concat(), "body");
    if let Some(system) = body.get("systemInstruction") {
        known(out, system, &["role", "parts"], "systemInstruction");
        need!(out, !parts(system).is_empty(), 33, "systemInstruction: no parts");
        for part in parts(system) {
            known(out, part, &["text"], "systemInstruction");
            need!(out, !text(part, "text").is_empty(), 33, "systemInstruction: a part without text");
        }
    }
    for tool in items(&body["tools"]) {
        known(out, tool, &TOOLS, "a tool");
        let declared = tool.get("functionDeclarations");
        let fits = declared.is_none_or(|list| !items(list).is_empty());
        need!(out, fits, "shape", "`functionDeclarations` is empty or not a list");
        for function in declared.map_or(&[][..], items) {
            known(out, function, &DECLARATION, "a function declaration");
            filled(out, function, &["name"], "a function declaration");
            if let Some(schema) = function.get("parametersJsonSchema") {
                super::parameters(out, schema, "a function declaration");
            }
        }
    }
    let fits = body.get("tools").is_none_or(Value::is_array);
    need!(out, fits, "shape", "`tools` is not a list");
}

fn parts(content: &Value) -> &[Value] {
    items(&content["parts"])
}

/// Returns the calls or responses in a content.
fn all<'a>(content: &'a Value, key: &str) -> Vec<&'a Value> {
    parts(content).iter().filter_map(|part| part.get(key)).collect()
}

const DATA: [&str; 7] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

/// Rule 33, and the shape of each kind of part.
fn content(content: &Value, at: &str, out: &mut Vec<String>) {
    known(out, content, &["role", "parts"], at);
    need!(out, !parts(content).is_empty(), 33, "{at}: no parts");
    for part in parts(content) {
        known(out, part, &[&DATA[..], &["thought", "thoughtSignature", "videoMetadata"]].concat(), at);
        let set: Vec<&str> = DATA.into_iter().filter(|key| part.get(key).is_some()).collect();
        need!(out, !set.is_empty(), 33, "{at}: a part without data");
        need!(out, set.len() < 2, "shape", "{at}: a part with {} data fields", set.len());
        for key in set {
            data(role(content), key, part, at, out);
        }
        let fits = part.get("thought").is_none_or(Value::is_boolean);
        need!(out, fits, "shape", "{at}: `thought` is {}", part["thought"]);
        if part.get("thoughtSignature").is_some() {
            filled(out, part, &["thoughtSignature"], at);
        }
    }
}

fn data(role: &str, key: &str, part: &Value, at: &str, out: &mut Vec<String>) {
    let value = &part[key];
    match key {
        "text" => {
            need!(out, value.is_string(), "shape", "{at}: `text` is {value}");
            // Gemini 3 ends a stream with a signature on an empty text, which has to be sent back.
            let empty = value == "" && part.get("thoughtSignature").is_none();
            need!(out, !empty, 33, "{at}: a part of empty text");
        }
        "inlineData" => {
            known(out, value, &["mimeType", "data"], at);
            filled(out, value, &["mimeType"], at);
            need!(out, is_base64(text(value, "data")), "shape", "{at}: inline data is not base64");
        }
        "fileData" => {
            known(out, value, &["mimeType", "fileUri"], at);
            filled(out, value, &["fileUri"], at);
        }
        "functionCall" => {
            known(out, value, &["name", "args", "id"], at);
            filled(out, value, &["name"], at);
            need!(out, value["args"].is_object(), "shape", "{at}: `args` is {}", value["args"]);
            need!(out, role == "model", "shape", "{at}: a functionCall of role `{role}`");
        }
        "functionResponse" => {
            known(out, value, &["name", "response", "id"], at);
            filled(out, value, &["name"], at);
            need!(out, value["response"].is_object(), "shape", "{at}: `response` is {}", value["response"]);
            need!(out, role == "user", "shape", "{at}: a functionResponse of role `{role}`");
        }
        _ => need!(out, value.is_object(), "shape", "{at}: `{key}` is {value}"),
    }
    let fits = value.get("id").is_none_or(|id| id.as_str().is_some_and(|id| !id.is_empty()));
    need!(out, fits, "shape", "{at}: the id {}", value["id"]);
}

/// Rules 34, 35 and 39, and the part of rule 42 about system text among the contents.
fn roles(contents: &[Value], out: &mut Vec<String>) {
    for (at, content) in contents.iter().enumerate() {
        let role = role(content);
        need!(out, role != "system", 42, "content {at}: system text belongs to systemInstruction");
        let fits = matches!(role, "user" | "model" | "system");
        need!(out, fits, 34, "content {at}: role {}", content["role"]);
        let merged = at == 0 || self::role(&contents[at - 1]) != role;
        need!(out, merged, 34, "contents {} and {at} are both of role `{role}`", at.saturating_sub(1));
    }
    let first = contents.first().map_or("user", role);
    need!(out, first == "user", 35, "the first content is of role `{first}`");
    let last = contents.last().map_or("user", role);
    need!(out, last == "user", 39, "the last content is of role `{last}`");
}

/// Rules 36 and 37: calls follow a user turn (function responses are one), and the next content answers each.
fn calls(contents: &[Value], out: &mut Vec<String>) {
    for (at, content) in contents.iter().enumerate() {
        let calls = all(content, "functionCall").len();
        if calls == 0 {
            continue;
        }
        let follows = at > 0 && role(&contents[at - 1]) == "user";
        need!(out, follows, 36, "content {at}: a call that does not follow a user turn");
        let answers = contents.get(at + 1).map_or(0, |next| all(next, "functionResponse").len());
        need!(
            out,
            answers == calls,
            37,
            "content {at}: {calls} calls, {answers} responses in the next content"
        );
    }
}

/// Rule 38: each response has its call in the turn before, by id if it has one, otherwise by position. The
/// names are equal.
fn responses(contents: &[Value], out: &mut Vec<String>) {
    for (at, content) in contents.iter().enumerate() {
        let before =
            at.checked_sub(1).map(|before| &contents[before]).filter(|before| role(before) == "model");
        let calls = before.map_or_else(Vec::new, |before| all(before, "functionCall"));
        let mut seen = Vec::new();
        for (place, response) in all(content, "functionResponse").into_iter().enumerate() {
            let id = response["id"].as_str();
            let by_id = calls.iter().find(|call| call["id"].as_str() == id);
            let call = if id.is_some() { by_id } else { calls.get(place) };
            let name = text(response, "name");
            // An additional response breaks rule 37 instead.
            let known = call.is_some() || id.is_none() && !calls.is_empty();
            need!(out, known, 38, "content {at}: the response of `{name}` has no call in the turn before");
            need!(out, id.is_none() || !seen.contains(&id), 37, "content {at}: two responses to {id:?}");
            seen.push(id);
            if let Some(call) = call {
                let called = text(call, "name");
                need!(out, called == name, "shape", "content {at}: `{name}` answers a call of `{called}`");
                let same = call.get("id") == response.get("id");
                need!(
                    out,
                    same,
                    "shape",
                    "content {at}: the response of `{name}` does not name the id of its call"
                );
            }
        }
    }
}

/// Rule 40: in the current turn, the first call of each step is signed and its siblings are not. The turn
/// begins with the last user content that is no function response.
fn signatures(contents: &[Value], out: &mut Vec<String>) {
    let asks = |content: &Value| role(content) == "user" && all(content, "functionResponse").is_empty();
    let turn = contents.iter().rposition(asks).unwrap_or(0);
    for (at, content) in contents.iter().enumerate().skip(turn) {
        let calls = parts(content).iter().filter(|part| part.get("functionCall").is_some());
        for (place, part) in calls.enumerate() {
            let signed = part.get("thoughtSignature").is_some();
            need!(out, signed || place > 0, 40, "content {at}: the first call is not signed");
            need!(out, !signed || place == 0, 40, "content {at}: call {place} is signed besides the first");
        }
    }
}
