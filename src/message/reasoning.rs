//! The reasoning of a model before its reply.

use super::WireFormat;
use serde::{Deserialize, Serialize};

/// Reasoning that came with an assistant message, with the parts that its provider needs to take it back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reasoning {
    /// The text, or a summary of it; empty if the provider shows none.
    pub text: String,
    /// Its id, if the provider gave one (`OpenAI` Responses).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// An opaque text that proves or holds it: a signature (Anthropic `thinking`), or the encrypted whole
    /// (Anthropic `redacted_thinking`, `OpenAI` Responses).
    #[serde(rename = "seal", skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// True if the signature is the whole reasoning, encrypted, and came without any text (Anthropic
    /// `redacted_thinking`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Its tokens, if the provider reported them with the reply: those of reasoning that is not shown are not
    /// known otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The wire format it came in. Signed reasoning is sent in that form or not at all.
    #[serde(alias = "framing", skip_serializing_if = "Option::is_none")]
    pub wire_format: Option<WireFormat>,
}

impl Reasoning {
    /// Returns true if it has no signature and no text but white space.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.signature.is_none()
    }

    /// Creates reasoning of plain text, as compatible servers return it in `reasoning_content`.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates reasoning with its text and its signature, in the wire format it came in.
    #[must_use]
    pub fn signed(wire_format: WireFormat, text: impl Into<String>, signature: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            signature: Some(signature.into()),
            wire_format: Some(wire_format),
            ..Self::default()
        }
    }

    /// Marks the signature as the whole reasoning, encrypted.
    #[must_use]
    pub fn into_redacted(mut self) -> Self {
        self.redacted = true;
        self
    }

    /// Sets its tokens.
    #[must_use]
    pub fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets the id that the provider gave.
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
