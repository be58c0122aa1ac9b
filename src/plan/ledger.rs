//! Tokens of a prompt that belong to no item (overhead, rule B3).

use crate::tokens::Certainty;
use serde::Serialize;

/// Tokens that belong to no item, such as tool definitions, wire format, merges and joins. Savings are
/// negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LedgerLine {
    /// The purpose of the tokens.
    pub what: Overhead,
    /// Number of tokens; negative if they are saved.
    pub tokens: i64,
    /// The certainty of the count.
    pub certainty: Certainty,
}

/// The purpose of tokens that belong to no item. Some purposes save tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overhead {
    /// Definitions of the declared tools.
    Tools,
    /// Text of a chat template before the first message.
    Template,
    /// The header of the reply.
    ReplyPriming,
    /// The wrapper around the documents.
    RagBlock,
    /// Tokens saved by merging neighbouring messages.
    Merged,
    /// The difference between the count of the whole prompt and the sum of its messages.
    Joins,
    /// Tokens that the provider is expected to count in addition to the local count (token calibration, rule
    /// N6).
    TokenCalibration,
}

impl Overhead {
    /// Returns its name in JSON.
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
