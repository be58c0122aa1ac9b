//! What is sent: messages, and the tools declared beside them.

use super::{Message, WireFormat};
use crate::text::object::Object;

/// A tool that the model may call.
///
/// ```
/// use context_window::{Conversation, Message, PlanRequest, Tool};
///
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let schema = r#"{"type": "object", "properties": {"country": {"type": "string"}}}"#;
/// let tools = [Tool::new("refund_policy", "How long refunds take in a country.", schema)];
/// let request = PlanRequest::new(&log).with_tools(&tools);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The function's name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its parameters, as text; empty where it takes none.
    pub schema: String,
    /// For a tool that the provider runs itself (web search, code execution): its wire format, and its whole definition in
    /// it. It is sent in that form only.
    pub hosted: Option<(WireFormat, String)>,
    /// For a function whose definition says more than the other fields, or says it in another order: its wire format, and the
    /// definition with `""` under the keys that the other fields fill. It is sent in that form only.
    pub written: Option<(WireFormat, String)>,
}

impl Tool {
    /// A tool with its name, description and parameter schema (JSON text).
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: impl Into<String>) -> Self {
        let (name, description, schema) = (name.into(), description.into(), schema.into());
        Self { name, description, schema, hosted: None, written: None }
    }

    /// A tool that the provider runs itself: a name for it, its wire format, and its definition there (JSON text).
    #[must_use]
    pub fn hosted(name: impl Into<String>, wire_format: WireFormat, json: impl Into<String>) -> Self {
        Self { hosted: Some((wire_format, json.into())), ..Self::new(name, "", "") }
    }

    /// Returns the fields of a provider's definition that no field of a tool holds: name and JSON.
    pub(crate) fn further_fields(&self) -> Vec<(String, String)> {
        const HELD: [&str; 7] = [
            "type",
            "name",
            "description",
            "parameters",
            "input_schema",
            "parametersJsonSchema",
            "parameters_json_schema",
        ];
        let Some(definition) = self.written.as_ref().and_then(|(_, json)| Object::parse(json)) else {
            return Vec::new();
        };
        let function = definition.get("function").and_then(Object::parse).unwrap_or_default();
        let own = definition.iter().filter(|(name, _)| *name != "function").chain(function.iter());
        let further = own.filter(|(name, value)| !HELD.contains(name) && *value != "null");
        further.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Returns the definition of a function as its provider wrote it, if that was in this wire format.
    pub(crate) fn written_in(&self, wire_format: WireFormat) -> Option<&str> {
        let written = self.written.as_ref().filter(|(own, _)| *own == wire_format);
        written.map(|(_, json)| json.as_str())
    }

    /// The definition of a tool that the provider runs itself.
    #[doc(hidden)]
    #[must_use]
    pub fn hosted_json(&self) -> Option<&str> {
        self.hosted.as_ref().map(|(_, json)| json.as_str())
    }
}

/// What a plan sends: its messages in order and the tools beside them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    #[doc(hidden)]
    pub messages: Vec<Message>,
    #[doc(hidden)]
    pub tools: Vec<Tool>,
    /// The wire format whose demands the messages meet; none where they are as they came.
    pub(crate) wire_format: Option<WireFormat>,
    /// What the target wants said beside the messages.
    pub(crate) wants: Wants,
    /// Where a cache breakpoint pays, in prompt order.
    pub(crate) marks: Vec<Mark>,
}

/// What a target wants on the wire that is no part of any message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// A signature on the first call of each step of the current turn (Gemini 3).
    pub(crate) signed_calls: bool,
    /// Reasoning on every assistant message of a prompt with tools, if only an empty one.
    pub(crate) reasoning: bool,
    /// Marks of cache breakpoints are understood.
    pub(crate) breakpoints: bool,
}

/// The end of a part of the prompt that the next one begins with too: a message, and which of its parts, from 0; text
/// that is no part counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) message: usize,
    pub(crate) part: usize,
}

impl Prompt {
    /// The messages, in the order in which they are sent.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The tools declared beside the messages.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }
}

/// Messages that no plan was made of, to be rendered as they are for any wire format.
impl From<Vec<Message>> for Prompt {
    fn from(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }
}

impl AsRef<Self> for Prompt {
    fn as_ref(&self) -> &Self {
        self
    }
}
