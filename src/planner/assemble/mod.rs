//! The prompt of a selection, and the plan that reports it.
//!
//! - Input: a selection, with its costs and budgets.
//! - Output: rows, messages in the provider's form, ledger, notices, plan.
//! - Rules: O1 to O6, B3, N3, H4 to H9, S6, U2.
//!
//! The modules below have the order of the work: [`included`] writes rows and messages, [`conform`] applies
//! the provider's form, [`ledger`] counts, and [`plan`] builds the plan. [`laid_out`] holds their result.

use crate::{
    config::{DocumentOrder, Placement, UsageOptions},
    plan::{BudgetSource, ContextEditing, LedgerLine, Notice},
    planner::candidates::{CandidateId, Candidates},
    provider::model::{Limits, LimitsSource, Model},
    usage::{ReportedUsage, TokenCalibration},
};

mod dropped_pins;
mod laid_out;
mod included;
mod arrangement;
mod block;
mod excluded;
mod marks;
mod conform;
mod ledger;
mod plan;
mod remedies;
mod overflow;
mod pressure;
mod notices;

pub(crate) use conform::{BRIDGE, CONTINUE, LEAD};
pub(crate) use included::notes;
pub(crate) use laid_out::LaidOut;

/// The facts of a plan that are known before anything is selected.
#[derive(Clone)]
pub(crate) struct PlanContext<'a> {
    pub(crate) model: &'a Model,
    pub(crate) config: String,
    pub(crate) limits: Limits,
    pub(crate) limits_source: LimitsSource,
    pub(crate) prompt_budget: u64,
    pub(crate) budget_source: BudgetSource,
    /// The tokens of tools, template and reply priming, one line each.
    pub(crate) overhead: Vec<LedgerLine>,
    /// The calibration from counted tokens to the provider's tokens.
    pub(crate) calibration: Option<TokenCalibration>,
    /// The last usage report, if it is not plausible.
    pub(crate) implausible: Option<ReportedUsage>,
    pub(crate) placement: Placement,
    /// The order of the documents in the prompt.
    pub(crate) order: DocumentOrder,
    pub(crate) usage: UsageOptions,
    /// The edits that the provider is asked to make by itself.
    pub(crate) editing: Option<ContextEditing>,
    /// Notices that do not depend on the selection.
    pub(crate) notices: Vec<Notice>,
    /// True if the body of the request states the context length.
    pub(crate) states_context: bool,
}

impl PlanContext<'_> {
    /// Returns the largest prompt budget of the model, or the budget in use if that is larger.
    pub(crate) fn largest_budget(&self) -> u64 {
        self.limits.largest_budget().max(self.prompt_budget)
    }

    /// Returns the base of percentages in compaction options, in tokens: the capacity, or the request's own
    /// budget if that is smaller.
    pub(crate) fn window(&self) -> u64 {
        match self.budget_source {
            BudgetSource::Request => self.limits.capacity().min(self.prompt_budget),
            _ => self.limits.capacity(),
        }
    }

    /// Returns the tokens that a prompt budget leaves for items; may be negative.
    pub(crate) fn total(&self, budget: u64) -> i128 {
        // A budget is in the provider's tokens, items are counted here (N6).
        let budget =
            self.calibration.map_or(i128::from(budget), |calibration| calibration.max_local_tokens(budget));
        budget - self.overhead.iter().map(|line| i128::from(line.tokens)).sum::<i128>()
    }

    /// Returns the tokens of a prompt with `tokens` tokens of items, as the provider is expected to count it
    /// with the overhead.
    pub(crate) fn prompt_total(&self, tokens: i128) -> u64 {
        let counted = tokens + self.overhead.iter().map(|line| i128::from(line.tokens)).sum::<i128>();
        let total = self.calibration.map_or(counted, |calibration| calibration.to_provider_tokens(counted));
        u64::try_from(total.max(0)).unwrap_or(u64::MAX)
    }
}

/// Returns the candidate of the required question, which is the place of documents and state.
pub(crate) fn question(candidates: &Candidates<'_>) -> Option<CandidateId> {
    let first = candidates.index().required_conversation.first().copied();
    first.filter(|candidate| {
        !matches!(candidate, CandidateId::Summary(_)) && candidates.index().live_turn().is_some()
    })
}

#[cfg(test)]
pub(crate) use plan::LAID_OUT;
