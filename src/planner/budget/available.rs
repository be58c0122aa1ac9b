//! The tokens that a prompt budget leaves for items.
//!
//! - Input: the prompt budget less the overhead.
//! - Output: [`Available`]: the tokens to divide, to reserve, and the limits that derive from them.
//! - Rules: B3, B4, S2, S10, S15.

use crate::item::Section;

/// The tokens that a prompt budget leaves for items, and the amounts that limit their use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Available {
    /// The prompt budget less tools and reply header, in tokens; may be negative.
    pub(crate) tokens: i128,
    /// Tokens of the wrapper around documents.
    pub(crate) block: u64,
    /// True if these tokens are reserved although no document is included yet.
    pub(crate) reserves_block: bool,
    /// Tokens saved by merging all state into the live question.
    pub(crate) merge: u64,
    /// The maximum of each section in tokens, in the order of [`Section::ALL`].
    pub(crate) caps: [Option<u64>; 3],
}

impl Available {
    /// Returns the tokens, or 0 if they are negative.
    pub(crate) fn total(&self) -> u64 {
        clamped(self.tokens)
    }

    /// Returns the tokens by which tools and reply header exceed the budget, or 0 if they fit.
    pub(crate) fn missing(&self) -> u64 {
        clamped(-self.tokens)
    }

    /// Returns the tokens reserved for the wrapper around documents.
    pub(crate) fn reserved(&self) -> u64 {
        if self.reserves_block { self.block } else { 0 }
    }

    /// Returns the tokens that the sections divide.
    pub(crate) fn to_divide(self) -> u64 {
        self.total().saturating_sub(self.reserved())
    }

    /// Returns the tokens left by `used` tokens of items, and by the wrapper if `block` is true; may be
    /// negative.
    pub(crate) fn free(&self, used: i128, block: bool) -> i128 {
        self.tokens - used - if block { i128::from(self.block) } else { 0 }
    }

    /// Returns the maximum tokens of pins before the sections divide the rest. `limit` is per mille (rule
    /// S2).
    pub(crate) fn for_pins(&self, limit: u16) -> u64 {
        per_mille(self.total(), limit)
    }

    /// Returns the maximum tokens of one question's documents. `limit` is per mille (rule S10).
    pub(crate) fn question_limit(&self, limit: u16) -> u64 {
        per_mille(self.to_divide(), limit)
    }

    /// Returns the maximum tokens of recalled messages. `share` is per mille (rule S15).
    pub(crate) fn recall_share(&self, share: u16) -> u64 {
        per_mille(self.to_divide(), share)
    }

    /// Returns the maximum of a section in tokens, if it has one.
    pub(crate) fn cap(&self, section: Section) -> Option<u64> {
        self.caps[section as usize]
    }
}

/// Returns `part` per mille of an amount, rounded down.
pub(super) fn per_mille(of: u64, part: u16) -> u64 {
    let part = u128::from(of) * u128::from(part) / 1000;
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Converts a signed number of tokens to an unsigned one; negative becomes 0.
pub(crate) fn clamped(tokens: i128) -> u64 {
    u64::try_from(tokens.max(0)).unwrap_or(u64::MAX)
}
