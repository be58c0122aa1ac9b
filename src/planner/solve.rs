//! One request, solved for any budget: what `build_plan` does once, and what explanations do again and again.
//!
//! Most of a request does not depend on its budget: its candidates, what they cost, what the sections could use. A
//! [`Solver`] holds that, and finds a [`Solution`] for a budget. How tool results are sent (rule S7) changes what
//! candidates cost, so each way of sending them is a [`Scenario`] with costs of its own; the solution says which
//! scenarios were tried, the last one taken.

use crate::{
    config::Config,
    error::Error,
    item::Section,
    message::Role,
    planner::{
        assemble::PlanContext,
        budget::{Available, Budgets, SectionDemands},
        candidates::{CandidateId, CandidateMap, Candidates, Costs, Known},
        observer::{Observer, Unobserved},
        rendering::ToolResultRendering,
        select::{Begun, Selection, Selector, SharedPins, Shorter, Trails, saved_by_merging},
    },
    provider::meter::Meter,
    provider::weight::Weight,
    tokens::TokenCount,
};
use std::{cell::RefCell, rc::Rc};

/// One request, with everything that does not depend on its budget.
pub(crate) struct Solver<'p, O = Unobserved> {
    candidates: &'p Candidates<'p>,
    meter: &'p Meter,
    config: &'p Config,
    observer: O,
    /// When solving for many budgets: the largest number of available tokens among them.
    ///
    /// Costs and demands are then counted up to that number, once for all budgets, and clipping is not tried. None for
    /// one budget.
    many_budgets: Option<u64>,
    pins: SharedPins,
    scenarios: RefCell<Vec<Rc<Scenario<'p, O>>>>,
}

/// What candidates cost, and what the sections could use, with tool results sent in one way (rule S7).
pub(crate) struct Scenario<'p, O> {
    pub(crate) costs: Costs<'p>,
    pub(crate) demands: SectionDemands,
    trails: Trails,
    observer: O,
}

/// The counts of one rendering, kept from one round of planning for the next.
pub(crate) struct KnownCosts {
    rendering: ToolResultRendering,
    tokens: CandidateMap<Known>,
    demands: SectionDemands,
}

/// The documents that a solution is for.
#[derive(Clone, Copy)]
pub(crate) enum Documents {
    AsGiven,
    /// They are yet to come, and could use whatever they get.
    Expected,
}

/// The questions that a selection answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Each candidate with its reason, as a plan has it.
    EachReason,
    /// The candidates that are in, no reasons.
    OnlyIncluded,
}

/// One way of sending results that was tried, what was divided for it, and what was heard of the decisions about it.
pub(crate) struct Trial<'p, O: Observer> {
    pub(crate) scenario: Rc<Scenario<'p, O>>,
    pub(crate) budgets: Budgets,
    pub(crate) heard: O::Heard,
}

/// What is in at one budget.
pub(crate) struct Solution<'p, O: Observer = Unobserved> {
    pub(crate) chosen: Selection,
    /// Every way of sending results that was tried, the last one taken.
    pub(crate) trials: Vec<Trial<'p, O>>,
    /// What is available, and might be below zero; tokens.
    pub(crate) available: i128,
    /// The tokens of everything that is in, with the wrapper around documents, less those that merging state
    /// saves.
    used: i128,
}

impl<'p> Solver<'p> {
    pub(crate) fn new(candidates: &'p Candidates<'p>, meter: &'p Meter, config: &'p Config) -> Self {
        Self {
            candidates,
            meter,
            config,
            observer: Unobserved,
            many_budgets: None,
            pins: SharedPins::default(),
            scenarios: RefCell::default(),
        }
    }

    /// Takes over the counts of an earlier round with the same candidates.
    pub(crate) fn with_known(self, known: Vec<KnownCosts>) -> Self {
        let scenario = |KnownCosts { rendering, tokens, demands }| {
            let costs = Costs::new(self.candidates, self.meter, rendering).with_known(tokens);
            Rc::new(Scenario { costs, demands, trails: Trails::default(), observer: Unobserved })
        };
        self.scenarios.replace(known.into_iter().map(scenario).collect());
        self
    }

    /// Returns the counts, for another round with the same candidates.
    pub(crate) fn into_known(self) -> Vec<KnownCosts> {
        let known = |scenario: Rc<Scenario<'_, Unobserved>>| {
            let Scenario { costs, demands, .. } = Rc::into_inner(scenario)?;
            let (rendering, tokens) = costs.into_known();
            Some(KnownCosts { rendering, tokens, demands })
        };
        self.scenarios.into_inner().into_iter().filter_map(known).collect()
    }

    /// Returns the whole selection of one budget, each candidate with its reason.
    pub(crate) fn choose(
        &self,
        scenario: &Scenario<'p, Unobserved>,
        budgets: &Budgets,
        begun: Option<Begun>,
    ) -> Result<Selection, Error> {
        let selector = self.selector(scenario, Detail::EachReason);
        let mut chosen = selector.choose(budgets, begun)?;
        selector.tell_why(&mut chosen, budgets)?;
        Ok(chosen)
    }

    /// For many budgets, of which none leaves more than `most` tokens; the observer hears each decision. Clipping (rule
    /// S7) is not tried then; see `divide`.
    pub(crate) fn observed<O: Observer + Clone>(self, observer: O, most: u64) -> Solver<'p, O> {
        let Self { candidates, meter, config, .. } = self;
        Solver {
            candidates,
            meter,
            config,
            observer,
            many_budgets: Some(most),
            pins: SharedPins::default(),
            scenarios: RefCell::default(),
        }
    }
}

impl<'p, O: Observer + Clone> Solver<'p, O> {
    /// Shares the slots of pins with another solver of the same candidates.
    pub(crate) fn sharing_pins(self, pins: &SharedPins) -> Self {
        Self { pins: pins.clone(), ..self }
    }

    /// What is included at a prompt budget with so many tokens withheld: the stages budget and select.
    pub(crate) fn solve(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
        withheld: u64,
    ) -> Result<Solution<'p, O>, Error> {
        let available = self.available(context, budget, withheld);
        self.select(available, Documents::AsGiven, Detail::OnlyIncluded)
    }

    /// As if documents were to come that could use whatever they get.
    pub(crate) fn solve_expecting_documents(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
    ) -> Result<Solution<'p, O>, Error> {
        let available = Available { reserves_block: true, ..self.available(context, budget, 0) };
        self.select(available, Documents::Expected, Detail::OnlyIncluded)
    }

    /// Returns the whole selection at a prompt budget, each candidate with its reason.
    pub(crate) fn solve_in_detail(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
        withheld: u64,
    ) -> Result<Solution<'p, O>, Error> {
        let available = self.available(context, budget, withheld);
        let mut solution = self.select(available, Documents::AsGiven, Detail::EachReason)?;
        let (scenario, budgets) = solution.taken();
        self.selector(&scenario, Detail::EachReason).tell_why(&mut solution.chosen, &budgets)?;
        Ok(solution)
    }

    /// Solves with results as short as they have to be (rule S7): one rendering after another.
    fn select(
        &self,
        available: Available,
        documents: Documents,
        detail: Detail,
    ) -> Result<Solution<'p, O>, Error> {
        let mut rendering = self.candidates.remembered_rendering();
        let mut divided = Vec::new();
        let begun = loop {
            let (scenario, budgets, shorter) = self.divide(rendering, available, documents, detail)?;
            divided.push((scenario, budgets));
            match shorter {
                Shorter::Yes(next) => rendering = next,
                Shorter::No(begun) => break begun,
            }
        };
        let (scenario, budgets) = &divided[divided.len() - 1];
        let chosen = self.selector(scenario, detail).choose(budgets, begun)?;
        let heard = |(scenario, budgets): (Rc<Scenario<'p, O>>, Budgets)| {
            let heard = scenario.observer.take();
            Trial { scenario, budgets, heard }
        };
        let trials = divided.into_iter().map(heard).collect();
        let block = if chosen.has_documents() { i128::from(available.block) } else { 0 };
        let merged = i128::from(saved_by_merging(self.candidates.index(), &available, &chosen));
        let used = chosen.used() + block - merged;
        Ok(Solution { chosen, trials, available: available.tokens, used })
    }

    /// Divides the available tokens among the sections, pins first (S2, B4, B5), with the costs of one rendering of tool
    /// results. Says if results have to be shorter; if not, the selection is found up to its window.
    pub(crate) fn divide(
        &self,
        rendering: ToolResultRendering,
        available: Available,
        documents: Documents,
        detail: Detail,
    ) -> Result<(Rc<Scenario<'p, O>>, Budgets, Shorter), Error> {
        let scenario = self.scenario(rendering, available.total())?;
        let (demands, observer) = (scenario.demands, &scenario.observer);
        let demands = match documents {
            Documents::AsGiven => demands,
            Documents::Expected => demands.with_any_documents(),
        };
        let budgets = if demands.overflow(&available, observer) {
            demands.only_minimums(available, self.config)
        } else {
            let pins = self.selector(&scenario, detail).pins_first(&available)?;
            demands.divide(available, pins, self.config, observer)
        };
        let shorter = self.selector(&scenario, detail).shorter_results(&budgets)?;
        Ok((scenario, budgets, shorter))
    }

    fn selector<'s>(&'s self, scenario: &'s Scenario<'p, O>, detail: Detail) -> Selector<'s, O> {
        Selector {
            index: self.candidates.index(),
            costs: &scenario.costs,
            config: self.config,
            observer: &scenario.observer,
            trails: &scenario.trails,
            lays_out_pins: detail == Detail::OnlyIncluded,
        }
    }

    /// The costs with results sent like this, and what the sections could use of `total`: found once for all budgets that
    /// are asked about.
    fn scenario(&self, rendering: ToolResultRendering, total: u64) -> Result<Rc<Scenario<'p, O>>, Error> {
        let known = self.scenarios.borrow().iter().find(|one| *one.costs.rendering() == rendering).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let clipped = rendering.clips();
        let costs = Costs::new(self.candidates, self.meter, rendering).for_many_budgets(self.many_budgets);
        let most = self.many_budgets.unwrap_or(total);
        let demands = SectionDemands::of(most, self.config, self.candidates.index(), &costs)?;
        let (trails, observer) = (Trails::with_pins(self.pins.clone()), self.observer.clone());
        let scenario = Rc::new(Scenario { costs, demands, trails, observer });
        if !clipped {
            self.scenarios.borrow_mut().push(Rc::clone(&scenario));
        }
        Ok(scenario)
    }

    /// What a document may take of all that a solution leaves; tokens.
    pub(crate) fn left_for_documents(&self, solution: &Solution<'p, O>) -> u64 {
        let (scenario, budgets) = solution.taken();
        self.selector(&scenario, Detail::OnlyIncluded)
            .left_for_documents(&budgets.available, &solution.chosen)
    }

    /// What a candidate costs, counted no further than to `limit` tokens.
    pub(crate) fn cost(&self, id: CandidateId, limit: u64) -> Result<TokenCount, Error> {
        let rendering = self.candidates.remembered_rendering();
        Ok(match self.scenario(rendering, limit)?.costs.weigh(id, limit)? {
            Weight::Exactly(n) => {
                let log = self.candidates.log();
                let messages = self.candidates.members(id).into_iter().map(|at| log.message(at));
                let certainty =
                    messages.map(|message| self.meter.counted_message(message, n).certainty).max();
                certainty
                    .map_or_else(|| self.meter.counted(n), |certainty| TokenCount { tokens: n, certainty })
            }
            Weight::Over => TokenCount { tokens: limit.saturating_add(1), certainty: self.meter.at_least() },
        })
    }

    pub(crate) fn candidates(&self) -> &'p Candidates<'p> {
        self.candidates
    }

    pub(crate) fn config(&self) -> &'p Config {
        self.config
    }

    /// Returns the tokens that a prompt budget leaves for the items, with some of them withheld.
    pub(crate) fn available(&self, context: &PlanContext<'_>, budget: u64, withheld: u64) -> Available {
        let index = self.candidates.index();
        let merged = if index.state_comes_last { index.states() } else { 0 };
        Available {
            tokens: context.total(budget) - i128::from(withheld),
            block: self.meter.block(),
            reserves_block: index.competing_documents().next().is_some(),
            merge: self.meter.saved_by_merging(Role::User) * merged,
            caps: Section::ALL.map(|section| self.config.sections.section(section).cap),
        }
    }
}

impl<'p, O: Observer> Solution<'p, O> {
    /// The scenario that was taken, and its budgets.
    pub(crate) fn taken(&self) -> (Rc<Scenario<'p, O>>, Budgets) {
        let taken = &self.trials[self.trials.len() - 1];
        (Rc::clone(&taken.scenario), taken.budgets)
    }

    /// What the documents' share holds, and no more than their budget; tokens.
    pub(crate) fn document_share(&self) -> u64 {
        self.trials[self.trials.len() - 1].budgets.document_share()
    }

    /// Documents and state before this position are not sent (rule S10).
    pub(crate) fn released_before(&self) -> u32 {
        self.trials[self.trials.len() - 1].scenario.costs.rendering().released_before
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
mod tests;
