//! Options for retrieved documents.

use super::document_template::DocumentTemplate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The table `[rag]` (rules S8, S9, S14, S15, O1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RagOptions {
    /// The action after a document that does not fit.
    pub fill: RagFill,
    /// The time at which retained documents of earlier questions are evicted.
    pub leave: Leave,
    /// The position of the documents in the prompt.
    pub placement: Placement,
    /// The texts around documents (rule S21).
    pub template: DocumentTemplate,
    /// The form in which documents are written.
    pub format: DocumentFormat,
    /// If true, that line has a label such as `[1]`, with which a reply can cite the document (rule S16).
    pub labels: bool,
    /// The choice between documents in full and more documents in shorter forms (rule S17).
    pub variants: Variants,
    /// Minimum score. A document with exactly this score is included.
    pub min_score: Option<f64>,
    /// Maximum number of documents.
    pub max_items: Option<u64>,
    /// Maximum tokens of one document.
    pub max_item_tokens: Option<u64>,
    /// Maximum tokens of all documents of one source.
    pub max_source_tokens: Option<u64>,
    /// Maximum number of documents of one source.
    pub max_source_items: Option<u64>,
    /// The share of a document's runs of five words that an included document has, per cent, from
    /// which the document is excluded; 0 excludes none (rule S9; default: 90).
    pub near_duplicates: u8,
    /// The same for texts that are sent anyway: messages, tool results, notes and retained documents.
    pub repeats: u8,
    /// If true, overlapping chunks of one source are sent as one text (rule S14).
    pub join_chunks: bool,
    /// The order of the documents in the prompt (rule O1).
    pub order: DocumentOrder,
    /// The weights and limits of ranked lists, by name (rules S8, S9).
    pub lists: BTreeMap<String, ListOptions>,
    /// Maximum share of the divisible budget for the documents of one question, if they are retained with it,
    /// per mille (rule S10; default: 150). Later questions need tokens too.
    pub question_limit: u16,
    /// Maximum share of the divisible budget for recalled messages, per mille (rule S15; default: 500).
    pub recall_share: u16,
}

impl RagOptions {
    /// Checks if a limit depends on the documents that are included already.
    pub(crate) fn counts_documents(&self) -> bool {
        self.max_items.is_some()
            || self.max_source_items.is_some()
            || self.max_source_tokens.is_some()
            || self.lists.values().any(|list| list.max_items.is_some() || list.max_tokens.is_some())
    }
}

impl Default for RagOptions {
    fn default() -> Self {
        Self {
            fill: RagFill::default(),
            leave: Leave::default(),
            placement: Placement::default(),
            template: DocumentTemplate::default(),
            format: DocumentFormat::default(),
            labels: false,
            variants: Variants::default(),
            min_score: None,
            max_items: None,
            max_item_tokens: None,
            max_source_tokens: None,
            max_source_items: None,
            near_duplicates: 90,
            repeats: 90,
            join_chunks: true,
            order: DocumentOrder::default(),
            lists: BTreeMap::new(),
            question_limit: 150,
            recall_share: 500,
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

/// The choice between documents in full and more documents in shorter forms (rule S17).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Variants {
    /// The best documents in full (default). Each is sent in the fullest form that fits, by rank.
    #[default]
    Depth,
    /// More documents. Each is sent in its shortest form first; then the best get fuller forms, as far as
    /// tokens are left.
    Breadth,
    /// No shorter forms.
    Off,
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

/// The form in which documents are written in the request (rule S20).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentFormat {
    /// As text between delimiters that no document can forge (default).
    #[default]
    Text,
    /// As content blocks that the model can cite, if the provider has them (Anthropic); otherwise as text,
    /// with a notice.
    Native,
}

/// The order of the documents in the prompt (rule O1). It is layout only: rule S8 decides which documents are
/// included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentOrder {
    /// The best document first (default).
    #[default]
    Relevance,
    /// The best document last, next to the question.
    RelevanceLast,
    /// The best documents at both ends, the weakest in the middle.
    Edges,
    /// The documents of one source next to each other, in the order of their places in it.
    Source,
}

/// The table `[rag.lists.NAME]`: options of one ranked list (rules S8, S9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ListOptions {
    /// The weight of the list's ranks, 1 to 100 (default: 1).
    pub weight: u8,
    /// Maximum number of documents that this list ranks best.
    pub max_items: Option<u64>,
    /// Maximum tokens of the documents that this list ranks best.
    pub max_tokens: Option<u64>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { weight: 1, max_items: None, max_tokens: None }
    }
}
