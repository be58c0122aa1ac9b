//! One request, solved for any budget: what `build_plan` does once, and what explanations do again and again.
//!
//! Most of a request does not depend on its budget: its candidates, what they cost, what the sections could use. A
//! [`Solver`] holds that, and finds a [`Solution`] for a budget. The form of tool results (rule S7) changes the costs of
//! candidates, so each form is a [`Scenario`] with costs of its own; the solution lists the scenarios that were tried, the
//! last one taken.

use crate::{
    config::Config,
    error::Error,
    item::Section,
    message::Role,
    plan::ContextPlan,
    planner::{
        assemble::{self, PlanContext},
        budget::{Available, BudgetVariable, Budgets, SectionDemands},
        candidates::{CandidateId, Candidates, Costs, Results},
        select::{OneBudget, Selection, Selector, Walker, saved_by_merging},
    },
    provider::meter::Meter,
    provider::weight::Weight,
    tokens::TokenCount,
};
use std::{cell::RefCell, convert::identity, rc::Rc};

/// How often a prompt that its joins push over the budget is planned again with less (rule N3).
pub(crate) const TRIES: u32 = 3;

/// One request, with everything that does not depend on its budget.
pub(crate) struct Solver<'p, W = OneBudget> {
    candidates: &'p Candidates<'p>,
    meter: &'p Meter,
    config: &'p Config,
    walker: W,
    /// When solving for many budgets: the largest number of available tokens among them.
    ///
    /// Costs and demands are then counted up to that number, once for all budgets, and clipping is not tried. `None` for
    /// one budget.
    many_budgets: Option<u64>,
    scenarios: RefCell<Vec<Rc<Scenario<'p, W>>>>,
}

/// Token costs and section demands for one form of the tool results (rule S7).
pub(crate) struct Scenario<'p, W> {
    pub(crate) costs: Costs<'p>,
    pub(crate) demands: SectionDemands,
    walker: W,
}

/// One form of tool results that was tried: the budgets for it, and the facts that were heard about its decisions.
pub(crate) struct Trial<'p, W: Walker> {
    pub(crate) scenario: Rc<Scenario<'p, W>>,
    pub(crate) budgets: Budgets,
    pub(crate) heard: W::Heard,
}

/// The selection for one budget.
pub(crate) struct Solution<'p, W: Walker = OneBudget> {
    pub(crate) chosen: Selection<W>,
    /// Every form of tool results that was tried, the last one taken.
    pub(crate) trials: Vec<Trial<'p, W>>,
    /// The available tokens; may be negative.
    pub(crate) available: i128,
    /// The tokens of everything that is included, with the wrapper around documents, less those that merging state saves.
    used: i128,
}

/// A plan with the solution that it was made of.
pub(crate) struct Attempt<'p> {
    pub(crate) plan: ContextPlan,
    pub(crate) solution: Solution<'p>,
    /// True if it was planned with fewer tokens than there are.
    pub(crate) withholds: bool,
}

impl<'p> Solver<'p> {
    pub(crate) fn new(candidates: &'p Candidates<'p>, meter: &'p Meter, config: &'p Config) -> Self {
        let scenarios = RefCell::default();
        Self { candidates, meter, config, walker: OneBudget, many_budgets: None, scenarios }
    }

    /// Converts to a solver for many budgets, of which none leaves more than `most` tokens. Clipping (rule S7) is not tried
    /// then.
    pub(crate) fn for_many_budgets<W>(self, walker: W, most: u64) -> Solver<'p, W> {
        let Self { candidates, meter, config, .. } = self;
        let scenarios = RefCell::default();
        Solver { candidates, meter, config, walker, many_budgets: Some(most), scenarios }
    }

    /// From the candidates to the plan: the stages budget, select, assemble, conform and ledger.
    ///
    /// What a prompt takes beside its items is partly known only once it is put together: joins, and messages that the
    /// provider requires. Where that pushes it over the budget, it is planned again with so much less, [`TRIES`] times at
    /// the most (rules N3, H5).
    pub(crate) fn plan(&self, context: &PlanContext<'_>) -> Result<Attempt<'p>, Error> {
        let (candidates, meter) = (self.candidates, self.meter);
        let (mut withheld, mut tries) = (0, TRIES);
        #[cfg(test)]
        PLANNED.with(|planned| planned.set(planned.get() + 1));
        loop {
            // Budget: the available tokens, divided among the sections, pins first (S2, B4, B5), with results as short as
            // they have to be (S7).
            let available = self.available(context, context.prompt_budget, withheld);
            // Select: required, pinned, conversation, documents, then the free tokens once more (S2-S5, S8, S9, B6).
            let mut solution = self.select(available, identity)?;
            let (scenario, budgets) = solution.taken();
            self.selector(&scenario).record_reasons(&mut solution.chosen, &budgets)?;
            // Assemble: what was chosen, in prompt order (O1).
            let (chosen, costs) = (&solution.chosen, &scenario.costs);
            let mut draft = assemble::draft(candidates, costs, meter, chosen, context.placement)?;
            // Conform: the messages that the provider accepts (H4-H9).
            assemble::conform(&mut draft, candidates, meter, context)?;
            // Ledger: every token, what is out and why, and what would help (O2, N3, S6, U2).
            let plan = assemble::plan(context, candidates, costs, meter, &budgets, chosen, draft)?;
            let required = plan.included.iter().filter(|row| row.kind.is_required_by_provider());
            let required: u64 = required.map(|row| row.tokens.n).sum();
            match solution.withholds_next(plan.overflow_tokens(), withheld, required).filter(|_| tries > 0) {
                Some(more) => (withheld, tries) = (more, tries - 1),
                None => return Ok(Attempt { plan, solution, withholds: withheld > 0 }),
            }
        }
    }
}

impl<'p, W: Walker> Solver<'p, W> {
    /// Selects for a prompt budget with so many tokens withheld: the stages budget and select.
    ///
    /// # Errors
    ///
    /// Counters that fail.
    pub(crate) fn solve(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
        withheld: u64,
    ) -> Result<Solution<'p, W>, Error> {
        let available = self.available(context, budget, withheld);
        self.select(available, identity)
    }

    /// Selects as if documents were to come that could use any number of tokens.
    ///
    /// # Errors
    ///
    /// Counters that fail.
    pub(crate) fn solve_expecting_documents(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
    ) -> Result<Solution<'p, W>, Error> {
        let available = Available { reserves_block: true, ..self.available(context, budget, 0) };
        self.select(available, SectionDemands::with_any_documents)
    }

    /// Divides the available tokens among the sections and selects, with tool results as short as they have to be (rule S7).
    /// `adjust` changes the demands of the candidates.
    fn select(
        &self,
        available: Available,
        adjust: fn(SectionDemands) -> SectionDemands,
    ) -> Result<Solution<'p, W>, Error> {
        let mut results = Results::remembered(self.candidates);
        let mut trials = Vec::new();
        loop {
            let scenario = self.scenario(results, available.total())?;
            let selector = self.selector(&scenario);
            let (mut chosen, budgets) = divide(&selector, adjust(scenario.demands), available)?;
            let shorter = selector.begin(&budgets, &mut chosen)?;
            if shorter.is_none() {
                selector.complete(&budgets, &mut chosen)?;
            }
            let heard = scenario.walker.take_heard();
            trials.push(Trial { scenario, budgets, heard });
            let Some(shorter) = shorter else {
                let block = if chosen.has_documents() { i128::from(available.block) } else { 0 };
                let merged = saved_by_merging(self.candidates.index(), &available, &chosen);
                let used = chosen.included.used() + block - i128::from(merged);
                return Ok(Solution { chosen, trials, available: available.tokens, used });
            };
            results = shorter;
        }
    }

    fn selector<'s>(&'s self, scenario: &'s Scenario<'p, W>) -> Selector<'s, W> {
        Selector {
            index: self.candidates.index(),
            costs: &scenario.costs,
            config: self.config,
            walker: &scenario.walker,
        }
    }

    /// Returns the costs and demands for one form of tool results, found once for all budgets; `total` are the available
    /// tokens.
    fn scenario(&self, results: Results, total: u64) -> Result<Rc<Scenario<'p, W>>, Error> {
        let known = self.scenarios.borrow().iter().find(|one| *one.costs.results() == results).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let clipped = results.clips();
        let costs = Costs::new(self.candidates, self.meter, results).for_many_budgets(self.many_budgets);
        let most = self.many_budgets.unwrap_or(total);
        let demands = SectionDemands::of(most, self.config, self.candidates.index(), &costs)?;
        let scenario = Rc::new(Scenario { costs, demands, walker: self.walker.for_other_costs() });
        if !clipped {
            self.scenarios.borrow_mut().push(Rc::clone(&scenario));
        }
        Ok(scenario)
    }

    /// Returns the tokens that a document may take of all that a solution leaves.
    pub(crate) fn left_for_documents(&self, solution: &Solution<'p, W>) -> u64 {
        let (scenario, budgets) = solution.taken();
        self.selector(&scenario).left_for_documents(&budgets.available, &solution.chosen)
    }

    /// What a candidate costs, counted no further than to `limit` tokens.
    pub(crate) fn cost(&self, id: CandidateId, limit: u64) -> Result<TokenCount, Error> {
        let results = Results::remembered(self.candidates);
        Ok(match self.scenario(results, limit)?.costs.weigh(id, limit)? {
            Weight::Exactly(n) => {
                let log = self.candidates.log();
                let messages = self.candidates.members(id).into_iter().map(|at| log.message(at));
                let certainty =
                    messages.map(|message| self.meter.counted_message(message, n).certainty).max();
                certainty.map_or_else(|| self.meter.counted(n), |certainty| TokenCount { n, certainty })
            }
            Weight::Over => TokenCount { n: limit.saturating_add(1), certainty: self.meter.at_least() },
        })
    }

    pub(crate) fn config(&self) -> &'p Config {
        self.config
    }

    fn available(&self, context: &PlanContext<'_>, budget: u64, withheld: u64) -> Available {
        let index = self.candidates.index();
        let merged = if index.state_comes_last { index.states() } else { 0 };
        Available {
            tokens: context.total(budget) - i128::from(withheld),
            block: self.meter.block(),
            reserves_block: index.competing_documents().next().is_some(),
            merge: self.meter.saved_by_merging(Role::User) * merged,
            caps: Section::ALL.map(|section| self.config.sections.of(section).cap),
        }
    }
}

/// Divides the available tokens among the sections, with the first pins included, or the minimum if it exceeds them
/// (rules S2, B5, S6).
fn divide<W: Walker>(
    selector: &Selector<'_, W>,
    demands: SectionDemands,
    available: Available,
) -> Result<(Selection<W>, Budgets), Error> {
    let (config, walker) = (selector.config, selector.walker);
    let report = |amount, least| walker.compared(BudgetVariable::Free, amount, least);
    if demands.overflow(&available, report) {
        return Ok((selector.minimum()?, demands.only_minimums(available, config)));
    }
    let (chosen, pins) = selector.pins_first(&available)?;
    Ok((chosen, demands.divide(available, pins, config, report)))
}

impl<'p, W: Walker> Solution<'p, W> {
    /// Returns the scenario that was taken, and its budgets.
    fn taken(&self) -> (Rc<Scenario<'p, W>>, Budgets) {
        let taken = &self.trials[self.trials.len() - 1];
        (Rc::clone(&taken.scenario), taken.budgets)
    }

    /// What the documents' share holds, and no more than their budget; tokens.
    pub(crate) fn document_share(&self) -> u64 {
        self.trials[self.trials.len() - 1].budgets.document_share()
    }

    /// Documents and state before this position are not sent (rule S10).
    pub(crate) fn released_before(&self) -> u32 {
        self.trials[self.trials.len() - 1].scenario.costs.results().released_before
    }

    /// Whether only the minimum is included, because it exceeds the budget.
    pub(crate) fn is_minimal(&self) -> bool {
        self.trials[self.trials.len() - 1].budgets.overflow
    }

    /// Returns the tokens to withhold next, where a prompt that holds more than the minimum is over its budget
    /// by `excess` tokens that are known only once it is put together. `required` are those of its placeholder
    /// messages. Returns `None` if the prompt stays as it is.
    pub(crate) fn withholds_next(&self, excess: u64, withheld: u64, required: u64) -> Option<u64> {
        (excess > 0 && !self.is_minimal()).then(|| withheld.saturating_add(excess).max(required))
    }

    /// Returns the tokens of everything that is in.
    pub(crate) fn used(&self) -> i128 {
        self.used
    }

    /// Available tokens not used; may be negative.
    pub(crate) fn left(&self) -> i128 {
        self.available - self.used
    }
}

#[cfg(test)]
thread_local! {
    /// The prompts that were planned as a whole.
    pub(crate) static PLANNED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
