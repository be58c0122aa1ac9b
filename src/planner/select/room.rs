//! What one section is offered, to the token (rule B6).

use super::{Selection, Selector};
use crate::{
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
    /// Of the variable.
    left: u64,
    /// Of the variable, without what merging state into the live question saves.
    following: u64,
    under_cap: u64,
    variable: BudgetVariable,
    /// No more than so many tokens of it, and what that number is part of.
    mark: Option<(BudgetVariable, u64)>,
}

/// What a room is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Anything,
    /// What follows the live question, so that state is no longer merged into it.
    Following,
}

impl Room {
    pub(super) fn of(tokens: u64, variable: BudgetVariable) -> Self {
        Self { left: tokens, following: tokens, under_cap: u64::MAX, variable, mark: None }
    }

    /// No more than so many tokens of it.
    pub(super) fn at_most(self, tokens: u64, variable: BudgetVariable) -> Self {
        Self { mark: Some((variable, tokens)), ..self }
    }

    pub(super) fn tokens(self, what: For) -> u64 {
        self.uncapped(what).min(self.under_cap)
    }

    /// The reason for what does not fit: the section's cap, where that is what makes the room so little.
    pub(super) fn held_by(self, what: For, otherwise: HeldBy) -> HeldBy {
        if self.under_cap < self.uncapped(what) { HeldBy::Cap } else { otherwise }
    }

    /// What its size rests on.
    pub(super) fn constraint(self, what: For) -> Constraint {
        let (tokens, left) = (self.tokens(what), self.left_for(what));
        let (variable, binds, second) = match self.mark {
            Some((mark, most)) if most < left => (mark, most, Some((self.variable, left - tokens))),
            mark => (self.variable, left, mark.map(|(mark, most)| (mark, most - tokens))),
        };
        Constraint {
            variable,
            above_offer: binds - tokens,
            below_cap: self.under_cap - tokens,
            second,
            in_walk: false,
        }
    }

    fn uncapped(self, what: For) -> u64 {
        self.mark.map_or(u64::MAX, |(_, most)| most).min(self.left_for(what))
    }

    fn left_for(self, what: For) -> u64 {
        match what {
            For::Anything => self.left,
            For::Following => self.following,
        }
    }
}

impl<O> Selector<'_, O> {
    /// What a section may still take of all that is free.
    pub(super) fn free(&self, section: Section, available: &Available, chosen: &Selection) -> Room {
        let opens_block = section == Section::Rag && !chosen.has_documents();
        let block = chosen.has_documents() || available.reserves_block || opens_block;
        let left = available.free(chosen.used(), block);
        let merged = if merges_state(self.index, chosen) { i128::from(available.merge) } else { 0 };
        let cap = available.cap(section);
        let under_cap = cap.map(|cap| cap.saturating_sub(chosen.used[section as usize]));
        Room {
            left: clamped(left + merged),
            following: clamped(left),
            under_cap: under_cap.unwrap_or(u64::MAX),
            variable: BudgetVariable::Free,
            mark: None,
        }
    }
}

/// Whether state is merged into the live question: while nothing follows it (rule O1).
pub(crate) fn merges_state(index: &CandidateIndex<'_>, chosen: &Selection) -> bool {
    let Some(exchanges) = index.exchanges_after_the_question().filter(|_| index.states() > 0) else {
        return false;
    };
    let exchanges = CandidateId::Exchange(exchanges.start)..CandidateId::Exchange(exchanges.end);
    chosen.kept.range(exchanges).next().is_none()
}
