//! The results of one case.

use crate::needle::{NeedleKind, NeedlePlace};
use serde::{Deserialize, Serialize};

/// The results of one session: a cell for each policy and budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CaseResult {
    /// The id of the session.
    pub session: String,
    /// The results of each policy at each budget, in the order of the evaluation.
    pub cells: Vec<CellResult>,
}

/// The results of one policy at one budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CellResult {
    /// The name of the policy.
    pub policy: String,
    /// True for a baseline, false for the planner.
    pub is_baseline: bool,
    /// The prompt budget in tokens.
    pub budget: u64,
    /// The questions, in the order of the session.
    pub questions: Vec<QuestionResult>,
    /// The sums over the prompts of the session's turns.
    pub turns: TurnSums,
    /// The needles, if the evaluation plants some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needles: Vec<NeedleResult>,
}

/// The result of one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuestionResult {
    /// The position of the question in the session, from 0.
    pub question: usize,
    /// The kind of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The number of pieces of evidence. 0 if the answer is not in the session.
    pub evidence: u64,
    /// The ids of the evidence that is not in the prompt.
    pub missing: Vec<String>,
    /// The tokens of the prompt.
    pub tokens: u64,
    /// The prompt budget in tokens.
    pub budget: u64,
    /// The tokens above the budget.
    pub overflow: u64,
    /// The cost of the prompt's input without a cache, in billionths of a US dollar. `None` if the model has
    /// no price.
    pub cost: Option<u64>,
}

/// Sums over the prompts of a session's turns, of which every k-th is planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnSums {
    /// The number of prompts.
    pub prompts: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Their budgets in tokens.
    pub budget: u64,
    /// The number of prompts over their budget.
    pub overflows: u64,
    /// The tokens that repeat the beginning of the previous prompt.
    pub kept: u64,
    /// The tokens of these previous prompts.
    pub before: u64,
    /// The tokens of the prompts that have a previous prompt.
    pub after: u64,
    /// The cost of the input in billionths of a US dollar. `None` if the model has no price.
    pub cost: Option<u64>,
    /// The number of compactions.
    pub compactions: u64,
}

impl TurnSums {
    /// Adds the sums of other turns.
    pub fn add(&mut self, other: &Self) {
        self.prompts += other.prompts;
        // Budgets come from users, and may be as large as the type.
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.budget = self.budget.saturating_add(other.budget);
        self.overflows += other.overflows;
        self.kept += other.kept;
        self.before += other.before;
        self.after += other.after;
        self.compactions += other.compactions;
        self.cost = sum_of_costs(self.cost, other.cost);
    }
}

/// Adds two costs. A cost that is unknown counts as 0, unless both are.
pub(crate) fn sum_of_costs(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.or(other).map(|_| one.unwrap_or_default().saturating_add(other.unwrap_or_default()))
}

/// The survival of one needle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NeedleResult {
    /// The kind of the needle.
    pub kind: NeedleKind,
    /// Its place among the messages before the first compaction.
    pub place: NeedlePlace,
    /// The number of compactions after it.
    pub compactions: u64,
    /// True if its text is in the prompt, word by word.
    pub survived: bool,
}
