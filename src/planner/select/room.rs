//! What one section is offered, to the token (rule B6).

use super::{Selection, Selector};
use crate::{
    conversation::ExchangeIndex,
    error::Error,
    item::Section,
    plan::reason::HeldBy,
    planner::{
        budget::{Available, clamped},
        candidates::{CandidateId, CandidateIndex},
        observer::{BudgetVariable, Constraint},
    },
};

/// What a section is offered; tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Tokens left of `variable`.
    left: u64,
    /// Tokens left of `variable`, without the tokens that merging state into the live question saves.
    left_without_merge: u64,
    /// Tokens left under the section's cap.
    under_cap: u64,
    variable: BudgetVariable,
    /// A second variable that limits the offer, and the tokens left of it: the low mark (rule S5), what pins may take
    /// (rule S2).
    second_limit: Option<(BudgetVariable, u64)>,
}

/// Whether something after the live question is offered, or may still come in. State is then not merged into the
/// question, so the tokens that the merge saves cannot be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterQuestion {
    No,
    Yes,
}

impl Room {
    pub(super) fn of(tokens: u64, variable: BudgetVariable) -> Self {
        Self { left: tokens, left_without_merge: tokens, under_cap: u64::MAX, variable, second_limit: None }
    }

    /// The same room, limited to `tokens` of a second variable.
    pub(super) fn at_most(self, tokens: u64, variable: BudgetVariable) -> Self {
        Self { second_limit: Some((variable, tokens)), ..self }
    }

    pub(super) fn tokens(self, after: AfterQuestion) -> u64 {
        self.uncapped(after).min(self.under_cap)
    }

    /// The reason for what does not fit: the section's cap or what pins may take, where that is what makes the room so
    /// little.
    pub(super) fn held_by(self, after: AfterQuestion, otherwise: HeldBy) -> HeldBy {
        match self.second_limit {
            _ if self.under_cap < self.uncapped(after) => HeldBy::Cap,
            Some((BudgetVariable::PinsLimit, most)) if most < self.left_for(after) => HeldBy::PinsLimit,
            Some((BudgetVariable::QuestionLimit, most)) if most < self.left_for(after) => {
                HeldBy::QuestionLimit
            }
            _ => otherwise,
        }
    }

    /// The variables and the cap that limit the offer.
    pub(super) fn constraint(self, after: AfterQuestion) -> Constraint {
        let (tokens, left) = (self.tokens(after), self.left_for(after));
        let (variable, binds, other) = match self.second_limit {
            Some((second, most)) if most < left => (second, most, Some((self.variable, left - tokens))),
            second => (self.variable, left, second.map(|(second, most)| (second, most - tokens))),
        };
        Constraint {
            variable,
            above_offer: binds - tokens,
            below_cap: self.under_cap - tokens,
            second: other,
            in_walk: false,
        }
    }

    /// Checks if it is the same for everything, because merging state saves nothing.
    pub(super) fn is_one_for_all(self) -> bool {
        self.left == self.left_without_merge
    }

    fn uncapped(self, after: AfterQuestion) -> u64 {
        self.second_limit.map_or(u64::MAX, |(_, most)| most).min(self.left_for(after))
    }

    fn left_for(self, after: AfterQuestion) -> u64 {
        match after {
            AfterQuestion::No => self.left,
            AfterQuestion::Yes => self.left_without_merge,
        }
    }
}

impl<O> Selector<'_, O> {
    /// What pins are offered before the sections divide the rest (rule S2): all that the minimum leaves, no more than
    /// their limit, to which those that are never dropped count. What merging state saves is not offered.
    pub(super) fn for_pins(&self, available: &Available, chosen: &Selection) -> Result<Room, Error> {
        let limit = available.for_pins(self.config.sections.pins_limit);
        let mut undroppable = 0u64;
        for id in chosen.kept.pinned() {
            undroppable = undroppable.saturating_add(self.costs.whole(id)?);
        }
        let left = clamped(available.free(chosen.used(), false));
        let room = Room::of(left, BudgetVariable::Free);
        let room = room.at_most(limit.saturating_sub(undroppable), BudgetVariable::PinsLimit);
        Ok(Room { under_cap: under_cap(Section::SystemPinned, available, chosen), ..room })
    }

    /// What a document may take of all that is free in the end; tokens.
    pub(crate) fn left_for_documents(&self, available: &Available, chosen: &Selection) -> u64 {
        let room = self.free(Section::Rag, available, chosen);
        self.for_a_question(room, available, chosen).tokens(AfterQuestion::No)
    }

    /// A room of documents, limited to what the documents of one question may take where they stay with it (rule S10).
    /// `available` is what was divided.
    pub(super) fn for_a_question(&self, room: Room, available: &Available, chosen: &Selection) -> Room {
        if !self.index.documents_stay {
            return room;
        }
        let most = available.for_a_question(self.config.rag.question_limit);
        room.at_most(most.saturating_sub(chosen.used[Section::Rag as usize]), BudgetVariable::QuestionLimit)
    }

    /// What a section may still take of all that is free.
    pub(super) fn free(&self, section: Section, available: &Available, chosen: &Selection) -> Room {
        let opens_block = section == Section::Rag && !chosen.has_documents();
        let block = chosen.has_documents() || available.reserves_block || opens_block;
        let left = available.free(chosen.used(), block);
        let merged = i128::from(saved_by_merging(self.index, available, chosen));
        Room {
            left: clamped(left + merged),
            left_without_merge: clamped(left),
            under_cap: under_cap(section, available, chosen),
            variable: BudgetVariable::Free,
            second_limit: None,
        }
    }
}

/// What is left under a section's cap; tokens.
fn under_cap(section: Section, available: &Available, chosen: &Selection) -> u64 {
    let left = |cap: u64| cap.saturating_sub(chosen.used[section as usize]);
    available.cap(section).map_or(u64::MAX, left)
}

/// Returns the tokens that merging state into the live question saves.
pub(crate) fn saved_by_merging(index: &CandidateIndex<'_>, available: &Available, chosen: &Selection) -> u64 {
    if available.merge > 0 && merges_state(index, chosen) { available.merge } else { 0 }
}

/// Up to so many exchanges are looked up one by one.
const FEW: u32 = 64;

/// Whether state is merged into the live question: while nothing follows it (rule O1).
pub(crate) fn merges_state(index: &CandidateIndex<'_>, chosen: &Selection) -> bool {
    let documents_follow = index.documents_come_last && chosen.has_documents();
    let Some(exchanges) = index
        .exchanges_after_the_question()
        .filter(|_| index.states() > 0 && !index.has_late() && !documents_follow)
    else {
        return false;
    };
    let count = exchanges.end.number() - exchanges.start.number();
    if count <= FEW {
        return !ExchangeIndex::each(exchanges).any(|at| chosen.has(CandidateId::Exchange(at)));
    }
    let follows = |id: CandidateId| matches!(id, CandidateId::Exchange(at) if exchanges.contains(&at));
    !chosen.kept.without_notes().any(follows)
}
