//! The plan of one request, made in rounds.
//!
//! - Input: a request, its limits and prompt budget, and the part of the last prompt to continue.
//! - Output: the plan.
//! - Rules: all of them; the diagram in `docs/planning.md` shows the steps of a round.
//!
//! A round gathers candidates, divides the budget, selects items, lays out the prompt and checks it. Each
//! fault that the check finds adds one adjustment (`Replan`), and the next round starts.

use crate::{
    config::{Placement, ReasoningPolicy},
    conversation::Conversation,
    error::{Error, Repr},
    plan::{
        ContextPlan, DropReason,
        anchor::{Sticky, Target},
    },
    planner::{
        assemble::{LaidOut, PlanContext},
        candidates::Candidates,
        manager::ContextWindowManager,
        reasoning,
        replan::Replan,
        request::PlanRequest,
        retained,
        solve::Solver,
    },
};
use std::{collections::BTreeMap, convert::identity};

impl ContextWindowManager {
    /// Plans a request. `sticky` is the part of the last prompt to continue.
    pub(crate) fn plan_from(
        &self,
        request: &PlanRequest<'_>,
        context: &PlanContext<'_>,
        sticky: Sticky<'_>,
    ) -> Result<ContextPlan, Error> {
        self.plan_in_rounds(request, context, sticky).map(|(plan, _)| plan)
    }

    /// Plans a request in rounds until the prompt has no fault. Each round adds one adjustment, for the fault
    /// that the previous round found. Returns the plan, and the adjustments that led to it.
    fn plan_in_rounds(
        &self,
        request: &PlanRequest<'_>,
        context: &PlanContext<'_>,
        sticky: Sticky<'_>,
    ) -> Result<(ContextPlan, Replan), Error> {
        let mut replan = self.first_replan(request.log);
        let mut rounds = 0;
        loop {
            let candidates = self.candidates(request, sticky, &replan)?;
            // Rounds with the same candidates share one solver, so that no candidate is counted twice.
            let solver = self.solver(&candidates);
            loop {
                rounds += 1;
                debug_assert!(
                    rounds <= Replan::max_rounds(request.log, candidates.notes()),
                    "{rounds} rounds: {replan:?}"
                );
                if let Some(plan) = self.plan_round(context, &solver, &mut replan)? {
                    return Ok((plan, replan));
                }
                if replan.changes_candidates() {
                    break;
                }
            }
        }
    }

    /// Plans one round: divides the budget, selects items, lays out the prompt, checks it.
    ///
    /// Returns `None` if the check adjusted the next round.
    fn plan_round(
        &self,
        context: &PlanContext<'_>,
        solver: &Solver<'_>,
        replan: &mut Replan,
    ) -> Result<Option<ContextPlan>, Error> {
        let candidates = solver.candidates();
        // Divide the budget among the sections, pins first (S2, B4, B5). Tool results are shortened only as
        // far as needed (S7).
        let available = solver.available(context, context.prompt_budget, replan.tokens_withheld());
        let rendering = replan.rendering().cloned().unwrap_or_else(|| candidates.remembered_rendering());
        let selector = solver.selector(rendering, available.total())?;
        let (budgets, mut chosen) = selector.divide(available, identity)?;
        // Select: required items, pins, conversation and documents, then the same again with the free tokens
        // (S2 to S5, S8, S9, B6).
        if let Some(other) = selector.select(&budgets, &mut chosen)? {
            replan.change_rendering(selector.costs.rendering(), other);
            return Ok(None);
        }
        selector.record_reasons(&budgets, &mut chosen)?;
        // Lay out: prompt order, the provider's form, every token (O1, O2, H4 to H9, B3, N3).
        let meter = candidates.meter();
        let prompt = LaidOut::new(context, candidates, &selector.costs, meter, (&budgets, &chosen))?;
        // Check for faults. Joins and placeholders may push the prompt over its budget (N3, H5). The
        // documents of the last prompt may not fit (S5). Retained texts may have left (S10), and the provider
        // may refuse reasoning (K1 to K4). A prompt of the minimum alone is not planned again: fewer tokens
        // would give the same prompt.
        if !budgets.overflow && replan.withhold_tokens(prompt.excess(), prompt.required_by_provider()) {
            return Ok(None);
        }
        if chosen.set_does_not_fit {
            replan.give_up_documents();
            return Ok(None);
        }
        let request = candidates.request();
        let lost = self.lost_reasoning(&prompt, request)?;
        let Some(left) = replan.adjust_to(prompt.missing(), lost, self.reasoning_policy()) else {
            return Ok(None);
        };
        // The provider drops reasoning by itself only if the request has this switch.
        let drops = self.reasoning_policy() == ReasoningPolicy::Provider;
        let switch = self.model().mismatch_switch().filter(|_| drops);
        prompt.into_plan(replan, left, switch, request.settings(self.meter())).map(Some)
    }

    /// Finds the reasoning that is invalid in a prompt, by position of its message.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Count` if the request asks for exact counts of excluded items and the counter fails.
    pub(crate) fn lost_reasoning(
        &self,
        prompt: &LaidOut<'_>,
        request: &PlanRequest<'_>,
    ) -> Result<BTreeMap<u32, DropReason>, Error> {
        // The comparison builds the rows of all excluded items, so it is skipped for a prompt without
        // reasoning.
        let has_reasoning = || prompt.rows().iter().any(|row| !row.body.reasoning().is_empty());
        if self.model().thinking.is_none() || !has_reasoning() {
            return Ok(BTreeMap::new());
        }
        Ok(reasoning::lost_reasoning(prompt.sent_prompt()?, request, self.model()))
    }

    /// Returns the adjustments of the first round of a request.
    pub(crate) fn first_replan(&self, log: &Conversation) -> Replan {
        Replan::new(log, self.reasoning_policy())
    }

    /// Returns the adjustments of the last round of a request.
    pub(crate) fn final_adjustments(&self, request: &PlanRequest<'_>) -> Result<Replan, Error> {
        // If no reasoning, retained text or rule can be lost, no round extends the lists of the first one.
        let has_rules = || !request.known_rules(self.config().compaction.rules).is_empty();
        if !self.may_lose_reasoning(request) && self.placement() != Placement::WithQuestion && !has_rules() {
            return Ok(self.first_replan(request.log));
        }
        let context = self.context(request)?;
        let sticky = self.sticky(request, &context);
        self.plan_in_rounds(request, &context, sticky).map(|(_, replan)| replan)
    }

    /// Gathers the candidates of a request (rules S1, S2, S8, S9, T1, T2, O5).
    pub(crate) fn candidates<'r>(
        &'r self,
        request: &'r PlanRequest<'r>,
        sticky: Sticky<'_>,
        replan: &Replan,
    ) -> Result<Candidates<'r>, Error> {
        let target = Target::from_model(self.model());
        let meter = self.document_meter(request, sticky);
        if request.wants_structured_output && meter.format().citations() == Some(true) {
            // The provider would refuse the request. Without documents, nothing is cited.
            let retains = retained::has_documents(request.log, sticky.released_through);
            if retains || !request.rag.is_empty() {
                return Err(Error::new(Repr::CitedStructuredOutput));
            }
        }
        Candidates::gather(request, self.config(), self.placement(), &target, meter, sticky, replan)
    }

    /// Creates a solver for gathered candidates.
    pub(crate) fn solver<'p>(&'p self, candidates: &'p Candidates<'p>) -> Solver<'p> {
        Solver::new(candidates, candidates.meter(), self.config())
    }
}
