//! Sums of results by set of sessions, policy and budget.

use crate::{
    needle::{NeedleKind, NeedlePlace},
    result::{CaseResult, CellResult, TurnSums, sum_of_costs},
    share::{Share, per_mille},
};
use std::{fmt, str::FromStr};

/// The sums over all results.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    /// The rows in the order of their first result.
    rows: Vec<ScoreRow>,
}

/// The sums over the results of one policy at one budget in one set of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScoreRow {
    /// The name of the set, such as its file.
    pub set: String,
    /// The name of the policy.
    pub policy: String,
    /// True for a baseline.
    pub is_baseline: bool,
    /// The prompt budget in tokens.
    pub budget: u64,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of questions with evidence.
    pub questions: u64,
    /// The number of these questions with all their evidence in the prompt.
    pub questions_whole: u64,
    /// The number of pieces of evidence.
    pub evidence: u64,
    /// The number of pieces of evidence in the prompt.
    pub evidence_found: u64,
    /// The sum of the share of evidence over the questions, in millionths.
    shares: u64,
    /// The number of questions, with or without evidence.
    pub prompts: u64,
    /// The tokens of their prompts.
    pub tokens: u64,
    /// The budgets of their prompts in tokens.
    pub budgets: u64,
    /// The number of these prompts over their budget.
    pub overflows: u64,
    /// The cost of the input of these prompts without a cache, in billionths of a US dollar.
    question_cost: Option<u64>,
    /// The sums over the turns before the questions.
    pub turns: TurnSums,
    /// The survival of needles by kind, place and number of compactions.
    pub needles: Vec<NeedleScore>,
}

/// The survival of the needles of one kind and place after a number of compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeedleScore {
    /// The kind.
    pub kind: NeedleKind,
    /// The place among the messages before the first compaction.
    pub place: NeedlePlace,
    /// The number of compactions.
    pub compactions: u64,
    /// The number of needles that are in the prompt, word by word.
    pub survived: u64,
    /// The number of needles.
    pub planted: u64,
}

impl Scores {
    /// Adds the results of one session of a set.
    pub fn add(&mut self, set: &str, result: &CaseResult) {
        for cell in &result.cells {
            // Linear, because an evaluation has a few dozen rows.
            let is_row =
                |row: &ScoreRow| row.set == set && row.policy == cell.policy && row.budget == cell.budget;
            let at = self.rows.iter().position(is_row).unwrap_or_else(|| {
                self.rows.push(ScoreRow::new(set, cell));
                self.rows.len() - 1
            });
            self.rows[at].add(cell);
        }
    }

    /// Returns the rows, in the order of the sets, policies and budgets of the results.
    #[must_use]
    pub fn rows(&self) -> &[ScoreRow] {
        &self.rows
    }
}

impl ScoreRow {
    fn new(set: &str, cell: &CellResult) -> Self {
        Self {
            set: set.to_owned(),
            policy: cell.policy.clone(),
            is_baseline: cell.is_baseline,
            budget: cell.budget,
            sessions: 0,
            questions: 0,
            questions_whole: 0,
            evidence: 0,
            evidence_found: 0,
            shares: 0,
            prompts: 0,
            tokens: 0,
            budgets: 0,
            overflows: 0,
            question_cost: None,
            turns: TurnSums::default(),
            needles: Vec::new(),
        }
    }

    fn add(&mut self, cell: &CellResult) {
        self.sessions += 1;
        for result in &cell.questions {
            self.prompts += 1;
            self.tokens = self.tokens.saturating_add(result.tokens);
            self.budgets = self.budgets.saturating_add(result.budget);
            self.overflows += u64::from(result.overflow > 0);
            self.question_cost = sum_of_costs(self.question_cost, result.cost);
            // Results may be read from a file that somebody changed.
            let missing = (result.missing.len() as u64).min(result.evidence);
            // A question without evidence has no share: the answer is not in the session.
            if let Some(share) =
                (result.evidence.saturating_sub(missing) * 1_000_000).checked_div(result.evidence)
            {
                self.questions += 1;
                self.questions_whole += u64::from(missing == 0);
                self.evidence += result.evidence;
                self.evidence_found += result.evidence.saturating_sub(missing);
                self.shares += share;
            }
        }
        self.turns.add(&cell.turns);
        for needle in &cell.needles {
            let is_score = |score: &&mut NeedleScore| {
                (score.kind, score.place, score.compactions)
                    == (needle.kind, needle.place, needle.compactions)
            };
            let survived = u64::from(needle.survived);
            match self.needles.iter_mut().find(is_score) {
                Some(score) => {
                    score.survived += survived;
                    score.planted += 1;
                }
                None => self.needles.push(NeedleScore {
                    kind: needle.kind,
                    place: needle.place,
                    compactions: needle.compactions,
                    survived,
                    planted: 1,
                }),
            }
        }
    }

    /// Returns the cost of the input of all prompts, those of turns and of questions, in billionths of a US
    /// dollar. Returns `None` if the model has no price.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        sum_of_costs(self.turns.cost, self.question_cost)
    }

    /// Returns the share of questions with all their evidence in the prompt.
    #[must_use]
    pub fn whole(&self) -> Share {
        Share::new(self.questions_whole, self.questions)
    }

    /// Returns the survival of all needles.
    #[must_use]
    pub fn survival(&self) -> Share {
        let sum = |count: fn(&NeedleScore) -> u64| self.needles.iter().map(count).sum();
        Share::new(sum(|score| score.survived), sum(|score| score.planted))
    }

    /// Returns the survival of one kind of needle after some compactions, for each place of
    /// [`NeedlePlace::ALL`].
    #[must_use]
    pub fn survival_by_place(&self, kind: NeedleKind, compactions: u64) -> [Share; 3] {
        NeedlePlace::ALL.map(|place| {
            let is_score = |score: &&NeedleScore| {
                (score.kind, score.place, score.compactions) == (kind, place, compactions)
            };
            let score = self.needles.iter().find(is_score);
            score.map_or(Share::new(0, 0), |score| Share::new(score.survived, score.planted))
        })
    }

    /// Returns a metric in per mille, or `None` if nothing was measured.
    #[must_use]
    pub fn per_mille(&self, metric: Metric) -> Option<u64> {
        // Sums of tokens, not means of shares: a long prompt costs more than a short one.
        let turns = &self.turns;
        let share = match metric {
            Metric::Whole => self.whole(),
            Metric::Evidence => Share::new(self.shares, self.questions * 1_000_000),
            // Not a share: prompts over their budget can make it exceed 100 %.
            Metric::BudgetUsed => {
                let tokens = self.tokens.saturating_add(turns.tokens);
                return per_mille(tokens, self.budgets.saturating_add(turns.budget));
            }
            Metric::PrefixKept => Share::new(turns.kept, turns.before),
            Metric::CacheHit => Share::new(turns.kept, turns.after),
            Metric::Needles => self.survival(),
        };
        share.per_mille()
    }
}

/// A figure of a row, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// Questions with all their evidence in the prompt.
    Whole,
    /// The share of a question's evidence in the prompt, averaged over the questions.
    Evidence,
    /// Tokens of all prompts, those of turns and of questions, in relation to their budgets.
    BudgetUsed,
    /// Tokens of the previous prompts that are repeated as the beginning of the next.
    PrefixKept,
    /// Tokens that repeat the beginning of the previous prompt, in relation to all tokens.
    CacheHit,
    /// Needles that survive all compactions.
    Needles,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 6] =
        [Self::Whole, Self::Evidence, Self::BudgetUsed, Self::PrefixKept, Self::CacheHit, Self::Needles];

    /// Returns the name of the metric.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Evidence => "evidence",
            Self::BudgetUsed => "budget_used",
            Self::PrefixKept => "prefix_kept",
            Self::CacheHit => "cache_hit",
            Self::Needles => "needles",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|metric| metric.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("no metric `{name}`; expected one of {}", names()))
    }
}
