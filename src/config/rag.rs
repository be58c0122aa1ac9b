//! Options for retrieved documents.

use serde::{Deserialize, Serialize};

/// The table `[rag]` (rules S8, S9).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RagOptions {
    /// The action after a document that does not fit.
    pub fill: RagFill,
    /// The time at which retained documents of earlier questions are evicted.
    pub leave: Leave,
    /// The position of the documents in the prompt.
    pub placement: Placement,
    /// The content of the line before each document.
    pub header: DocumentHeader,
    /// Minimum score. A document with exactly this score is included.
    pub min_score: Option<f64>,
    /// Maximum number of documents.
    pub max_items: Option<u64>,
    /// Maximum tokens of one document.
    pub max_item_tokens: Option<u64>,
    /// Maximum tokens of all documents of one source.
    pub max_source_tokens: Option<u64>,
    /// Maximum share of the divisible budget for the documents of one question, if they are retained with it,
    /// per mille (rule S10; default: 150). Later questions need tokens too.
    pub question_limit: u16,
}

impl Default for RagOptions {
    fn default() -> Self {
        Self {
            fill: RagFill::default(),
            leave: Leave::default(),
            placement: Placement::default(),
            header: DocumentHeader::default(),
            min_score: None,
            max_items: None,
            max_item_tokens: None,
            max_source_tokens: None,
            question_limit: 150,
        }
    }
}

/// The action after a document that does not fit (rule S8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RagFill {
    /// Skips it and tries smaller ones (default). A larger budget may then lose a document that a smaller one
    /// kept.
    #[default]
    Backfill,
    /// Stops there. A larger budget for documents never loses a document.
    Prefix,
}

/// The time at which retained documents and state of earlier questions are evicted (rules S10, S11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Leave {
    /// At a cut of the window, or at a new question once re-reading them has cost as much as evicting them
    /// (default).
    #[default]
    Weighed,
    /// Only at a cut of the window.
    AtCut,
}

/// The position of the documents in the prompt (rule O1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Placement {
    /// `with_question` if the model's provider checks the content before its reasoning (rule K1), otherwise
    /// `before_question` (default).
    #[default]
    Auto,
    /// Directly before the live question, and only in this prompt. The history before them stays
    /// byte-identical.
    BeforeQuestion,
    /// Before the first turn.
    BeforeConversation,
    /// Directly before the question that they were retrieved for. They are retained there as part of its turn
    /// (rule S10).
    WithQuestion,
}

/// The content of the line before each document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentHeader {
    /// The document's id.
    Id,
    /// The id, and the source if the document has one (default).
    #[default]
    IdSource,
    /// The id, source and score.
    IdSourceScore,
}
