//! Unknown keys of messages that contain a text, a call or a result (lossless reading, J3), and keys that are
//! probably misspelt.

use super::{
    chat::LogKeys,
    content::Content,
    wire::{self, MESSAGE_KEYS},
};
use crate::scan;
use context_window::{text::plain, text::plain::short};
use std::collections::BTreeMap;

/// Usual names for the content of a message in other tools.
const CONTENT: [&str; 12] = [
    "text", "message", "value", "parts", "body", "contents", "items", "blocks", "mes", "msg", "output",
    "response",
];

/// Keys without content. Ignoring one of them loses no part of a message.
const SETTINGS: [&str; 6] = ["id", "name", "pinned", "priority", "ttl", "ttl_asked"];

/// The unknown keys found, each with the key that was probably meant.
#[derive(Default)]
pub(crate) struct UnreadKeys {
    /// A cache of suggestions, since the messages of a log have the same keys.
    meant: BTreeMap<String, Option<&'static str>>,
    met: Vec<Met>,
    /// The number of keys that are not named.
    more: usize,
}

/// Maximum number of keys named in notes.
const MOST: usize = 8;

/// An unknown key of one or more messages.
struct Met {
    key: String,
    /// The key that was probably meant. `None` for a key with a text of the log's own.
    meant: Option<&'static str>,
    /// The place of the first message with this key.
    first: String,
    messages: u64,
}

/// An unknown key whose value would be lost.
pub(crate) struct Lost {
    pub(crate) key: String,
    pub(crate) detail: String,
}

impl UnreadKeys {
    /// Records the unknown keys of the message at index `at`, and returns those whose values would be lost.
    pub(crate) fn look_at(&mut self, at: usize, message: &wire::Message, log_keys: &LogKeys) -> Vec<Lost> {
        // Keys beyond these bounds are not typing errors, and the search for a near key would be slow.
        const MOST_KEYS: usize = 32;
        const LONGEST: usize = 100;
        let mut lost = Vec::new();
        let unread = message.keys.iter().filter(|key| key.unread.is_some());
        for (nth, key) in unread.enumerate() {
            let (name, json) = (key.name.as_ref(), key.unread.as_deref().map_or("null", |value| value.get()));
            let meant =
                if nth < MOST_KEYS && name.len() <= LONGEST { self.meant(name, message) } else { None };
            if let Some(found) = found(message, name, json, meant, log_keys) {
                let hint = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
                let detail = format!("is unknown and contains {found}{hint} (--lenient leaves it out)");
                lost.push(Lost { key: name.to_owned(), detail });
            } else if meant.is_some() || is_own_text(message, name, json, log_keys) {
                self.note_key(at, message, name, meant);
            }
        }
        lost
    }

    /// Returns the key that was probably meant, if the message does not have it.
    fn meant(&mut self, key: &str, message: &wire::Message) -> Option<&'static str> {
        if !self.meant.contains_key(key) {
            self.meant.insert(key.to_owned(), plain::nearest(key, MESSAGE_KEYS));
        }
        let says = CONTENT.contains(&key) && !message.holds_anything();
        let meant = says.then_some("content").or(self.meant[key]);
        // If the message has the right key too, this one has another meaning.
        meant.filter(|meant| !has(message, meant))
    }

    fn note_key(&mut self, at: usize, message: &wire::Message, key: &str, meant: Option<&'static str>) {
        if let Some(met) = self.met.iter_mut().find(|met| met.key == key && met.meant == meant) {
            met.messages += 1;
        } else if self.met.len() == MOST {
            self.more += 1;
        } else {
            let id = message.id.as_ref().map(|id| format!(" (`{}`)", short(&id.to_string())));
            let first = format!("messages[{at}]{}", id.unwrap_or_default());
            self.met.push(Met { key: key.to_owned(), meant, first, messages: 1 });
        }
    }

    /// Returns one note for each recorded key, and one for all further keys.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let more = plain::grouped(self.more as u64);
        let more = (self.more > 0).then(|| format!("{more} more keys of messages are not read"));
        let note = |met: &Met| {
            let others = match met.messages {
                1 => String::new(),
                n => format!(", and of {} more messages,", plain::grouped(n - 1)),
            };
            let (key, first) = (short(&met.key), &met.first);
            match met.meant {
                Some(meant) => {
                    format!("the key `{key}` of {first}{others} is not read; did you mean `{meant}`?")
                }
                None => format!("the key `{key}` of {first}{others} is not read; it contains text"),
            }
        };
        self.met.iter().map(note).chain(more)
    }
}

/// Returns a name for the content under a key, if that content would be lost.
fn found(
    message: &wire::Message,
    key: &str,
    json: &str,
    meant: Option<&'static str>,
    log_keys: &LogKeys,
) -> Option<&'static str> {
    if !scan::is_something(json) {
        return None;
    }
    let says_more = |found: scan::Found| (!is_said(message, &found)).then_some(found.name);
    let is_read =
        matches!(key, "refusal" | "reasoning" | "reasoning_details" | "thinking" | "tool_plan" | "images");
    if is_read && log_keys.is_sent(message.role, key) {
        return None;
    }
    if log_keys.is_sent(message.role, key) && message.says_anything() {
        // The value is sent with its message, but a call inside it would be missing from the conversation.
        return scan::find_call(json).and_then(says_more);
    }
    if let Some(meant) = meant.filter(|meant| !SETTINGS.contains(meant)) {
        // Under a misspelt name, any value is content.
        return Some(if meant == "content" { "text" } else { "a value" }).filter(|_| {
            serde_json::from_str(json)
                .map_or(true, |text: String| !is_said(message, &scan::Found::text(text)))
        });
    }
    if json.starts_with('"') {
        let is_content = CONTENT.contains(&key) || !message.says_anything();
        // A single word may be the whole answer if the message has no other content.
        if CONTENT.contains(&key) && !message.says_anything() {
            let text = serde_json::from_str::<String>(json).ok().filter(|text| !text.trim().is_empty());
            return text.map(scan::Found::text).and_then(says_more);
        }
        return scan::find_prose(json).filter(|_| is_content).and_then(says_more);
    }
    let found = if message.says_anything() { scan::find_part(json) } else { scan::find_any(json) };
    found.and_then(says_more)
}

/// Checks whether a key holds a text that is neither sent nor part of the message's content. Logs contain
/// such texts of their own.
fn is_own_text(message: &wire::Message, key: &str, json: &str, log_keys: &LogKeys) -> bool {
    let found = || scan::find_prose(json).filter(|found| !is_said(message, found));
    json.starts_with('"') && !log_keys.is_sent(message.role, key) && found().is_some()
}

/// Checks whether the content of a message also contains a text. Some logs contain every text twice.
fn is_said(message: &wire::Message, found: &scan::Found) -> bool {
    let Some(text) = found.text.as_deref().map(str::trim) else { return false };
    match &message.content {
        Content::Null => false,
        Content::Text(content) => content.contains(text),
        Content::Parts(parts) => {
            let escaped = scan::escaped(text);
            parts.iter().any(|part| part.get().contains(&escaped))
        }
    }
}

/// Checks whether a message has a value under a key.
fn has(message: &wire::Message, key: &str) -> bool {
    match key {
        "role" => true,
        "id" => message.id.is_some(),
        "content" => !matches!(message.content, Content::Null),
        "name" => message.name.is_some(),
        "tool_calls" => message.tool_calls.is_some(),
        "tool_call_id" => message.tool_call_id.is_some(),
        "function_call" => message.function_call.is_some(),
        "reasoning_content" => message.reasoning_content.is_some(),
        "audio" => message.audio.is_some(),
        "pinned" => message.pinned.is_some(),
        "priority" => message.priority.is_some(),
        "ttl" => message.ttl.is_some(),
        _ => message.ttl_asked.is_some(),
    }
}

/// Returns a name for the call or result inside a part of another tool, which no provider accepts. Returns
/// `None` for a part that its provider may accept.
pub(crate) fn foreign_part(json: &str, kind: Option<&str>) -> Option<&'static str> {
    const OF_TOOLS: [&str; 8] = [
        "\"toolCallId\"",
        "\"toolUseId\"",
        "\"toolInvocation\"",
        "\"toolCall\"",
        "\"toolResult\"",
        "\"toolUse\"",
        "\"block_type\"",
        "\"$type\"",
    ];
    if kind.is_none() {
        return scan::find_any(json).map(|found| found.name);
    }
    let has = OF_TOOLS.iter().any(|key| json.contains(key));
    has.then(|| scan::find_call(json)).flatten().map(|found| found.name)
}
