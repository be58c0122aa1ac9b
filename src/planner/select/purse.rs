//! What is left over, to the token (rule B6).

use super::Selection;
use crate::{
    item::Section,
    plan::reason::HeldBy,
    planner::candidates::{Basis, Pool, Quantity, Scale, Unit},
};

/// Everything that the leftover depends on beside the items, in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purse {
    /// The prompt budget less what is sent in any case: tools, priming. It may be below zero.
    pub(crate) budget: i128,
    /// The block around documents.
    pub(crate) block: u64,
    /// Whether the block is kept free although no document is in yet.
    pub(crate) reserved: bool,
    /// What merging all state into the live question saves.
    pub(crate) merge: u64,
    pub(crate) caps: [Option<u64>; 3],
}

/// Room for one section's offer, in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    left: u64,
    /// Without what merging state into the live question saves.
    following: u64,
    under_cap: u64,
    /// What it is part of.
    of: Quantity,
    /// No more than so many tokens of it, and what that number is part of.
    mark: Option<(Quantity, u64)>,
}

/// What a room is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Anything,
    /// What follows the live question, so that state is no longer merged into it.
    Following,
}

impl Room {
    pub(super) fn of(tokens: u64, of: Quantity) -> Self {
        Self { left: tokens, following: tokens, under_cap: u64::MAX, of, mark: None }
    }

    /// No more than so many tokens of it.
    pub(super) fn at_most(self, tokens: u64, of: Quantity) -> Self {
        Self { mark: Some((of, tokens)), ..self }
    }

    pub(super) fn tokens(self, what: For) -> u64 {
        self.uncapped(what).min(self.under_cap)
    }

    /// The reason for what does not fit: the section's cap, where that is what makes the room so little.
    pub(super) fn held_by(self, what: For, otherwise: HeldBy) -> HeldBy {
        if self.under_cap < self.uncapped(what) { HeldBy::Cap } else { otherwise }
    }

    /// What its size rests on.
    pub(super) fn basis(self, what: For) -> Basis {
        let (tokens, left) = (self.tokens(what), self.left_for(what));
        let (of, binds, also) = match self.mark {
            Some((mark, most)) if most < left => (mark, most, Some((self.of, left - tokens))),
            mark => (self.of, left, mark.map(|(mark, most)| (mark, most - tokens))),
        };
        Basis { of, hidden: binds - tokens, spare: self.under_cap - tokens, also }
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

impl Purse {
    /// What a section may still take.
    pub(super) fn room(
        &self,
        section: Section,
        pool: &Pool<'_>,
        scale: &Scale<'_>,
        chosen: &Selection,
    ) -> Room {
        let used = chosen.used();
        let opens_block = section == Section::Rag && !chosen.has_documents();
        let block = chosen.has_documents() || self.reserved || opens_block;
        let left = self.budget - used - if block { i128::from(self.block) } else { 0 };
        let merged = if merges_state(pool, scale, chosen) { i128::from(self.merge) } else { 0 };
        let cap = self.caps[section as usize];
        let under_cap = cap.map(|cap| cap.saturating_sub(chosen.used[section as usize]));
        let tokens = |left: i128| u64::try_from(left.max(0)).unwrap_or(u64::MAX);
        Room {
            left: tokens(left + merged),
            following: tokens(left),
            under_cap: under_cap.unwrap_or(u64::MAX),
            of: Quantity::LeftOver,
            mark: None,
        }
    }

    /// Gives the block's reserve back when no document is in; says whether there was one.
    pub(super) fn release_block(&mut self, chosen: &Selection) -> bool {
        let released = self.reserved && !chosen.has_documents();
        self.reserved = false;
        released
    }
}

/// Whether state is merged into the live question: while nothing follows it (rule O1).
pub(crate) fn merges_state(pool: &Pool<'_>, scale: &Scale<'_>, chosen: &Selection) -> bool {
    let (Some(Unit::Head(live)), true) = (pool.live_question(), pool.states() > 0 && pool.state_comes_last)
    else {
        return false;
    };
    if pool.summary_follows_the_question() {
        return false;
    }
    let exchanges = scale.exchanges(live);
    let exchanges = Unit::Exchange(exchanges.start)..Unit::Exchange(exchanges.end);
    chosen.kept.range(exchanges).next().is_none()
}
