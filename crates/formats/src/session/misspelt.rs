//! Keys of messages that are not read although a key that is read was probably meant: what they hold is in no prompt.

use super::{
    content::Content,
    wire::{self, MESSAGE_KEYS},
};
use context_window::{text::plain, text::plain::short};
use std::collections::BTreeMap;

/// What others call what a message says.
const CONTENT: [&str; 5] = ["text", "message", "value", "parts", "body"];

/// The keys that were met, each with the one that may have been meant.
#[derive(Default)]
pub(super) struct Keys {
    /// Looked up once: the keys of a log are the same in every message.
    meant: BTreeMap<String, Option<&'static str>>,
    met: Vec<Met>,
    /// How often there was another one, after so many.
    more: usize,
}

/// So many different keys are told.
const MOST: usize = 8;

/// A key in one message or more.
struct Met {
    key: String,
    meant: &'static str,
    /// The first message that has it.
    first: String,
    messages: u64,
}

impl Keys {
    /// Takes down the keys of the message at this index that nobody reads.
    pub(super) fn look_at(&mut self, at: usize, message: &wire::Message) {
        // More keys than any message has, and longer ones, are no slips of the hand.
        const MOST_KEYS: usize = 32;
        const LONGEST: usize = 100;
        let unread = message.keys.iter().filter(|key| key.unread.is_some() && key.name.len() <= LONGEST);
        for key in unread.take(MOST_KEYS).map(|key| key.name.as_ref()) {
            if !self.meant.contains_key(key) {
                self.meant.insert(key.to_owned(), plain::nearest(key, MESSAGE_KEYS));
            }
            let says = CONTENT.contains(&key) && !message.holds_anything();
            let meant = says.then_some("content").or(self.meant[key]);
            // Where the right key is there too, the other one is something else.
            let Some(meant) = meant.filter(|meant| !has(message, meant)) else { continue };
            if let Some(met) = self.met.iter_mut().find(|met| met.key == key && met.meant == meant) {
                met.messages += 1;
                continue;
            }
            if self.met.len() == MOST {
                self.more += 1;
                continue;
            }
            let id = message.id.as_ref().map(|id| format!(" (`{}`)", short(&id.to_string())));
            let first = format!("messages[{at}]{}", id.unwrap_or_default());
            self.met.push(Met { key: key.to_owned(), meant, first, messages: 1 });
        }
    }

    /// One note for each of the first keys.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let more = plain::grouped(self.more as u64);
        let more = (self.more > 0).then(|| format!("{more} more keys of messages are not read"));
        let note = |met: &Met| {
            let others = match met.messages {
                1 => String::new(),
                n => format!(", and of {} more messages,", plain::grouped(n - 1)),
            };
            let (key, first, meant) = (short(&met.key), &met.first, met.meant);
            format!("the key `{key}` of {first}{others} is not read; did you mean `{meant}`?")
        };
        self.met.iter().map(note).chain(more)
    }
}

/// Whether a message has something under a key.
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
