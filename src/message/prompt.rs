//! What is sent: messages, and the tools declared beside them.

use super::Message;

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The function's name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON schema of its parameters, as text; empty where it takes none.
    pub schema: String,
}

impl Tool {
    /// A tool with its name, description and parameter schema (JSON text).
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), schema: schema.into() }
    }
}

/// What a plan sends: its messages in order and the tools beside them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<Tool>,
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

impl AsRef<Self> for Prompt {
    fn as_ref(&self) -> &Self {
        self
    }
}
