//! A provider's report on its changes to a prompt.
//!
//! Sources, read 2026-11-23: Anthropic, preserved thinking (`input_transformations` of a response, with the
//! beta header `thinking-binding-controls-2026-08-01`) and context editing
//! (`context_management.applied_edits`); `OpenAI`, GPT-6.2 (`input_transformations` of a response).

use serde_json::Value;

/// A piece of reasoning that the provider dropped from the prompt, or accepted although it would drop it
/// elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransformedInput {
    /// The path in the body (`messages.1.content.0`, Anthropic), or the id of the item (`OpenAI`).
    pub(crate) place: String,
    /// True if the reasoning was dropped. False if the model read it this time.
    pub(crate) dropped: bool,
    /// The reason in the provider's words (`prefix_binding_mismatch`, `prefix_mismatch`, `model_mismatch`,
    /// ...).
    pub(crate) reason: String,
}

impl TransformedInput {
    /// Parses one entry of `input_transformations`. Returns `None` for an entry of another kind.
    pub(super) fn from_json(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let reason = text("reason").unwrap_or_default().to_owned();
        match (text("type")?, text("path"), text("id")) {
            ("thinking_dropped", Some(path), _) => Some(Self { place: path.into(), dropped: true, reason }),
            ("thinking_mismatch_allowed", Some(path), _) => {
                Some(Self { place: path.into(), dropped: false, reason })
            }
            ("reasoning", _, Some(id)) => {
                Some(Self { place: id.into(), dropped: text("action") == Some("removed"), reason })
            }
            _ => None,
        }
    }
}

/// An edit of the provider's own context management.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedEdit {
    /// The type of the edit (`clear_tool_uses_20250919`, ...).
    pub(crate) kind: String,
    /// The number of cleared tokens.
    pub(crate) cleared_tokens: u64,
}

impl AppliedEdit {
    /// Parses one entry of `applied_edits`. Returns `None` if it has no type.
    pub(super) fn from_json(entry: &Value) -> Option<Self> {
        let kind = entry.get("type")?.as_str()?.to_owned();
        let cleared = entry.get("cleared_input_tokens").and_then(Value::as_u64);
        Some(Self { kind, cleared_tokens: cleared.unwrap_or_default() })
    }
}
