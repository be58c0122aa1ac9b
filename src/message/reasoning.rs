//! What a model thought before it spoke.

use super::WireFormat;
use serde::{Deserialize, Serialize};

/// A piece of reasoning that came with an assistant message, and what its provider needs to take it back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Reasoning {
    /// The text, or a summary of it; empty where the provider shows none.
    pub text: String,
    /// Its id, where the provider gave one (`OpenAI` Responses).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What proves or holds it, opaque: a signature (Anthropic `thinking`), the encrypted whole (Anthropic
    /// `redacted_thinking`, `OpenAI` Responses).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// Whether the seal holds the whole, encrypted, and no text ever stood beside it (Anthropic `redacted_thinking`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// What it weighs, in tokens, where the provider reported it with the reply: nothing else tells that of reasoning that is not
    /// shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The wire format it came in. Sealed reasoning is sent in that form or not at all.
    #[serde(alias = "framing", skip_serializing_if = "Option::is_none")]
    pub wire_format: Option<WireFormat>,
}

impl Reasoning {
    /// Whether nothing is in it: no text that is not blank, and no seal.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.seal.is_none()
    }

    /// Plain text, as compatible servers return it in `reasoning_content`.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Reasoning with what proves or holds it, in the wire format it came in.
    #[must_use]
    pub fn sealed(wire_format: WireFormat, text: impl Into<String>, seal: impl Into<String>) -> Self {
        Self { text: text.into(), seal: Some(seal.into()), wire_format: Some(wire_format), ..Self::default() }
    }

    /// Says that the seal holds the whole.
    #[must_use]
    pub fn into_redacted(mut self) -> Self {
        self.redacted = true;
        self
    }

    /// Sets what it weighs, in tokens.
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
