//! The tokens that are free for a section.
//!
//! - Input: the selection so far, and the available tokens.
//! - Output: the [`Room`] of a section.
//! - Rules: B6 (free tokens), S2 (limit of pins), S10 (limit of one question), O1 (merged state), B4 (caps).

use super::{Room, Selection, Selector, Walker};
use crate::{
    conversation::ExchangeIndex,
    error::Error,
    item::Section,
    planner::{
        budget::{Available, BudgetVariable, Budgets, clamped},
        candidates::{CandidateId, CandidateIndex},
    },
};

impl<W: Walker> Selector<'_, W> {
    /// Returns the room of pins before the sections divide the rest (rule S2): all tokens that the minimum
    /// leaves, up to the limit of pins. Undroppable pins count towards that limit. Tokens that merging state
    /// saves are not offered.
    pub(super) fn room_for_pins(&self, available: &Available, chosen: &Selection<W>) -> Result<Room, Error> {
        let limit = available.for_pins(self.config.sections.pins_limit);
        let mut undroppable = 0u64;
        for id in chosen.included.pinned() {
            undroppable = undroppable.saturating_add(self.costs.whole(id)?);
        }
        let left = clamped(available.free(chosen.included.used(), false));
        let room = Room::new(left, BudgetVariable::Free);
        let room = room.at_most(limit.saturating_sub(undroppable), BudgetVariable::PinsLimit);
        Ok(room.under_cap(under_cap(Section::SystemPinned, available, chosen)))
    }

    /// Returns the tokens that documents may still take at the end of selection.
    pub(crate) fn left_for_documents(&self, available: &Available, chosen: &Selection<W>) -> u64 {
        self.room_for_documents(self.free(Section::Rag, available, chosen), available, chosen).tokens()
    }

    /// Returns the room of documents in all free tokens; `available` are those left of the budgets.
    pub(super) fn free_for_documents(
        &self,
        budgets: &Budgets,
        available: &Available,
        chosen: &Selection<W>,
    ) -> Room {
        self.room_for_documents(self.free(Section::Rag, available, chosen), &budgets.available, chosen)
    }

    /// Limits a room of documents to the limit of one question, if documents stay with it (rule S10).
    /// `available` are the tokens that were divided.
    pub(super) fn room_for_documents(
        &self,
        room: Room,
        available: &Available,
        chosen: &Selection<W>,
    ) -> Room {
        if !self.index.documents_stay {
            return room;
        }
        let most = available.question_limit(self.config.rag.question_limit);
        let left = most.saturating_sub(chosen.included.used_by(Section::Rag));
        room.at_most(left, BudgetVariable::QuestionLimit)
    }

    /// Returns the room of a section in all free tokens (rule B6).
    pub(super) fn free(&self, section: Section, available: &Available, chosen: &Selection<W>) -> Room {
        // The first document also pays for the wrapper around documents.
        let opens_block = section == Section::Rag && !chosen.has_documents();
        let block = chosen.has_documents() || available.reserves_block || opens_block;
        let left = available.free(chosen.included.used(), block);
        let merged = i128::from(saved_by_merging(self.index, available, chosen));
        let (with_merge, without) = (clamped(left + merged), clamped(left));
        let room = Room::new(without, BudgetVariable::Free).with_merge(with_merge - without);
        room.under_cap(under_cap(section, available, chosen))
    }
}

/// Returns the tokens left under a section's cap.
fn under_cap<W: Walker>(section: Section, available: &Available, chosen: &Selection<W>) -> u64 {
    let left = |cap: u64| cap.saturating_sub(chosen.included.used_by(section));
    available.cap(section).map_or(u64::MAX, left)
}

/// Returns the tokens that merging state into the live question saves.
pub(crate) fn saved_by_merging<W: Walker>(
    index: &CandidateIndex<'_>,
    available: &Available,
    chosen: &Selection<W>,
) -> u64 {
    if available.merge > 0 && merges_state(index, chosen) { available.merge } else { 0 }
}

/// Maximum number of exchanges that are looked up one by one.
const MAX_SINGLE_LOOKUPS: u32 = 64;

/// Checks if state is merged into the live question, which needs that nothing follows the question (rule O1).
pub(crate) fn merges_state<W: Walker>(index: &CandidateIndex<'_>, chosen: &Selection<W>) -> bool {
    let documents_follow = index.documents_come_last && chosen.has_documents();
    let Some(exchanges) = index
        .exchanges_after_the_question()
        .filter(|_| index.states() > 0 && !index.has_late() && !documents_follow)
    else {
        return false;
    };
    let count = exchanges.end.number() - exchanges.start.number();
    if count <= MAX_SINGLE_LOOKUPS {
        return !ExchangeIndex::each(exchanges).any(|at| chosen.has(CandidateId::Exchange(at)));
    }
    // With many exchanges it is faster to go through the included ones, whose number the budget limits.
    let follows = |id: CandidateId| matches!(id, CandidateId::Exchange(at) if exchanges.contains(&at));
    !chosen.included.ids().any(follows) && !W::has_walked_any(&chosen.included.shared, &exchanges)
}
