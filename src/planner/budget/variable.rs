//! Amounts that decisions compare costs with.
//!
//! - Input: none.
//! - Output: [`BudgetVariable`], a name for each amount.
//! - Rules: S2, S5, S10, S15, B5, B6.

use crate::item::Section;

/// An amount that grows with the prompt budget, and that costs are compared with.
///
/// No variable ever falls if the budget grows and the same pins come first (rules S2, B5). So a decision
/// stays the same while all its comparisons have the same result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetVariable {
    /// The budget of `system_pinned`.
    SystemPinned,
    /// The budget of `conversation`.
    Conversation,
    /// The budget of `rag`.
    Rag,
    /// The low mark of the conversation's budget (rule S5).
    LowMark,
    /// The documents' share, at most their budget (rule S5).
    DocumentShare,
    /// The documents' share (rule S5).
    FullDocumentShare,
    /// The limit of pins, before the sections divide the rest (rule S2).
    PinsLimit,
    /// The limit of the documents of one question (rule S10).
    QuestionLimit,
    /// The share of recalled messages (rule S15).
    RecallShare,
    /// The tokens that are free after the sections took their part (rule B6).
    Free,
}

impl BudgetVariable {
    /// All variables, each at the index of its number.
    pub(crate) const ALL: [Self; 10] = [
        Self::SystemPinned,
        Self::Conversation,
        Self::Rag,
        Self::LowMark,
        Self::DocumentShare,
        Self::FullDocumentShare,
        Self::PinsLimit,
        Self::QuestionLimit,
        Self::RecallShare,
        Self::Free,
    ];

    /// Returns the variable of a section's budget.
    pub(crate) fn budget(section: Section) -> Self {
        match section {
            Section::SystemPinned => Self::SystemPinned,
            Section::Conversation => Self::Conversation,
            Section::Rag => Self::Rag,
        }
    }
}
