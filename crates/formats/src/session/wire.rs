//! The shapes of a session file. Unknown fields are ignored; what is known has to have its type.

use super::{
    content::Content,
    keys::{Key, Watched},
};
use context_window::{
    ItemId, Priority, RagItem, RequestLimits, Ttl, events::LogEvent, plan::Anchor, plan::RemoteContext,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;
use std::fmt;

/// A piece of state inside a summary.
#[derive(Serialize, Deserialize)]
pub(super) struct StateText {
    pub(super) id: ItemId,
    pub(super) text: String,
}

/// Where the messages of a session are in its text.
#[derive(Deserialize)]
pub(super) struct Messages<'a> {
    #[serde(borrow)]
    pub(super) messages: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    pub(super) id: Option<Id>,
    pub(super) model: Option<String>,
    pub(super) limits: Option<RequestLimits>,
    pub(super) system: Option<System>,
    pub(super) focus: Option<String>,
    pub(super) tools: Option<Tools>,
    /// The older spelling of `tools`.
    pub(super) functions: Option<Vec<Function>>,
    pub(super) state: Option<Vec<Text>>,
    pub(super) pinned: Option<Vec<Note>>,
    pub(super) messages: Option<Vec<Message>>,
    /// The messages of Gemini, and its system text.
    pub(super) contents: Option<Box<RawValue>>,
    #[serde(rename = "systemInstruction", alias = "system_instruction")]
    pub(super) system_instruction: Option<Box<RawValue>>,
    /// The options of Google's Python SDK, which hold its system text and tools.
    pub(super) config: Option<Box<RawValue>>,
    /// The messages of `OpenAI` Responses, and its system text. All four are read only where there are no `messages`:
    /// logs carry keys of these names for things of their own.
    pub(super) input: Option<Box<RawValue>>,
    pub(super) instructions: Option<Box<RawValue>>,
    /// The messages of `ShareGPT`, read where there are none of the others.
    pub(super) conversations: Option<Box<RawValue>>,
    pub(super) rag: Option<Vec<Passage>>,
    /// Another spelling of `rag`.
    pub(super) passages: Option<Vec<Passage>>,
    pub(super) query: Option<String>,
    pub(super) previous: Option<Anchor>,
    /// What only this crate writes.
    pub(super) context_window: Option<Box<Own>>,
    /// No session has one; a message does.
    pub(super) role: Option<IgnoredAny>,
}

/// The options that Google's Python SDK takes beside the contents.
#[derive(Default, Deserialize)]
pub(super) struct GoogleConfig {
    #[serde(alias = "systemInstruction")]
    pub(super) system_instruction: Option<Box<RawValue>>,
    pub(super) tools: Option<Vec<Box<RawValue>>>,
}

/// What only this crate writes: the options, the tokenizer, and the conversation with everything that happened to it.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Own {
    pub(super) version: u32,
    /// Options that differ from their defaults, as the tables of a file of options.
    pub(super) options: serde_json::Map<String, serde_json::Value>,
    pub(super) tokenizer: String,
    pub(super) events: Vec<LogEvent>,
    /// Context that the provider adds, if the request names any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) remote: Vec<RemoteContext>,
}

/// Ids are texts; numbers are taken for theirs.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id: a text or a number")]
pub(super) enum Name {
    Text(String),
    Number(serde_json::Number),
}

impl Name {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The id of an item, which names it: an empty one would name nothing.
#[derive(Deserialize)]
#[serde(try_from = "Name")]
pub(super) struct Id(Name);

impl TryFrom<Name> for Id {
    type Error = &'static str;

    fn try_from(name: Name) -> Result<Self, &'static str> {
        match name {
            Name::Text(text) if text.is_empty() => Err("expected an id that is not empty, or none"),
            name => Ok(Self(name)),
        }
    }
}

impl Id {
    pub(super) fn into_text(self) -> String {
        self.0.into_text()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of {\"id\", \"text\"}")]
pub(super) enum System {
    One(String),
    Many(Vec<Text>),
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a text")]
pub(super) struct Text {
    pub(super) id: Option<Id>,
    pub(super) text: String,
}

#[derive(Deserialize)]
#[serde(expecting = "a pinned note: an object with id and text")]
pub(super) struct Note {
    pub(super) id: Id,
    pub(super) text: String,
    pub(super) priority: Option<Priority>,
    pub(super) ttl: Option<Ttl>,
    pub(super) ttl_asked: Option<bool>,
}

#[derive(Deserialize)]
#[serde(expecting = "a document: an object with id, text and score")]
pub(super) struct Passage {
    pub(super) id: Id,
    pub(super) text: String,
    pub(super) score: f64,
    pub(super) source: Option<String>,
    pub(super) ttl: Option<Ttl>,
}

impl Passage {
    pub(super) fn into_item(self) -> RagItem {
        let mut item = RagItem::new(self.id.into_text(), self.score, self.text);
        item.origin = self.source.map(Into::into);
        item.ttl = self.ttl;
        item
    }
}

/// Tool definitions: a list, or a text that holds one, as `ShareGPT` files have it.
pub(super) struct Tools(pub(super) Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ToolsVisitor)
    }
}

struct ToolsVisitor;

impl<'de> Visitor<'de> for ToolsVisitor {
    type Value = Tools;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of tools, or a text that holds one in JSON")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Tools, E> {
        let tools = serde_json::from_str(text);
        tools.map(Tools).map_err(|_| E::invalid_type(serde::de::Unexpected::Str(text), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tools, A::Error> {
        let mut tools = Vec::new();
        while let Some(tool) = list.next_element()? {
            tools.push(tool);
        }
        Ok(Tools(tools))
    }
}

/// A tool in its wrapper, or bare as older logs have it.
#[derive(Deserialize)]
#[serde(expecting = "a tool: an object")]
pub(super) struct Tool {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) function: Option<Function>,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Box<RawValue>>,
    /// Anthropic's name for the parameters.
    pub(super) input_schema: Option<Box<RawValue>>,
    /// Gemini has all functions in one tool.
    #[serde(rename = "functionDeclarations", alias = "function_declarations")]
    pub(super) declarations: Option<Vec<Box<RawValue>>>,
}

/// A function declaration of Gemini.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Box<RawValue>>,
    #[serde(alias = "parameters_json_schema")]
    pub(super) parameters_json_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a function: an object with a name")]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) parameters: Option<Box<RawValue>>,
}

/// A message. What is derived reads the fields; who reads a message also learns which keys were none of them.
#[derive(Deserialize)]
#[serde(remote = "Self", expecting = "a message: an object with a role")]
pub(super) struct Message {
    pub(super) role: Role,
    pub(super) id: Option<Id>,
    #[serde(default)]
    pub(super) content: Content,
    pub(super) name: Option<String>,
    pub(super) tool_calls: Option<Vec<Call>>,
    pub(super) tool_call_id: Option<Name>,
    pub(super) function_call: Option<CalledFunction>,
    pub(super) reasoning_content: Option<String>,
    /// What the assistant said aloud, by its id.
    pub(super) audio: Option<Box<RawValue>>,
    pub(super) pinned: Option<bool>,
    pub(super) priority: Option<Priority>,
    pub(super) ttl: Option<Ttl>,
    pub(super) ttl_asked: Option<bool>,
    /// The documents that a question was sent with.
    pub(super) documents: Option<Vec<Passage>>,
    /// Its keys in their order, with the values of those that are not read.
    #[serde(skip)]
    pub(super) keys: Vec<Key>,
}

impl Message {
    /// A message that only says something.
    pub(super) fn new(role: Role, content: Content) -> Self {
        Self {
            role,
            id: None,
            content,
            name: None,
            tool_calls: None,
            tool_call_id: None,
            function_call: None,
            reasoning_content: None,
            audio: None,
            pinned: None,
            priority: None,
            ttl: None,
            ttl_asked: None,
            documents: None,
            keys: Vec::new(),
        }
    }

    /// Whether it holds anything: something said, called, answered or thought.
    pub(super) fn holds_anything(&self) -> bool {
        let says = match &self.content {
            Content::Null => false,
            Content::Text(text) => !text.is_empty(),
            Content::Parts(parts) => !parts.is_empty(),
        };
        says || self.tool_call_id.is_some()
            || self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
            || self.function_call.is_some()
            || self.reasoning_content.is_some()
            || self.audio.is_some()
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message: an object with a role")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Message, A::Error> {
        let mut keys = Vec::new();
        let watched = Watched::new(map, &MESSAGE_KEYS, &mut keys);
        let mut message = Message::deserialize(MapAccessDeserializer::new(watched))?;
        message.keys = keys;
        Ok(message)
    }
}

/// The keys of a message that are read.
pub(super) const MESSAGE_KEYS: [&str; 14] = [
    "role",
    "id",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "reasoning_content",
    "audio",
    "pinned",
    "priority",
    "ttl",
    "ttl_asked",
    "documents",
];

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    /// The result of a legacy function call.
    Function,
}

/// A call, with its keys in their order.
#[derive(Deserialize)]
#[serde(remote = "Self", expecting = "a call: an object with a function")]
pub(super) struct Call {
    pub(super) id: Option<Name>,
    /// The call of a function, or of a tool that takes a text.
    #[serde(alias = "custom")]
    pub(super) function: CalledFunction,
    #[serde(skip)]
    pub(super) keys: Vec<Key>,
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallVisitor)
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = Call;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a call: an object with a function")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Call, A::Error> {
        let mut keys = Vec::new();
        let watched = Watched::new(map, &["id", "function", "custom"], &mut keys);
        let mut call = Call::deserialize(MapAccessDeserializer::new(watched))?;
        call.keys = keys;
        Ok(call)
    }
}

/// A called function, with its keys in their order.
#[derive(Deserialize)]
#[serde(remote = "Self", expecting = "a function call: an object with a name")]
pub(super) struct CalledFunction {
    pub(super) name: String,
    /// A text that holds JSON, or the JSON itself.
    #[serde(alias = "input")]
    pub(super) arguments: Option<Box<RawValue>>,
    #[serde(skip)]
    pub(super) keys: Vec<Key>,
}

impl<'de> Deserialize<'de> for CalledFunction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CalledFunctionVisitor)
    }
}

struct CalledFunctionVisitor;

impl<'de> Visitor<'de> for CalledFunctionVisitor {
    type Value = CalledFunction;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function call: an object with a name")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CalledFunction, A::Error> {
        let mut keys = Vec::new();
        let watched = Watched::new(map, &["name", "arguments", "input"], &mut keys);
        let mut function = CalledFunction::deserialize(MapAccessDeserializer::new(watched))?;
        function.keys = keys;
        Ok(function)
    }
}

/// The parts that are known by their `type`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an address, or {\"url\", \"detail\"}")]
pub(super) enum ImageUrl {
    Bare(String),
    Full { url: String, detail: Option<String> },
}

/// Only a part's type, to know whether it is known.
#[derive(Deserialize)]
pub(super) struct PartType {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

/// Only a session's id, read without the rest.
#[derive(Deserialize)]
pub(super) struct OnlyId {
    pub(super) id: Option<Id>,
}

/// Arguments as the text they are: unwrapped where they are a JSON text, as they came where they are JSON itself.
pub(super) fn arguments(raw: Option<&RawValue>) -> String {
    let raw = raw.map_or("", RawValue::get);
    serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.into())
}
