//! The wire formats that prompts are sent in.

use crate::name::by_name;
use serde::{Deserialize, Serialize};

// A new format needs: a table in config/models.toml, a renderer in provider/render, the decisions in provider/conform,
// body.rs of the tool, a session reader, schemas. It also has to be in `WireFormat::ALL` and in `by_name!` below.

/// A wire format: what a prompt is rendered to, and what is counted around its texts. The figures and demands of each
/// stand in `config/models.toml` under `[wire_format]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WireFormat {
    /// `OpenAI` Chat Completions, by the published formula: 3 tokens a message and its role, 1 a name, 3 for the
    /// reply's header (cookbook, "How to count tokens with tiktoken", read 2026-11-21).
    #[default]
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// `OpenAI` Responses. What it adds is not published: counted as `OpenAI` Chat.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Anthropic Messages. What it adds is not published: a few tokens a content block.
    Anthropic,
    /// Gemini `generateContent`. What it adds is not published.
    Gemini,
    /// The model's own chat template, for models that are served by oneself. Where the template itself is there
    /// (`Model::with_template`), what is counted is what it renders; otherwise counted as `OpenAI` Chat, as an estimate.
    ChatTemplate,
    /// Nothing: texts are counted as they are, and no target demands anything. For completion models and for tests.
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

    /// Returns the field in which a part of this wire format bears a cache mark. Returns `None` if it knows no marks.
    pub(crate) fn cache_mark(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("cache_control"),
            Self::OpenAiChat | Self::OpenAiResponses => Some("prompt_cache_breakpoint"),
            Self::Gemini | Self::ChatTemplate | Self::Plain => None,
        }
    }

    /// The name in configuration and reports.
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
