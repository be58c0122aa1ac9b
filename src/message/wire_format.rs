//! The wire formats of prompts.

use crate::name::by_name;
use serde::{Deserialize, Serialize};

// A new format needs a table in config/models.toml, a renderer in provider/render and its rules in
// provider/conform. It also needs a case in the tool's body.rs, a session reader and schemas, and entries in
// `WireFormat::ALL` and in `by_name!` below.

/// A wire format: the JSON form of a prompt, and the tokens counted around its texts. Token counts and
/// requirements of each format are in `config/models.toml` under `[wire_format]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WireFormat {
    /// `OpenAI` Chat Completions. Counted by the published formula: 3 tokens per message with its role, 1 per
    /// name, 3 for the reply's header (cookbook, "How to count tokens with tiktoken", read 2026-11-21).
    #[default]
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// `OpenAI` Responses. Its added tokens are not published, so it is counted as `OpenAI` Chat.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Anthropic Messages. Its added tokens are not published; a few are counted per content block.
    Anthropic,
    /// Gemini `generateContent`. Its added tokens are not published.
    Gemini,
    /// The model's own chat template, for self-hosted models. If the template is available
    /// (`Model::with_template`), its rendered text is counted. Otherwise the count is an estimate, as for
    /// `OpenAI` Chat.
    ChatTemplate,
    /// No format: texts are counted as they are, and there are no requirements. For completion models and
    /// tests.
    Plain,
}

by_name!(WireFormat, "wire format", [OpenAiChat, OpenAiResponses, Anthropic, Gemini, ChatTemplate, Plain]);

impl WireFormat {
    /// All wire formats.
    pub const ALL: &[Self] = &[
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::ChatTemplate,
        Self::Plain,
    ];

    /// Returns the field that carries a cache breakpoint in a part of this wire format, or `None` if it has
    /// no breakpoints.
    pub(crate) fn cache_mark(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("cache_control"),
            Self::OpenAiChat | Self::OpenAiResponses => Some("prompt_cache_breakpoint"),
            Self::Gemini | Self::ChatTemplate | Self::Plain => None,
        }
    }

    /// Returns the name used in configuration and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::ChatTemplate => "chat_template",
            Self::Plain => "plain",
        }
    }
}
