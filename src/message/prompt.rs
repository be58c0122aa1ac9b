//! The sent prompt: messages and tool declarations.

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
    /// The name of the function.
    pub name: String,
    /// The description of the function, for the model.
    pub description: String,
    /// The JSON schema of the parameters as text. Empty if the function takes none.
    pub schema: String,
    /// For a tool that the provider runs itself (web search, code execution): its wire format and its whole
    /// definition. It is sent in that format only.
    pub hosted: Option<(WireFormat, String)>,
    /// For a function whose original definition has more fields, or another order. Holds its wire format and
    /// the definition, with `""` under the keys that the other fields fill. It is sent in that format only.
    pub written: Option<(WireFormat, String)>,
}

impl Tool {
    /// The name of the tool that reads offloaded results and earlier messages (rule S7).
    #[doc(hidden)]
    pub const RECALL: &str = "recall";

    /// Creates a tool with its name, description and parameter schema (JSON text).
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: impl Into<String>) -> Self {
        let (name, description, schema) = (name.into(), description.into(), schema.into());
        Self { name, description, schema, hosted: None, written: None }
    }

    /// Creates a tool that the provider runs itself, from a name, its wire format and its definition in that
    /// format (JSON text).
    #[must_use]
    pub fn hosted(name: impl Into<String>, wire_format: WireFormat, json: impl Into<String>) -> Self {
        Self { hosted: Some((wire_format, json.into())), ..Self::new(name, "", "") }
    }

    /// Checks if this tool reads offloaded results (rule S7). An application may have a tool of its own with
    /// the same name.
    #[doc(hidden)]
    #[must_use]
    pub fn reads_results(&self) -> bool {
        self.name == Self::RECALL && self.hosted.is_none() && self.schema.contains("\"handle\"")
    }

    /// Returns the fields of the original definition that have no field in [`Tool`], as name and JSON.
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
        // Chat Completions nests the definition under `function`; its fields count like those of the outer
        // object.
        let function = definition.get("function").and_then(Object::parse).unwrap_or_default();
        let own = definition.iter().filter(|(name, _)| *name != "function").chain(function.iter());
        // Null means an unset field, so it is left out.
        let further = own.filter(|(name, value)| !HELD.contains(name) && *value != "null");
        further.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Returns the original definition of a function, if it is in this wire format.
    pub(crate) fn written_in(&self, wire_format: WireFormat) -> Option<&str> {
        let written = self.written.as_ref().filter(|(own, _)| *own == wire_format);
        written.map(|(_, json)| json.as_str())
    }

    /// Returns the definition of a tool that the provider runs itself.
    #[doc(hidden)]
    #[must_use]
    pub fn hosted_json(&self) -> Option<&str> {
        self.hosted.as_ref().map(|(_, json)| json.as_str())
    }
}

/// The sent form of a plan: its messages in order and the tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    #[doc(hidden)]
    pub messages: Vec<Message>,
    #[doc(hidden)]
    pub tools: Vec<Tool>,
    /// The wire format whose requirements the messages meet. `None` if they were not adapted.
    pub(crate) wire_format: Option<WireFormat>,
    /// Requirements of the target that concern no single message.
    pub(crate) requirements: TargetRequirements,
    /// Places at which a cache breakpoint pays off, in prompt order.
    pub(crate) marks: Vec<Mark>,
}

/// Requirements of a target on the wire that are not part of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TargetRequirements {
    /// True if the first call of each step of the current turn needs a signature (Gemini 3).
    pub(crate) signed_calls: bool,
    /// True if every assistant message of a prompt with tools needs reasoning, even an empty one.
    pub(crate) reasoning: bool,
    /// True if the target accepts cache breakpoints.
    pub(crate) breakpoints: bool,
}

/// The end of a part of the prompt that the next prompt repeats: a message, and the index of one of its
/// parts, from 0. Plain text counts as one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) message: usize,
    pub(crate) part: usize,
}

impl Prompt {
    /// Returns the messages in the order in which they are sent.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the tools declared with the messages.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }
}

/// Messages without a plan, rendered unchanged in any wire format.
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
