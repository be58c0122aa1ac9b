//! The reasoning of a model before its reply.

use super::WireFormat;
use serde::{Deserialize, Serialize};

/// Reasoning of an assistant message, with the parts that its provider needs to accept it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reasoning {
    /// The text, or a summary of it. Empty if the provider does not expose it.
    pub text: String,
    /// The id, if the provider assigned one (`OpenAI` Responses).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// An opaque text that authenticates or contains the reasoning: a signature (Anthropic `thinking`), or
    /// the whole reasoning in encrypted form (Anthropic `redacted_thinking`, `OpenAI` Responses).
    #[serde(rename = "seal", skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// True if the signature is the whole reasoning in encrypted form, without any text (Anthropic
    /// `redacted_thinking`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The token count, if the provider reported it with the reply. For hidden reasoning, no other count
    /// exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The wire format of the reasoning. Signed reasoning is sent in that format or not at all.
    #[serde(alias = "framing", skip_serializing_if = "Option::is_none")]
    pub wire_format: Option<WireFormat>,
}

impl Reasoning {
    /// Returns true if it has no signature and its text is blank.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.signature.is_none()
    }

    /// Creates reasoning from plain text, as compatible servers return it in `reasoning_content`.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates reasoning with its text and its signature, in its wire format.
    #[must_use]
    pub fn signed(wire_format: WireFormat, text: impl Into<String>, signature: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            signature: Some(signature.into()),
            wire_format: Some(wire_format),
            ..Self::default()
        }
    }

    /// Marks the signature as the whole reasoning in encrypted form.
    #[must_use]
    pub fn into_redacted(mut self) -> Self {
        self.redacted = true;
        self
    }

    /// Sets the token count.
    #[must_use]
    pub fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets the id that the provider assigned.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl From<&str> for Reasoning {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Reasoning {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}
