//! Checks request bodies against the rules that providers enforce, written from the rules independently of
//! the renderers. Each violation is one line. It begins with the number of its rule, or with `shape` if only
//! the public API reference requires it.
//!
//! Some rules are not visible in a single body, so they are not checked: 7 (the size of the request), 25, 27
//! and 41 (that reasoning and its signature are unchanged). Of 5, 10, 27 and 40 only the visible half is
//! checked.
#![allow(dead_code, reason = "features decide who uses what")]

use serde_json::Value;

/// Adds a violation unless the condition holds.
macro_rules! need {
    ($out:expr, $holds:expr, $rule:expr, $($what:tt)+) => {
        if !$holds {
            $out.push(format!("{}: {}", $rule, format_args!($($what)+)));
        }
    };
}

/// Checks that parameters are the JSON Schema of an object, with JSON Schema types at every position.
pub(crate) fn parameters(out: &mut Vec<String>, schema: &Value, at: &str) {
    need!(out, schema["type"] == "object", "shape", "{at}: parameters of type {}", schema["type"]);
    types(out, schema, at);
}

fn types(out: &mut Vec<String>, schema: &Value, at: &str) {
    const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
    let named: Vec<&Value> = match schema.get("type") {
        Some(Value::Array(list)) => list.iter().collect(),
        one => one.into_iter().collect(),
    };
    for name in named {
        let fits = name.as_str().is_some_and(|name| TYPES.contains(&name));
        need!(out, fits, "shape", "{at}: a schema of type {name}");
    }
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let below = properties.map(|(_, schema)| schema).chain(schema.get("items"));
    for schema in below.chain(schema.get("anyOf").map_or(&[][..], items)) {
        types(out, schema, at);
    }
}

pub mod anthropic;
pub mod chat_template;
pub mod gemini;
pub mod openai_chat;
pub mod openai_responses;

/// The wire format of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    /// The list of messages passed to a chat template.
    ChatTemplate,
}

/// The target of a body. The default is the strictest OpenAI Chat server, without anything that only some
/// servers allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub form: Form,
    /// OpenAI Chat: several system messages, and later ones (rule 6).
    pub many_system: bool,
    /// OpenAI Chat and templates: messages of role `developer` (rule 6).
    pub developer_role: bool,
    /// OpenAI Chat and templates: `reasoning_content` in assistant messages.
    pub reasoning_content: bool,
    /// Anthropic: the last message may be the assistant's (rule 22).
    pub trailing_assistant: bool,
    /// Anthropic: `system` entries among the messages (rule 23).
    pub system_inside: bool,
    /// Anthropic: thinking is on (rule 24), off (rule 26), or unknown.
    pub thinking: Option<bool>,
    /// Gemini 3: calls of the current turn carry thought signatures (rule 40).
    pub thought_signatures: bool,
    /// OpenAI: explicit cache breakpoints (rule 12).
    pub breakpoints: bool,
    /// Maximum number of cache marks or explicit breakpoints in a body (rules 12 and 28).
    pub max_marks: usize,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            form: Form::default(),
            many_system: false,
            developer_role: false,
            reasoning_content: false,
            trailing_assistant: false,
            system_inside: false,
            thinking: None,
            thought_signatures: false,
            breakpoints: false,
            max_marks: 4,
        }
    }
}

impl Target {
    /// Returns the strictest target of a wire format.
    pub fn new(form: Form) -> Self {
        Self { form, ..Self::default() }
    }
}

/// Returns all violations of a body, and an empty list for a valid one.
pub fn check(target: &Target, body: &Value) -> Vec<String> {
    match target.form {
        Form::OpenAiChat => openai_chat::check(target, body),
        Form::OpenAiResponses => openai_responses::check(target, body),
        Form::Anthropic => anthropic::check(target, body),
        Form::Gemini => gemini::check(target, body),
        Form::ChatTemplate => chat_template::check(target, body),
    }
}

/// The field that marks an explicit breakpoint of OpenAI.
const BREAKPOINT: &str = "prompt_cache_breakpoint";

/// Rule 12: explicit breakpoints only if supported, few, and not on instructions or tools. The check of a
/// part's keys ensures that they are on input parts only.
fn breakpoints(target: &Target, body: &Value, out: &mut Vec<String>) {
    let all = count_key(body, BREAKPOINT);
    need!(out, target.breakpoints || all == 0, 12, "{all} breakpoints for a model that takes none");
    need!(out, all <= target.max_marks, 12, "{all} breakpoints, at most {}", target.max_marks);
    for key in ["instructions", "tools"] {
        need!(out, count_key(&body[key], BREAKPOINT) == 0, 12, "a breakpoint in `{key}`");
    }
}

/// Checks the shape of an explicit breakpoint on a part that may have one.
fn breakpoint(out: &mut Vec<String>, part: &Value, at: &str) {
    if let Some(mark) = part.get(BREAKPOINT) {
        only(out, mark, &["mode", "ttl"], at);
        need!(out, mark["mode"] == "explicit", "shape", "{at}: a breakpoint of mode {}", mark["mode"]);
    }
}

fn count_key(value: &Value, key: &str) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| count_key(item, key)).sum(),
        Value::Object(fields) => {
            let inside: usize = fields.values().map(|field| count_key(field, key)).sum();
            inside + usize::from(fields.contains_key(key))
        }
        _ => 0,
    }
}

/// Returns a list that the body must contain, and checks that it is not empty.
fn required_list<'a>(out: &mut Vec<String>, body: &'a Value, key: &str) -> &'a [Value] {
    let list = items(&body[key]);
    need!(out, body[key].is_array(), "shape", "`{key}` is not a list");
    need!(out, !body[key].is_array() || !list.is_empty(), "shape", "`{key}` is empty");
    list
}

/// Returns the items of a list, or an empty slice if there is no list.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the text under a key, or an empty one.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn role(message: &Value) -> &str {
    text(message, "role")
}

fn kind(block: &Value) -> &str {
    text(block, "type")
}

/// Returns true if a text is empty or only white space.
fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Checks that an object has no other keys than these. A misplaced breakpoint breaks rule 12. An unknown key
/// of Gemini breaks rule 42, which is why that has its own check.
fn only(out: &mut Vec<String>, value: &Value, allowed: &[&str], at: &str) {
    for key in unknown(out, value, allowed, at) {
        let rule = if key == BREAKPOINT { "12" } else { "shape" };
        need!(out, false, rule, "{at}: `{key}` does not belong here");
    }
}

/// Returns the keys of an object that are not among these.
fn unknown<'a>(out: &mut Vec<String>, value: &'a Value, allowed: &[&str], at: &str) -> Vec<&'a str> {
    need!(out, value.is_object(), "shape", "{at}: not an object");
    let keys = value.as_object().into_iter().flat_map(|fields| fields.keys());
    keys.map(String::as_str).filter(|key| !allowed.contains(key)).collect()
}

/// Checks that each of these keys has a non-empty string.
fn filled(out: &mut Vec<String>, value: &Value, keys: &[&str], at: &str) {
    for key in keys {
        need!(out, !text(value, key).is_empty(), "shape", "{at}: `{key}` is not a text, or empty");
    }
}

/// Returns true for base64 of the standard alphabet, padded and not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !digits.is_empty() && padding <= 2 && text.len().is_multiple_of(4) && digits.bytes().all(known)
}

fn is_web_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Returns true for a web address, or a picture in base64 as a `data:` address.
fn is_image_address(text: &str) -> bool {
    let Some(data) = text.strip_prefix("data:image/") else { return is_web_address(text) };
    data.split_once(";base64,").is_some_and(|(format, data)| !format.is_empty() && is_base64(data))
}
