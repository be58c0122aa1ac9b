//! The outer fields of a transcript's event, which identify its writer and its thread.

use super::Writer;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// Keys of sessions: every value that is read as a session by itself has at least one of them.
const OF_SESSIONS: [&str; 9] =
    ["messages", "contents", "input", "instructions", "system", "rag", "passages", "query", "conversations"];

/// The kind of content in an event.
#[derive(Default, PartialEq, Eq)]
enum EventContent {
    #[default]
    Nothing,
    Message,
    Payload,
}

/// The outer fields of an event. A field with a wrong type counts as missing, and the reader of the event
/// reports it.
#[derive(Default)]
pub(super) struct Envelope {
    kind: String,
    pub(super) uuid: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) is_sidechain: bool,
    inside: EventContent,
    /// The id of the session in the payload of a `session_meta` event.
    pub(super) payload_id: Option<String>,
    of_session: bool,
}

impl Envelope {
    /// Reads the outer fields of a value. Returns `None` if the value is read as a session by itself.
    pub(super) fn read(json: &str) -> Option<Self> {
        match json.as_bytes().first() {
            Some(b'{') => serde_json::from_str(json).ok().filter(|event: &Self| !event.of_session),
            Some(b'[') => None,
            _ => Some(Self::default()),
        }
    }

    /// Returns the writer of the event. Returns `None` if the event does not identify one agent.
    pub(super) fn writer(&self) -> Option<Writer> {
        // Events of other tools have the types `user` and `assistant` too, but not with a uuid or a session
        // id.
        let is_named = self.uuid.is_some() || self.session.is_some();
        match &*self.kind {
            _ if self.is_message() && is_named => Some(Writer::ClaudeCode),
            "session_meta" | "response_item" if self.inside == EventContent::Payload => Some(Writer::Codex),
            _ => None,
        }
    }

    /// Checks whether the event is a message of Claude Code.
    pub(super) fn is_message(&self) -> bool {
        self.inside == EventContent::Message && matches!(&*self.kind, "user" | "assistant")
    }

    pub(super) fn is_session_meta(&self) -> bool {
        self.kind == "session_meta"
    }

    fn read_key<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "type" => self.kind = map.next_value::<ValueOutline>()?.text.unwrap_or_default(),
            "uuid" => self.uuid = map.next_value::<ValueOutline>()?.text,
            "parentUuid" => self.parent = map.next_value::<ValueOutline>()?.text,
            "sessionId" => self.session = map.next_value::<ValueOutline>()?.text,
            "agentId" => self.agent = map.next_value::<ValueOutline>()?.text,
            "isSidechain" => self.is_sidechain = map.next_value::<ValueOutline>()?.is_true,
            "message" => {
                if map.next_value::<ValueOutline>()?.is_object {
                    self.inside = EventContent::Message;
                }
            }
            "payload" => {
                let payload = map.next_value::<ValueOutline>()?;
                if payload.is_object {
                    (self.inside, self.payload_id) = (EventContent::Payload, payload.id);
                }
            }
            key => {
                // A single such key is enough: the value is then read as a session and never as an event.
                self.of_session |= OF_SESSIONS.contains(&key);
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event: an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope, A::Error> {
        let mut event = Envelope::default();
        while let Some(key) = map.next_key::<String>()? {
            event.read_key(&key, &mut map)?;
        }
        Ok(event)
    }
}

/// The outside of a value: its type, and its text or id.
#[derive(Default)]
struct ValueOutline {
    text: Option<String>,
    is_true: bool,
    is_object: bool,
    /// The `id` of an object.
    id: Option<String>,
}

impl<'de> Deserialize<'de> for ValueOutline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GlanceVisitor)
    }
}

struct GlanceVisitor;

impl<'de> Visitor<'de> for GlanceVisitor {
    type Value = ValueOutline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<ValueOutline, E> {
        Ok(ValueOutline::default())
    }

    fn visit_bool<E>(self, is_true: bool) -> Result<ValueOutline, E> {
        Ok(ValueOutline { is_true, ..ValueOutline::default() })
    }

    fn visit_i64<E>(self, _: i64) -> Result<ValueOutline, E> {
        Ok(ValueOutline::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<ValueOutline, E> {
        Ok(ValueOutline::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<ValueOutline, E> {
        Ok(ValueOutline::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<ValueOutline, E> {
        Ok(ValueOutline { text: Some(text.to_owned()), ..ValueOutline::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ValueOutline, A::Error> {
        // The elements are skipped and not stored, so a large event costs no memory here.
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ValueOutline::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ValueOutline, A::Error> {
        let mut id = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "id" {
                id = map.next_value::<OnlyText>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(ValueOutline { is_object: true, id, ..ValueOutline::default() })
    }
}

/// A string, or any other value.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextOr {
    Text(String),
    Other(IgnoredAny),
}

struct OnlyText(Option<String>);

impl<'de> Deserialize<'de> for OnlyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match TextOr::deserialize(deserializer)? {
            TextOr::Text(text) => Some(text),
            TextOr::Other(_) => None,
        }))
    }
}
