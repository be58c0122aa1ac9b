//! What documents and state of earlier questions cost where they stay, against what their leaving would cost
//! (rule S11).

use serde::Serialize;

/// Documents and state of earlier questions in the last prompt, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetentionCost {
    /// How many they are.
    pub items: u64,
    /// What they take; tokens.
    pub tokens: u64,
    /// What it has cost so far to read them again with each prompt after their first; billionths of a US
    /// dollar.
    pub spent: u64,
    /// What it would cost to send the prompt without them: all behind the first of them is written to the
    /// cache anew, and what was thought there is thought again, where the model checks; billionths of a US
    /// dollar.
    pub leaving: u64,
    /// Whether they leave with this plan, because `spent` has reached `leaving`.
    pub leave: bool,
}
