//! The options of retrieved documents.

use serde::{Deserialize, Serialize};

/// The table `[rag]` (rules S8, S9).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RagOptions {
    /// What happens after an item that does not fit.
    pub fill: RagFill,
    /// When documents of earlier questions leave, where they stay with them.
    pub leave: Leave,
    /// The position of the block.
    pub placement: Placement,
    /// What the line before each document says of it.
    pub header: DocumentHeader,
    /// The smallest score that is kept.
    pub min_score: Option<f64>,
    /// The largest number of items.
    pub max_items: Option<u64>,
    /// The largest item, in tokens.
    pub max_item_tokens: Option<u64>,
    /// The most tokens of one source.
    pub max_source_tokens: Option<u64>,
    /// What the documents of one question may take of all there is to share out, per mille, where they stay with the
    /// question (rule S10; default: 150): the questions after it need tokens too.
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

/// What happens after a document that does not fit (rule S8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RagFill {
    /// Pass it over and try smaller ones (default). A larger budget may then lose an item that a smaller one kept.
    #[default]
    Backfill,
    /// Stop there: a larger RAG budget never loses an item.
    Prefix,
}

/// When documents and state of earlier questions leave, where they stay (rules S10, S11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Leave {
    /// At a cut, or at a new question once reading them again has cost as much as their leaving does (default).
    #[default]
    Weighed,
    /// At a cut only.
    AtCut,
}

/// Where the documents are (rule O1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Placement {
    /// `with_question` where the model checks what stands before its reasoning (rule K1), else `before_question`
    /// (default).
    #[default]
    Auto,
    /// Directly before the live question; the next prompt has none of them. The history before them stays byte-identical.
    BeforeQuestion,
    /// Before the first turn.
    BeforeConversation,
    /// Directly before the question they were retrieved for, and they stay there as part of its turn (rule S10).
    WithQuestion,
}

/// What the line before each document says of it, beside its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentHeader {
    /// Its id.
    Id,
    /// Its id, and its source where it has one (default).
    #[default]
    IdSource,
    /// Its id, source and score.
    IdSourceScore,
}
