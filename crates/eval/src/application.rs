//! An application that plans prompts and compacts.

use crate::{error::Error, result::TurnSums};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, Model, PlanRequest, RequestLimits, Tool,
    usage::CostTerms,
};

/// A planner in an application: its limits and tools, and the number of prompts from one that is planned to
/// the next.
pub(crate) struct Application<'a> {
    pub(crate) manager: &'a ContextWindowManager,
    pub(crate) model: &'a Model,
    pub(crate) limits: RequestLimits,
    pub(crate) tools: &'a [Tool],
    /// 0 plans no prompt before the question.
    pub(crate) every: usize,
    pub(crate) terms: CostTerms<'a>,
}

impl Application<'_> {
    pub(crate) fn request<'l>(&'l self, log: &'l Conversation) -> PlanRequest<'l> {
        PlanRequest::new(log).with_tools(self.tools).with_limits(self.limits)
    }

    /// Plans the next prompt of a conversation.
    pub(crate) fn plan(&self, log: &Conversation) -> Result<ContextPlan, Error> {
        let place = || format!("message {}", log.messages().len());
        self.manager.build_plan(&self.request(log)).map_err(|error| Error::plan(place(), error))
    }

    /// Returns the sums of one prompt.
    pub(crate) fn sums(&self, plan: &ContextPlan) -> TurnSums {
        let tokens = plan.estimated_tokens_total.tokens;
        let repeated = plan.repeated();
        let kept = repeated.as_ref().map_or(0, |prefix| prefix.tokens);
        TurnSums {
            prompts: 1,
            tokens,
            budget: plan.prompt_budget,
            overflows: u64::from(plan.overflow_tokens() > 0),
            kept,
            before: repeated.as_ref().map_or(0, |prefix| prefix.of),
            after: repeated.as_ref().map_or(0, |_| tokens),
            cost: self.cost(tokens, kept),
            compactions: 0,
        }
    }

    /// Returns the cost of a prompt's input in billionths of a US dollar.
    pub(crate) fn cost(&self, tokens: u64, cached: u64) -> Option<u64> {
        self.model.input_cost(tokens, cached, self.terms).map(|cost| cost.billionths)
    }

    /// Returns the cost of a prompt's input without a cache, in billionths of a US dollar.
    pub(crate) fn uncached_cost(&self, tokens: u64) -> Option<u64> {
        self.model.input_cost(tokens, 0, self.terms).map(|cost| cost.uncached)
    }

    /// Compacts without a model if a compaction is due. Returns true if it archived messages.
    pub(crate) fn compact_if_due(&self, log: &mut Conversation) -> Result<bool, Error> {
        let compacted = self.manager.compactor().compact_if_due(log, self.tools, self.limits);
        Self::is_compacted(compacted.map(|record| record.is_some()))
    }

    /// Compacts without a model now. Returns true if it archived messages.
    pub(crate) fn compact_now(&self, log: &mut Conversation) -> Result<bool, Error> {
        let compactor = self.manager.compactor();
        let job = compactor.now(&self.request(log)).map_err(|error| Error::plan("a compaction", error))?;
        let Some(job) = job else { return Ok(false) };
        Self::is_compacted(compactor.compact_without_model(log, &job).map(|_| true))
    }

    /// Compacts with this summary now. Returns true if it archived messages.
    pub(crate) fn compact_by_summary(&self, log: &mut Conversation, summary: &str) -> Result<bool, Error> {
        let compactor = self.manager.compactor();
        let job = compactor.now(&self.request(log)).map_err(|error| Error::plan("a compaction", error))?;
        let Some(job) = job else { return Ok(false) };
        Self::is_compacted(compactor.apply_summary(log, &job, summary).map(|_| true))
    }

    /// Treats a compaction that was refused, such as one that would free nothing, as none.
    fn is_compacted(compacted: Result<bool, context_window::Error>) -> Result<bool, Error> {
        match compacted {
            // The application would go on with the whole conversation.
            Err(error) if error.kind().is_compaction() => Ok(false),
            compacted => compacted.map_err(|error| Error::plan("a compaction", error)),
        }
    }
}
