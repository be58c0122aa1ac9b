//! The content of a wire message.

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;

/// The content of a message: null, a string, or a list of parts as raw JSON.
#[derive(Default)]
pub(crate) enum Content {
    #[default]
    Null,
    Text(String),
    Parts(Vec<Box<RawValue>>),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

// A visitor and not an untagged enum, because serde cannot read a `RawValue` from buffered content.
struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, null or an array of parts")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element()? {
            parts.push(part);
        }
        Ok(Content::Parts(parts))
    }
}

/// A part with a text, of any type.
#[derive(Deserialize)]
struct TextPart {
    r#type: String,
    text: String,
}

impl Content {
    /// Returns the parts. A string becomes one part.
    fn into_parts(self) -> Vec<Box<RawValue>> {
        match self {
            Self::Null => Vec::new(),
            Self::Text(text) => to_raw_value(&text).into_iter().collect(),
            Self::Parts(parts) => parts,
        }
    }

    /// Appends more content of the same message. A part that is already in the content is not added again,
    /// because some writers repeat themselves.
    pub(crate) fn extend(&mut self, more: Self) {
        // A writer repeats its most recent parts. A search of all parts would be quadratic for a hostile
        // file.
        const LOOKED_AT: usize = 32;
        let mut parts = std::mem::take(self).into_parts();
        for part in more.into_parts() {
            if !parts.iter().rev().take(LOOKED_AT).any(|before| before.get() == part.get()) {
                parts.push(part);
            }
        }
        *self = Self::Parts(parts);
    }

    /// Removes the texts and returns them as one, separated by blank lines. Other parts stay.
    pub(crate) fn take_texts(&mut self) -> String {
        match std::mem::take(self) {
            Self::Null => String::new(),
            Self::Text(text) => text,
            Self::Parts(parts) => {
                let (mut texts, mut rest) = (Vec::new(), Vec::new());
                for part in parts {
                    match text_of(&part) {
                        Some(text) => texts.push(text),
                        None => rest.push(part),
                    }
                }
                *self = if rest.is_empty() { Self::Null } else { Self::Parts(rest) };
                texts.join("\n\n")
            }
        }
    }
}

fn text_of(part: &RawValue) -> Option<String> {
    let whole =
        serde_json::from_str::<TextPart>(part.get()).ok().filter(|part| part.r#type.ends_with("text"));
    whole.map(|part| part.text).or_else(|| serde_json::from_str(part.get()).ok())
}
