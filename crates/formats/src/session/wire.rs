//! The JSON shapes of a session file. Unknown fields are ignored, but known fields must have their type.

pub(crate) use super::id::{Id, Name};
use super::{
    content::Content,
    keys::{Key, Watched},
    passages::Passages,
};
use context_window::{
    ItemId, Priority, RequestLimits, Ttl, events::LogEvent, plan::Anchor, plan::RemoteContext,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;
use std::fmt;

/// A state entry inside a summary.
#[derive(Serialize, Deserialize)]
pub(crate) struct StateText {
    pub(crate) id: ItemId,
    pub(crate) text: String,
}

/// The messages of a session as a slice of its text.
#[derive(Deserialize)]
pub(crate) struct Messages<'a> {
    #[serde(borrow)]
    pub(crate) messages: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Session {
    pub(crate) id: Option<Id>,
    pub(crate) model: Option<String>,
    pub(crate) limits: Option<RequestLimits>,
    pub(crate) system: Option<System>,
    pub(crate) focus: Option<String>,
    pub(crate) tools: Option<Tools>,
    /// The older spelling of `tools`.
    pub(crate) functions: Option<Vec<Function>>,
    pub(crate) state: Option<Vec<Text>>,
    pub(crate) pinned: Option<Vec<Note>>,
    pub(crate) rules: Option<Vec<Rule>>,
    pub(crate) messages: Option<Vec<Message>>,
    /// The messages of Gemini, and its system text.
    pub(crate) contents: Option<Box<RawValue>>,
    #[serde(rename = "systemInstruction", alias = "system_instruction")]
    pub(crate) system_instruction: Option<Box<RawValue>>,
    /// The options of Google's Python SDK, which contain its system text and tools.
    pub(crate) config: Option<Box<RawValue>>,
    /// The messages of `OpenAI` Responses, and its system text. These keys and those of Gemini are read only
    /// without `messages`, because logs use the same names for other things.
    pub(crate) input: Option<Box<RawValue>>,
    pub(crate) instructions: Option<Box<RawValue>>,
    /// The messages of `ShareGPT`, read if no other key holds messages.
    pub(crate) conversations: Option<Box<RawValue>>,
    pub(crate) rag: Option<Passages>,
    /// Another spelling of `rag`.
    pub(crate) passages: Option<Passages>,
    pub(crate) query: Option<String>,
    pub(crate) previous: Option<Anchor>,
    /// The data that only this library writes.
    pub(crate) context_window: Option<Box<Own>>,
    /// The role of a single message. A session has none, so this key identifies a message in place of a
    /// session.
    pub(crate) role: Option<IgnoredAny>,
}

/// The options of Google's Python SDK that are separate from the contents.
#[derive(Default, Deserialize)]
pub(crate) struct GoogleConfig {
    #[serde(alias = "systemInstruction")]
    pub(crate) system_instruction: Option<Box<RawValue>>,
    pub(crate) tools: Option<Vec<Box<RawValue>>>,
}

/// The data that only this library writes: the options, the tokenizer, and the conversation with all its
/// events.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Own {
    pub(crate) version: u32,
    /// Options that differ from their defaults, as the tables of an options file.
    pub(crate) options: serde_json::Map<String, serde_json::Value>,
    pub(crate) tokenizer: String,
    pub(crate) events: Vec<LogEvent>,
    /// Remote context that the provider adds, if the request names any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remote: Vec<RemoteContext>,
    /// True if the reply has to follow a JSON schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) structured_output: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or an array of {\"id\", \"text\"}")]
pub(crate) enum System {
    One(String),
    Many(Vec<Text>),
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `text`")]
pub(crate) struct Text {
    pub(crate) id: Option<Id>,
    pub(crate) text: String,
}

#[derive(Deserialize)]
#[serde(expecting = "a pinned note: an object with id and text")]
pub(crate) struct Note {
    pub(crate) id: Id,
    pub(crate) text: String,
    pub(crate) priority: Option<Priority>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) ttl_asked: Option<bool>,
}

#[derive(Deserialize)]
#[serde(expecting = "a standing rule: an object with id and text")]
pub(crate) struct Rule {
    pub(crate) id: Id,
    pub(crate) text: String,
    /// The id of the user message that says it.
    pub(crate) message: Option<Id>,
}

/// Tool definitions: a list, or a string that contains one as JSON, as in `ShareGPT` files.
pub(crate) struct Tools(pub(crate) Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ToolsVisitor)
    }
}

// A visitor and not an untagged enum, because serde cannot read a `RawValue` from buffered content.
struct ToolsVisitor;

impl<'de> Visitor<'de> for ToolsVisitor {
    type Value = Tools;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of tools, or a string that contains the array as JSON")
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

/// A tool in its wrapper, or a bare function as in older logs.
#[derive(Deserialize)]
#[serde(expecting = "a tool: an object")]
pub(crate) struct Tool {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) function: Option<Function>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Box<RawValue>>,
    /// Anthropic's name for the parameters.
    pub(crate) input_schema: Option<Box<RawValue>>,
    /// The functions of Gemini, all in one tool.
    #[serde(rename = "functionDeclarations", alias = "function_declarations")]
    pub(crate) declarations: Option<Vec<Box<RawValue>>>,
}

/// A function declaration of Gemini.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Box<RawValue>>,
    #[serde(alias = "parameters_json_schema")]
    pub(crate) parameters_json_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a function: an object with a name")]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Box<RawValue>>,
}

/// A message. The derived implementation reads the fields; the implementation below also records the unknown
/// keys.
#[derive(Deserialize)]
#[serde(remote = "Self", expecting = "a message: an object with a role")]
pub(crate) struct Message {
    pub(crate) role: Role,
    pub(crate) id: Option<Id>,
    #[serde(default)]
    pub(crate) content: Content,
    pub(crate) name: Option<String>,
    pub(crate) tool_calls: Option<Vec<Call>>,
    pub(crate) tool_call_id: Option<Name>,
    pub(crate) function_call: Option<CalledFunction>,
    pub(crate) reasoning_content: Option<String>,
    /// The spoken reply of the assistant, referenced by its id.
    pub(crate) audio: Option<Box<RawValue>>,
    pub(crate) pinned: Option<bool>,
    pub(crate) priority: Option<Priority>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) ttl_asked: Option<bool>,
    /// The documents that were sent with a user message.
    pub(crate) documents: Option<Passages>,
    /// The keys of the message in their order, with the values of unread ones.
    #[serde(skip)]
    pub(crate) keys: Vec<Key>,
}

impl Message {
    /// Creates a message with a role and content only.
    pub(crate) fn new(role: Role, content: Content) -> Self {
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

    /// Checks whether the message has content, calls, an answered call or reasoning.
    pub(crate) fn has_any_data(&self) -> bool {
        self.has_content_or_calls() || self.tool_call_id.is_some()
    }

    /// Checks whether the message has content, calls or reasoning. A result that only names its call has none
    /// of these.
    pub(crate) fn has_content_or_calls(&self) -> bool {
        let says = match &self.content {
            Content::Null => false,
            Content::Text(text) => !text.is_empty(),
            Content::Parts(parts) => !parts.is_empty(),
        };
        says || self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
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
        // `remote = "Self"` makes the derived function an inherent one. It takes precedence over the trait's
        // function, so this call does not recurse.
        let mut message = Message::deserialize(MapAccessDeserializer::new(watched))?;
        message.keys = keys;
        Ok(message)
    }
}

/// The keys of a message that are read.
pub(crate) const MESSAGE_KEYS: [&str; 14] = [
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
pub(crate) enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    /// The role of a result of a legacy function call.
    Function,
}

/// A tool call, with its keys in their order.
#[derive(Deserialize)]
#[serde(remote = "Self", expecting = "a tool call: an object with a function")]
pub(crate) struct Call {
    pub(crate) id: Option<Name>,
    /// The call of a function, or of a custom tool with a text as its input.
    #[serde(alias = "custom")]
    pub(crate) function: CalledFunction,
    #[serde(skip)]
    pub(crate) keys: Vec<Key>,
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
        f.write_str("a tool call: an object with a function")
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
pub(crate) struct CalledFunction {
    pub(crate) name: String,
    /// The arguments: a string that contains JSON, or the JSON itself.
    #[serde(alias = "input")]
    pub(crate) arguments: Option<Box<RawValue>>,
    #[serde(skip)]
    pub(crate) keys: Vec<Key>,
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

/// The parts with a known `type`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a URL, or {\"url\", \"detail\"}")]
pub(crate) enum ImageUrl {
    Bare(String),
    Full { url: String, detail: Option<String> },
}

/// The type of a part, parsed alone to check if it is known.
#[derive(Deserialize)]
pub(crate) struct PartType {
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
}

/// The id of a session, parsed without the rest.
#[derive(Deserialize)]
pub(crate) struct OnlyId {
    pub(crate) id: Option<Id>,
}

/// Returns arguments as text: the value of a JSON string, or the JSON itself for any other value.
pub(crate) fn arguments(raw: Option<&RawValue>) -> String {
    let raw = raw.map_or("", RawValue::get);
    serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.into())
}
