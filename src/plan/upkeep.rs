//! The cost of retained documents and state, compared with the cost of the prompt without them (retention
//! cost, rule S11).

use serde::Serialize;

/// Documents and state of earlier questions in the last prompt, with their costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetentionCost {
    /// Number of these documents and state entries.
    pub items: u64,
    /// Tokens of all of them.
    pub tokens: u64,
    /// The cost so far of reading them again with each prompt after their first, in billionths of a US
    /// dollar.
    pub spent: u64,
    /// The cost of sending the prompt without them, in billionths of a US dollar. All tokens after the first
    /// of them are written to the cache again. If the model checks the prompt before its reasoning, that
    /// reasoning is produced again.
    pub leaving: u64,
    /// True if this plan evicts them, because `spent` has reached `leaving`.
    pub leave: bool,
}
