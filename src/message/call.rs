//! Tool calls.

use serde::{Deserialize, Serialize};

/// A tool call of the assistant. The arguments keep their original spelling.
///
/// ```
/// use context_window::{Message, ToolCall};
///
/// let call = ToolCall::new("call_1", "refund_policy", "{\"country\": \"NL\"}");
/// let asks = Message::assistant("").with_tool_calls([call]);
/// let answers = Message::tool("call_1", "5 days");
/// assert_eq!(answers.answers(), Some("call_1"));
/// assert_eq!(asks.tool_calls().len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id of the call. The result refers to it.
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments as written by the model, usually JSON.
    pub arguments: String,
    /// The signature of the reasoning behind the call, opaque (Gemini `thoughtSignature`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl ToolCall {
    /// Creates a call with its id, function name and arguments.
    #[must_use]
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None }
    }

    /// Sets the signature of the call.
    #[must_use]
    pub fn with_signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = Some(signature.into());
        self
    }
}
