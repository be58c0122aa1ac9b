//! The interface through which explanations observe selection.
//!
//! Every decision compares tokens with a limit: a candidate with what is left of a section, a minimum with the budget.
//! A plan needs only the outcome. An explanation also needs how far the limit could move before the outcome changes.
//! [`Observer`] hears each comparison; [`Unobserved`], with which plans are made, hears nothing and compiles to nothing.
//! An observer cannot change a decision.

use crate::{
    conversation::TurnIndex,
    error::Error,
    item::Section,
    planner::candidates::{CandidateId, CandidateIndex, Costs},
};

/// The amounts that grow with the prompt budget and that costs are compared with. None of them ever falls when the
/// budget grows and the same pins come first (rules S2, B5), so a decision in which all of them stay on their side stays.
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
    /// What the documents' share holds, and no more than their budget (rule S5).
    DocumentShare,
    /// What the documents' share holds (rule S5).
    FullDocumentShare,
    /// What pins may take before the sections divide the rest (rule S2).
    PinsLimit,
    /// What the documents of one question may take (rule S10).
    QuestionLimit,
    /// What is free once the sections have taken their part, which grows as the budget does (rule B6).
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

    /// The budget of a section.
    pub(crate) fn budget(section: Section) -> Self {
        match section {
            Section::SystemPinned => Self::SystemPinned,
            Section::Conversation => Self::Conversation,
            Section::Rag => Self::Rag,
        }
    }
}

/// What limits the tokens that a candidate is offered.
///
/// The offer is the least of several amounts: what is left of a budget variable, of a second one (the low mark), and of a
/// fixed cap. One of them binds. The other two matter as well: once the binding one has grown by enough, they bind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Constraint {
    /// The variable that binds, or would bind without the cap.
    pub(crate) variable: BudgetVariable,
    /// How much more it leaves than the offer, because the cap is less; tokens.
    pub(crate) above_offer: u64,
    /// By how much the offer may grow before the cap stops it; tokens.
    pub(crate) below_cap: u64,
    /// Another variable that leaves so many tokens more than the offer, and would bind if it fell.
    pub(crate) second: Option<(BudgetVariable, u64)>,
    /// Whether the offer is one of the walk through the conversation (rule S4).
    pub(crate) in_walk: bool,
}

impl Constraint {
    pub(crate) fn of(variable: BudgetVariable) -> Self {
        Self { variable, above_offer: 0, below_cap: u64::MAX, second: None, in_walk: false }
    }
}

/// How far the walk through the conversation has come (rule S4).
pub(crate) struct WalkState<'w> {
    pub(crate) index: &'w CandidateIndex<'w>,
    pub(crate) costs: &'w Costs<'w>,
    /// What is left of the offer; tokens.
    pub(crate) left: u64,
    pub(crate) constraint: Constraint,
    /// The conversation is one turn without a user message: it is cut all the same.
    pub(crate) only_headless: bool,
    /// Nothing before this comes in.
    pub(crate) floor: Option<CandidateId>,
    pub(crate) is_in: &'w dyn Fn(CandidateId) -> bool,
    /// What came in by this walk, and what it costs.
    pub(crate) new: &'w [(CandidateId, u64)],
}

/// Hears how selection decides.
pub(crate) trait Observer {
    /// What was heard of one decision.
    type Heard;

    /// How far to count a candidate that is offered `left` tokens. More than that, where it matters by how much one is too
    /// large.
    fn count_to(&self, _offer: Constraint, left: u64) -> u64 {
        left
    }

    /// Whether it has to hear each step of the walk through the conversation. If not, the last step that fits and the first one
    /// that does not are enough.
    fn follows_the_walk(&self) -> bool {
        true
    }

    /// Something fits, and leaves so many tokens of what it was offered.
    fn fits(&self, _offer: Constraint, _left: u64) {}

    /// Something is larger than what it was offered, by so many tokens.
    fn too_large(&self, _offer: Constraint, _by: u64) {}

    /// All of these have to fit together into so many tokens, and do not.
    fn too_large_together(
        &self,
        _offer: Constraint,
        _tokens: u64,
        _costs: &Costs<'_>,
        _ids: &dyn Fn() -> Result<Vec<CandidateId>, Error>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// The walk comes to a turn.
    fn walk_reaches(&self, _walk: &WalkState<'_>, _turn: TurnIndex) -> Result<(), Error> {
        Ok(())
    }

    /// The walk ends inside a turn, or before it.
    fn walk_ends(&self, _walk: &WalkState<'_>, _turn: TurnIndex) -> Result<(), Error> {
        Ok(())
    }

    /// Hands over what was heard since the last call.
    fn take(&self) -> Self::Heard;
}

/// An observer that does nothing; used for ordinary plans.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    type Heard = ();

    fn take(&self) {}
}

/// Reports that an amount was compared with the least that it has to be.
pub(crate) fn compared(observer: &impl Observer, variable: BudgetVariable, amount: u64, least: u64) {
    let constraint = Constraint::of(variable);
    match amount.checked_sub(least) {
        Some(left) => observer.fits(constraint, left),
        None => observer.too_large(constraint, least - amount),
    }
}
