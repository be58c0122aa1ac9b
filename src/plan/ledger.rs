//! What a prompt costs beside its items (rule B3).

use crate::tokens::Certainty;
use serde::Serialize;

/// Tokens that belong to no item: tool definitions, wire format, merges, joins. The number may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LedgerLine {
    /// What they are for.
    pub what: Overhead,
    /// Tokens.
    pub tokens: i64,
    /// How sure.
    pub certainty: Certainty,
}

/// What takes or saves tokens beside the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overhead {
    /// The declared tools.
    Tools,
    /// What a chat template puts before the first message.
    Template,
    /// The header of the reply.
    ReplyPriming,
    /// The wrapper around the documents.
    RagBlock,
    /// What merged neighbours save.
    Merged,
    /// By how much the prompt as a whole differs from the sum of its messages.
    Joins,
    /// What the provider is expected to count beside the local count (rule N6).
    TokenCalibration,
}

impl Overhead {
    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Template => "template",
            Self::ReplyPriming => "reply_priming",
            Self::RagBlock => "rag_block",
            Self::Merged => "merged",
            Self::Joins => "joins",
            Self::TokenCalibration => "token_calibration",
        }
    }
}

impl std::fmt::Display for Overhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
