//! The crate's own JSON form of messages. It contains every field, so that a log reads back unchanged.

use super::{Message, Part, Reasoning, Role, ToolCall, Written};
use crate::item::ItemId;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};

#[derive(Serialize, Deserialize)]
struct Stored {
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<ItemId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reasoning: Vec<Reasoning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<Box<Written>>,
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An outline would be stored as an empty message, and its text would be lost.
        if !self.is_loaded() {
            return Err(S::Error::custom(
                "the message is not fully loaded; load its texts from the store first",
            ));
        }
        let extra = self.extra().cloned().unwrap_or_default();
        let rare = *extra.rare.0.unwrap_or_default();
        let stored = Stored {
            role: self.role(),
            id: extra.id,
            text: self.text().into(),
            name: rare.name.map(Into::into),
            parts: rare.parts,
            calls: extra.calls.into(),
            answers: extra.answers.map(Into::into),
            failed: extra.failed,
            reasoning: rare.reasoning,
            written: rare.written,
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let message = Self::new(stored.role, stored.text);
        // A plain message must not allocate the optional fields: most messages of a log are plain.
        let plain = stored.id.is_none()
            && stored.name.is_none()
            && stored.parts.is_empty()
            && stored.calls.is_empty()
            && stored.answers.is_none()
            && !stored.failed
            && stored.reasoning.is_empty()
            && stored.written.is_none();
        if plain {
            return Ok(message);
        }
        Ok(message.edit(|extra| {
            extra.id = stored.id;
            extra.rare.name = stored.name.map(Into::into);
            extra.rare.parts = stored.parts;
            extra.calls = stored.calls.into();
            extra.answers = stored.answers.map(Into::into);
            extra.failed = stored.failed;
            extra.rare.reasoning = stored.reasoning;
            extra.rare.written = stored.written;
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::WireFormat;

    #[test]
    fn stored_message_round_trips() {
        let opaque = Part::Opaque { wire_format: WireFormat::Anthropic, json: "{\"type\":\"x\"}".into() };
        let image = Part::Image { url: "data:image/png;base64,AA==".into(), detail: Some("low".into()) };
        for message in [
            Message::user("<|endoftext|> \u{202e}\0 \"\n"),
            Message::user("a").with_name("Ada").with_id("first").with_parts([
                Part::Text("b".into()),
                image,
                opaque,
            ]),
            Message::assistant("")
                .with_reasoning(Reasoning::signed(WireFormat::Anthropic, "hm", "c2VhbA==").with_id("r"))
                .with_tool_calls([ToolCall::new("c", "look", "{\"a\":").with_signature("s")]),
            Message::tool("c", "").into_failed(),
        ] {
            let json = serde_json::to_string(&message).unwrap();
            assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message, "{json}");
        }
    }
}
