//! The shape of a file: its outer keys and first messages, which identify its tool. The first messages are
//! enough for most files, so the cost does not depend on the size of the file.

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::fmt;

/// Keys that hold the messages of a conversation, in any tool.
const CONTAINERS: [&str; 11] = [
    "messages",
    "chat_messages",
    "chat_history",
    "contents",
    "history",
    "conversation",
    "parts",
    "input",
    "prompt",
    "entries",
    "inputs",
];

/// Keys that end the examination, because they identify the tool.
const ENOUGH: [&str; 8] =
    ["mapping", "context_window", "rag", "passages", "pinned", "previous", "conversations", "resourceSpans"];

/// Maximum number of messages examined at first.
const FIRST: usize = 8;

/// The shape of a file.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// The keys of the object around the messages. Empty for a list and for lines.
    pub(crate) keys: Vec<String>,
    /// The key that holds the messages.
    pub(crate) container: String,
    /// True if every message is a line of its own.
    pub(crate) is_lines: bool,
    /// The first messages, or all of them.
    pub(crate) messages: Vec<Value>,
}

impl Shape {
    /// Examines one value of a file. Reads all messages if `whole` is true, or the first ones.
    pub(crate) fn read(json: &str, whole: bool) -> Self {
        let mut shape = Self::default();
        let most = if whole { usize::MAX } else { FIRST };
        let outside = Outside { shape: &mut shape, most };
        // An error here only means that enough was read, or that the text is not JSON, which is reported
        // later.
        drop(outside.deserialize(&mut serde_json::Deserializer::from_str(json)));
        shape
    }

    /// Examines the first values of a file whose values are one session. Reads all of them if `whole` is
    /// true.
    pub(crate) fn read_lines<'a>(lines: impl Iterator<Item = &'a str>, whole: bool) -> Self {
        let most = if whole { usize::MAX } else { FIRST };
        let messages = lines.take(most).filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { is_lines: true, messages, ..Self::default() }
    }

    /// Checks whether the object around the messages has a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own == key)
    }

    /// Checks whether one message has all the keys.
    pub(crate) fn any_has(&self, keys: &[&str]) -> bool {
        self.messages.iter().any(|message| keys.iter().all(|key| message.get(key).is_some()))
    }

    /// Checks whether an element of the list `list` in some message fits.
    pub(crate) fn any_part(&self, list: &str, fits: impl Fn(&Value) -> bool) -> bool {
        let lists = self.messages.iter().filter_map(|message| message.get(list)?.as_array());
        lists.flatten().any(fits)
    }
}

/// Returns the text of a key. Returns an empty text if there is none.
pub(crate) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

struct Outside<'s> {
    shape: &'s mut Shape,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Outside<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outside<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let is_enough = ENOUGH.contains(&&*key);
            // The first key with messages counts. A later one may belong to metadata.
            let is_container = CONTAINERS.contains(&&*key) && self.shape.messages.is_empty();
            self.shape.keys.push(key.clone());
            if is_enough && self.most != usize::MAX {
                return Err(A::Error::custom("seen enough"));
            }
            if is_container {
                self.shape.container = key;
                map.next_value_seed(Inside { messages: &mut self.shape.messages, most: self.most })?;
                // An empty value does not identify the container, so a later key may still do so.
                if self.shape.messages.is_empty() {
                    self.shape.container.clear();
                }
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        Inside { messages: &mut self.shape.messages, most: self.most }.visit_seq(list)
    }
}

/// The messages of a list. Any other value is skipped.
struct Inside<'s> {
    messages: &'s mut Vec<Value>,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for Inside<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Inside<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(message) = list.next_element()? {
            self.messages.push(message);
            if self.messages.len() == self.most {
                // An error is the only way to stop serde early. `Shape::read` ignores it.
                return Err(A::Error::custom("seen enough"));
            }
        }
        Ok(())
    }
}
