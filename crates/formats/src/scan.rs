//! A search for texts, tool calls and tool results in JSON values, under any keys.

use serde_json::{Map, Value};

/// Maximum number of values examined inside one unknown value.
const MOST: usize = 10_000;

/// Keys under which tools keep the texts of messages.
const TEXTS: [&str; 9] =
    ["text", "content", "thinking", "body", "markdown", "message", "value", "extracted_content", "mes"];

/// Content found inside an unknown value.
pub(crate) struct Found {
    /// The name of the content for people.
    pub(crate) name: &'static str,
    /// The text, if the content is a text.
    pub(crate) text: Option<String>,
}

impl Found {
    /// Creates the finding of a text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { name: "text", text: Some(text.into()) }
    }

    fn named(name: &'static str) -> Self {
        Self { name, text: None }
    }
}

/// Checks whether a JSON value can hold content: not null, true, false, a number, or an empty string, list or
/// object.
pub(crate) fn is_something(json: &str) -> bool {
    !matches!(json, "null" | "false" | "true" | "\"\"" | "[]" | "{}")
        && !json.starts_with(|first: char| first.is_ascii_digit() || first == '-')
}

/// Maximum length, in characters, of a text under a metadata key.
const LONGEST_METADATA: usize = 100;

/// Checks whether a value is metadata of an application: short texts under a usual key, such as a title, an
/// author or a time.
pub(crate) fn is_metadata(key: &str, json: &str) -> bool {
    has_name_of_metadata(key)
        && look(json, &|value| match value {
            Value::String(text) => (text.chars().count() > LONGEST_METADATA).then(|| Found::text(text)),
            Value::Object(object) => is_call(object).then(|| Found::named("a tool call or a tool result")),
            _ => None,
        })
        .is_none()
}

fn has_name_of_metadata(key: &str) -> bool {
    // Written in lowercase and without `_` and `-`, as the key is compared.
    const NAMES: [&str; 40] = [
        "title",
        "author",
        "authorname",
        "displayname",
        "username",
        "useremail",
        "email",
        "user",
        "customer",
        "tags",
        "label",
        "labels",
        "category",
        "topic",
        "status",
        "model",
        "modelname",
        "provider",
        "createdat",
        "updatedat",
        "created",
        "updated",
        "date",
        "time",
        "timestamp",
        "feedback",
        "rating",
        "score",
        "locale",
        "language",
        "timezone",
        "useragent",
        "device",
        "browser",
        "channel",
        "platform",
        "environment",
        "version",
        "source",
        "url",
    ];
    let name: String = key.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    NAMES.contains(&&*name.to_ascii_lowercase())
}

/// Returns the text of a JSON string if it is prose.
pub(crate) fn find_prose(json: &str) -> Option<Found> {
    serde_json::from_str::<String>(json).ok().filter(|text| is_prose(text)).map(Found::text)
}

/// Returns prose, a tool call or a tool result from anywhere in a JSON value.
pub(crate) fn find_any(json: &str) -> Option<Found> {
    look(json, &|value| match value {
        Value::String(text) => is_prose(text).then(|| Found::text(text)),
        Value::Object(object) => is_call(object).then(|| Found::named("a tool call or a tool result")),
        _ => None,
    })
}

/// Returns a tool call, a tool result, or prose under a usual text key, from anywhere in a JSON value.
pub(crate) fn find_part(json: &str) -> Option<Found> {
    look(json, &|value| {
        let object = value.as_object()?;
        if is_call(object) {
            return Some(Found::named("a tool call or a tool result"));
        }
        let text = TEXTS.iter().filter_map(|key| object.get(*key)?.as_str());
        text.into_iter().find(|text| is_prose(text)).map(Found::text)
    })
}

/// Returns prose of a JSON value that none of `texts` contains.
pub(crate) fn find_missing(json: &str, texts: &[String]) -> Option<Found> {
    look(json, &|value| {
        let text = value.as_str().filter(|text| is_prose(text))?;
        (!texts.iter().any(|own| own.contains(text))).then(|| Found::text(text))
    })
}

/// Returns the prose that a JSON string is, or a part of a message from anywhere in a JSON value.
pub(crate) fn find_part_or_prose(json: &str) -> Option<Found> {
    find_prose(json).or_else(|| find_part(json))
}

/// Returns a tool call or a tool result from anywhere in a JSON value.
pub(crate) fn find_call(json: &str) -> Option<Found> {
    look(json, &|value| {
        value
            .as_object()
            .filter(|object| is_call(object))
            .map(|_| Found::named("a tool call or a tool result"))
    })
}

/// Checks whether a JSON value is or contains a list of messages: objects with a role and at least one more
/// key.
pub(crate) fn holds_messages(json: &str) -> bool {
    let is_message = |value: &Value| {
        let role = value.get("role").or_else(|| value.get("from")).or_else(|| value.get("sender"));
        role.is_some_and(Value::is_string) && value.as_object().is_some_and(|object| object.len() > 1)
    };
    let found = look(json, &|value| {
        let list = value.as_array()?;
        list.iter().any(is_message).then(|| Found::named("messages"))
    });
    found.is_some()
}

/// Applies `find` to a JSON value and to all values inside it, and returns its first finding. Returns a
/// finding, too, for values nested too deep and for more than `MOST` values.
fn look(json: &str, find: &dyn Fn(&Value) -> Option<Found>) -> Option<Found> {
    if !is_something(json) {
        return None;
    }
    match serde_json::from_str(json) {
        Ok(value) => inside(&value, find, &mut 0),
        // The value was parsed as JSON once before, so only its depth can be too great now.
        Err(_) => Some(Found::named("values nested too deeply")),
    }
}

fn inside(value: &Value, find: &dyn Fn(&Value) -> Option<Found>, seen: &mut usize) -> Option<Found> {
    *seen += 1;
    // A value with this many parts is no mere detail of the writer, so it counts as content.
    if *seen > MOST {
        return Some(Found::named("many values"));
    }
    // serde_json limits the depth of a value to 128, which bounds this recursion.
    find(value).or_else(|| match value {
        Value::Array(all) => all.iter().find_map(|value| inside(value, find, seen)),
        Value::Object(object) => object.values().find_map(|value| inside(value, find, seen)),
        _ => None,
    })
}

/// Returns a text escaped as in a JSON string, without the quotes around it.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// Checks whether a text is prose: two words with white space between them, so not a date or a version. Also
/// accepts a long text in a script without white space.
fn is_prose(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 1;
    text.split_whitespace().filter(is_word).nth(1).is_some() || is_long_line(text)
}

/// Checks whether a text in a script without white space is as long as a sentence: eight letters or more.
fn is_long_line(text: &str) -> bool {
    text.chars().filter(|c| !c.is_ascii() && c.is_alphabetic()).nth(7).is_some()
}

/// Checks whether an object has the keys of a tool call or a tool result.
fn is_call(object: &Map<String, Value>) -> bool {
    const IDS: [&str; 6] = ["tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "callId", "call_id"];
    const NAMES: [&str; 4] = ["name", "toolName", "tool_name", "function_name"];
    const ARGUMENTS: [&str; 6] = ["arguments", "args", "input", "tool_input", "kwargs", "tool_kwargs"];
    let has = |keys: &[&str]| keys.iter().any(|key| object.get(*key).is_some_and(|value| !value.is_null()));
    // A name alone is usual in metadata, so it counts only together with arguments.
    has(&IDS) || has(&NAMES) && has(&ARGUMENTS) || object.get("function").is_some_and(Value::is_object)
}
