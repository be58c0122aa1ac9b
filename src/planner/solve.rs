//! The selection of one request, for one budget or for many.
//!
//! - Input: gathered candidates, and a prompt budget.
//! - Output: a [`Solution`].
//! - Rules: B4, B5, S2 to S9.
//!
//! A plan solves its request once. An explanation solves it for many budgets. Most of a request does not
//! depend on the budget: the candidates, their token counts, and the demands of the sections. A [`Solver`]
//! holds these.
//!
//! The rendering of tool results (S7) changes the token counts, so each rendering has its own [`Selector`]. A
//! solution lists every rendering that was tried. The last one is the one in use.

use crate::{
    config::Config,
    error::Error,
    item::Section,
    message::Role,
    planner::{
        assemble::PlanContext,
        budget::{Available, Budgets, SectionDemands},
        candidates::{CandidateId, Candidates, Costs},
        rendering::ToolResultRendering,
        select::{OneBudget, Selection, Selector, Walker, saved_by_merging},
    },
    provider::meter::Meter,
    provider::weight::Weight,
    tokens::TokenCount,
};
use std::{cell::RefCell, convert::identity, rc::Rc};

/// One request, with everything that does not depend on its budget.
pub(crate) struct Solver<'p, W = OneBudget> {
    candidates: &'p Candidates<'p>,
    meter: &'p Meter,
    config: &'p Config,
    walker: W,
    /// The largest number of available tokens among many budgets; `None` for a single budget.
    ///
    /// With many budgets, costs and demands are counted up to this number, once for all of them. Clipping is
    /// not tried.
    many_budgets: Option<u64>,
    /// One selector for each rendering of tool results that was tried, except renderings with clipped
    /// results.
    selectors: RefCell<Vec<Rc<Selector<'p, W>>>>,
}

/// One rendering of tool results that was tried: its budgets, and the facts that its walker recorded about
/// the decisions.
pub(crate) struct Trial<'p, W: Walker> {
    pub(crate) selector: Rc<Selector<'p, W>>,
    pub(crate) budgets: Budgets,
    pub(crate) records: W::Records,
}

/// The selection for one budget.
pub(crate) struct Solution<'p, W: Walker = OneBudget> {
    pub(crate) chosen: Selection<W>,
    /// Every rendering of tool results that was tried; the last one is in use.
    pub(crate) trials: Vec<Trial<'p, W>>,
    /// The available tokens; may be negative.
    pub(crate) available: i128,
    /// The tokens of all included items and of the wrapper around documents, less the tokens saved by merging
    /// state.
    used: i128,
}

impl<'p> Solver<'p> {
    pub(crate) fn new(candidates: &'p Candidates<'p>, meter: &'p Meter, config: &'p Config) -> Self {
        let selectors = RefCell::default();
        Self { candidates, meter, config, walker: OneBudget, many_budgets: None, selectors }
    }

    /// Converts to a solver for many budgets. `most` is the largest number of tokens that any of them leaves
    /// for items. Clipping (rule S7) is not tried.
    pub(crate) fn for_many_budgets<W>(self, walker: W, most: u64) -> Solver<'p, W> {
        let Self { candidates, meter, config, .. } = self;
        // The selectors are dropped: their counts reach only as far as one budget needed.
        let selectors = RefCell::default();
        Solver { candidates, meter, config, walker, many_budgets: Some(most), selectors }
    }

    /// Selects items for a prompt budget, with `withheld` tokens of it kept free. Also records the reason of
    /// every excluded item.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn solve_in_detail(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
        withheld: u64,
    ) -> Result<Solution<'p>, Error> {
        let mut solution = self.solve(context, budget, withheld)?;
        let (selector, budgets) = solution.final_trial();
        selector.record_reasons(&budgets, &mut solution.chosen)?;
        Ok(solution)
    }
}

impl<'p, W: Walker> Solver<'p, W> {
    /// Selects items for a prompt budget, with `withheld` tokens of it kept free (the steps divide and
    /// select).
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn solve(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
        withheld: u64,
    ) -> Result<Solution<'p, W>, Error> {
        let available = self.available(context, budget, withheld);
        self.select(available, identity)
    }

    /// Selects items as if documents that can use any number of tokens were still to come.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn solve_expecting_documents(
        &self,
        context: &PlanContext<'_>,
        budget: u64,
    ) -> Result<Solution<'p, W>, Error> {
        let available = Available { reserves_block: true, ..self.available(context, budget, 0) };
        self.select(available, SectionDemands::with_any_documents)
    }

    /// Selects items, and shortens tool results step by step as long as that is needed (rule S7). `adjust`
    /// changes the demands of the sections.
    fn select(
        &self,
        available: Available,
        adjust: fn(SectionDemands) -> SectionDemands,
    ) -> Result<Solution<'p, W>, Error> {
        let mut rendering = self.candidates.remembered_rendering();
        let mut trials = Vec::new();
        // Ends because each rendering shortens more than the one before it (`ToolResultRendering::follows`).
        loop {
            let selector = self.selector(rendering, available.total())?;
            let (budgets, mut chosen) = selector.divide(available, adjust)?;
            let shorter = selector.select(&budgets, &mut chosen)?;
            let records = selector.walker.take_records();
            trials.push(Trial { selector, budgets, records });
            let Some(shorter) = shorter else {
                let block = if chosen.has_documents() { i128::from(available.block) } else { 0 };
                let merged = saved_by_merging(self.candidates.index(), &available, &chosen);
                let used = chosen.included.used() + block - i128::from(merged);
                return Ok(Solution { chosen, trials, available: available.tokens, used });
            };
            rendering = shorter;
        }
    }

    /// Returns the selector for one rendering of tool results. `total` is the number of available tokens. Its
    /// costs and demands are counted once for all budgets.
    ///
    /// # Errors
    ///
    /// Fails if a token counter fails.
    pub(crate) fn selector(
        &self,
        rendering: ToolResultRendering,
        total: u64,
    ) -> Result<Rc<Selector<'p, W>>, Error> {
        let known = self.selectors.borrow().iter().find(|one| *one.costs.rendering() == rendering).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let clipped = rendering.clips();
        let costs = Costs::new(self.candidates, self.meter, rendering).for_many_budgets(self.many_budgets);
        let most = self.many_budgets.unwrap_or(total);
        let demands = SectionDemands::count(most, self.config, self.candidates.index(), &costs)?;
        let (index, walker) = (self.candidates.index(), self.walker.for_other_costs());
        let selector = Rc::new(Selector { index, costs, demands, config: self.config, walker });
        // The length of clipped results depends on the exact budget, so no other budget can reuse this
        // selector.
        if !clipped {
            self.selectors.borrow_mut().push(Rc::clone(&selector));
        }
        Ok(selector)
    }

    /// Returns the token count of a candidate, counted up to `limit`. A larger candidate is reported as at
    /// least `limit + 1` tokens.
    pub(crate) fn cost(&self, id: CandidateId, limit: u64) -> Result<TokenCount, Error> {
        let rendering = self.candidates.remembered_rendering();
        let selector = self.selector(rendering, limit)?;
        let weight = match id {
            // The shortest form is enough to include a document.
            CandidateId::Document(rank) => {
                let shortest = self.candidates.index().document(rank).shortest();
                selector.costs.weigh_form(rank, shortest, limit)?
            }
            id => selector.costs.weigh(id, limit)?,
        };
        Ok(match weight {
            Weight::Exactly(n) => {
                let log = self.candidates.log();
                let messages = self.candidates.members(id).into_iter().map(|at| log.message(at));
                // A sum is only as certain as its least certain message.
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

    /// Returns the tokens that a prompt budget leaves for items, with `withheld` of them kept free.
    pub(crate) fn available(&self, context: &PlanContext<'_>, budget: u64, withheld: u64) -> Available {
        let index = self.candidates.index();
        // State that is sent before the question is never merged into it, so merging saves nothing in that
        // case.
        let merged = if index.state_comes_last { index.states() } else { 0 };
        Available {
            tokens: context.total(budget) - i128::from(withheld),
            block: self.meter.block(),
            // Dependents alone reserve nothing: they take tokens left over.
            reserves_block: index.competing_documents().any(|(_, document)| document.required.is_none()),
            merge: self.meter.saved_by_merging(Role::User) * merged,
            caps: Section::ALL.map(|section| self.config.sections.section(section).cap),
        }
    }
}

impl<'p, W: Walker> Solution<'p, W> {
    /// Returns the selector and the budgets of the rendering in use.
    pub(crate) fn final_trial(&self) -> (Rc<Selector<'p, W>>, Budgets) {
        let last = &self.trials[self.trials.len() - 1];
        (Rc::clone(&last.selector), last.budgets)
    }

    /// Returns the free tokens of the solution that documents may still take.
    pub(crate) fn left_for_documents(&self) -> u64 {
        let (selector, budgets) = self.final_trial();
        selector.left_for_documents(&budgets.available, &self.chosen)
    }

    /// Returns the tokens of the documents' share, at most their budget.
    pub(crate) fn document_share(&self) -> u64 {
        self.trials[self.trials.len() - 1].budgets.document_share()
    }

    /// Returns the position before which documents and state are no longer sent (retained texts, S10).
    pub(crate) fn released_before(&self) -> u32 {
        self.trials[self.trials.len() - 1].selector.costs.rendering().released_before
    }

    /// Checks if only the minimum is included, because it exceeds the budget.
    pub(crate) fn is_minimal(&self) -> bool {
        self.trials[self.trials.len() - 1].budgets.overflow
    }

    /// Returns the tokens of everything that is included.
    pub(crate) fn used(&self) -> i128 {
        self.used
    }

    /// Returns the unused available tokens; may be negative.
    pub(crate) fn left(&self) -> i128 {
        self.available - self.used
    }
}
