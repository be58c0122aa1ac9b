//! What a prompt budget leaves for the items.

use crate::item::Section;

/// What a prompt budget leaves for the items, and what that depends on beside the items; tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Available {
    /// The prompt budget less what is sent in any case: tools, the reply header. It may be below zero.
    pub(crate) tokens: i128,
    /// What the wrapper around documents costs.
    pub(crate) block: u64,
    /// Whether that much is kept free although no document is in yet.
    pub(crate) reserves_block: bool,
    /// What merging all state into the live question saves.
    pub(crate) merge: u64,
    /// The most that each section may take, in the order of [`Section::ALL`].
    pub(crate) caps: [Option<u64>; 3],
}

impl Available {
    /// All of it, where there is any.
    pub(crate) fn total(&self) -> u64 {
        clamped(self.tokens)
    }

    /// How far it is below zero, where what is sent in any case is more than the budget.
    pub(crate) fn missing(&self) -> u64 {
        clamped(-self.tokens)
    }

    /// What is kept free for the documents' wrapper.
    pub(crate) fn reserved(&self) -> u64 {
        if self.reserves_block { self.block } else { 0 }
    }

    /// What the sections divide.
    pub(crate) fn to_divide(self) -> u64 {
        self.total().saturating_sub(self.reserved())
    }

    /// What is free beside `used` tokens of items, with the wrapper where it is sent or kept free. It may be
    /// below zero.
    pub(crate) fn free(&self, used: i128, block: bool) -> i128 {
        self.tokens - used - if block { i128::from(self.block) } else { 0 }
    }

    /// What pins may take of it before the sections divide the rest; `limit` is per mille (rule S2).
    pub(crate) fn for_pins(&self, limit: u16) -> u64 {
        per_mille(self.total(), limit)
    }

    /// What the documents of one question may take of it; `limit` is per mille (rule S10).
    pub(crate) fn for_a_question(&self, limit: u16) -> u64 {
        per_mille(self.to_divide(), limit)
    }

    pub(crate) fn cap(&self, section: Section) -> Option<u64> {
        self.caps[section as usize]
    }
}

/// A part of an amount, rounded down.
pub(super) fn per_mille(of: u64, part: u16) -> u64 {
    let part = u128::from(of) * u128::from(part) / 1000;
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Tokens as they are counted: nothing is less than none.
pub(crate) fn clamped(tokens: i128) -> u64 {
    u64::try_from(tokens.max(0)).unwrap_or(u64::MAX)
}
