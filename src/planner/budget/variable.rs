//! The amounts that decisions compare costs with.

use crate::item::Section;

/// An amount that grows with the prompt budget, and that costs are compared with. None of them ever falls
/// when the budget grows and the same pins come first (rules S2, B5), so a decision in which all of them stay
/// on their side stays.
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
    /// The tokens that are free once the sections have taken their part (rule B6).
    Free,
}

impl BudgetVariable {
    /// All of them, each at the index of its number.
    pub(crate) const ALL: [Self; 9] = [
        Self::SystemPinned,
        Self::Conversation,
        Self::Rag,
        Self::LowMark,
        Self::DocumentShare,
        Self::FullDocumentShare,
        Self::PinsLimit,
        Self::QuestionLimit,
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
