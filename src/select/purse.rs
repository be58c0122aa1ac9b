//! What is left over, to the token (rule B6).

use super::Selection;
use crate::{
    candidates::{Pool, Scale, Unit},
    item::Section,
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

/// Room for one section's offer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// For anything.
    pub(super) tokens: u64,
    /// For what would follow the live question, so that state is no longer merged into it.
    pub(super) following: u64,
    /// Whether the section's cap is what makes it so little.
    pub(super) capped: bool,
}

impl Room {
    pub(super) fn of(tokens: u64) -> Self {
        Self { tokens, following: tokens, capped: false }
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
        let used: i128 = chosen.used.iter().map(|used| i128::from(*used)).sum();
        let opens_block = section == Section::Rag && !chosen.has_documents();
        let block = chosen.has_documents() || self.reserved || opens_block;
        let left = self.budget - used - if block { i128::from(self.block) } else { 0 };
        let merged = if merges_state(pool, scale, chosen) { i128::from(self.merge) } else { 0 };
        let cap = self.caps[section as usize];
        let under_cap = cap.map(|cap| cap.saturating_sub(chosen.used[section as usize]));
        let tokens = |left: i128| u64::try_from(left.max(0)).unwrap_or(u64::MAX);
        let (plain, following) = (tokens(left + merged), tokens(left));
        let most = under_cap.unwrap_or(u64::MAX);
        Room { tokens: plain.min(most), following: following.min(most), capped: most < plain }
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
    let (Some(Unit::Head(live)), true) = (pool.live_question(), pool.states() > 0) else {
        return false;
    };
    !scale.exchanges(live).any(|at| chosen.has(Unit::Exchange(at)))
}
