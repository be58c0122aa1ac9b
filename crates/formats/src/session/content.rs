//! What a message of the wire says.

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;

/// What a message says: nothing, a text, or a list of parts as they came.
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

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, null or a list of parts")
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

/// A part that is a text, of whatever kind.
#[derive(Deserialize)]
struct TextPart {
    r#type: String,
    text: String,
}

impl Content {
    /// The parts; a text is one.
    fn into_parts(self) -> Vec<Box<RawValue>> {
        match self {
            Self::Null => Vec::new(),
            Self::Text(text) => to_raw_value(&text).into_iter().collect(),
            Self::Parts(parts) => parts,
        }
    }

    /// Goes on with more of the same message. What stands in both, as it does where a writer repeats itself,
    /// is there once.
    pub(crate) fn extend(&mut self, more: Self) {
        // A writer repeats what it has just written: looking at all there is would take forever in a file
        // made for that.
        const LOOKED_AT: usize = 32;
        let mut parts = std::mem::take(self).into_parts();
        for part in more.into_parts() {
            if !parts.iter().rev().take(LOOKED_AT).any(|before| before.get() == part.get()) {
                parts.push(part);
            }
        }
        *self = Self::Parts(parts);
    }

    /// Takes the texts out, as one; what else there is stays.
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
