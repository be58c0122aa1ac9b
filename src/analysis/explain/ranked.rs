//! The candidates of one round, solved for many budgets.
//!
//! Input: gathered candidates. Output: their solvers, and the tokens that a target adds to a prompt of these
//! candidates. Rules: sticky documents (S5), merges (N3), placeholder messages (H5).

use super::{
    budget_range::{BudgetRange, Documents},
    gathered::Gathered,
    key::Key,
    many_budgets::{AddedTokens, ManyBudgets, PinSlots, SequenceCosts},
    retained_texts::RetainedTexts,
};
use crate::{
    error::Error,
    item::ItemId,
    planner::{
        assemble::{BRIDGE, CONTINUE, LEAD},
        candidates::{CandidateId, Candidates},
        manager::ContextWindowManager,
        replan::MAX_TRIES,
        select::{Included, OneBudget},
        solve::{Solution, Solver},
    },
};
use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

/// The candidates of one round with their solvers.
pub(super) struct Rankings<'p> {
    pub(super) first: Ranked<'p>,
    /// The candidates without the documents of the last prompt (sticky documents, rule S5); `None` if it had
    /// none.
    pub(super) reranked: Option<Ranked<'p>>,
}

impl<'p> Rankings<'p> {
    pub(super) fn from_gathered(
        gathered: &'p Gathered<'p>,
        manager: &'p ContextWindowManager,
        goal: Option<CandidateId>,
        largest_budget: u64,
    ) -> Self {
        let ranked = |candidates: &'p Candidates<'p>| {
            // All tries share one list of pins, because selections with the same pins are compared by their
            // differences.
            let pins = Rc::new(PinSlots::new(&candidates.index().pins));
            let walker = || ManyBudgets::new(largest_budget, goal, Rc::clone(&pins));
            let tries = std::array::from_fn(|_| Try {
                solver: manager.solver(candidates).for_many_budgets(walker(), largest_budget),
                sequence: OnceCell::new(),
            });
            let whole = manager.solver(candidates).for_many_budgets(OneBudget, largest_budget);
            Ranked { candidates, manager, tries, whole }
        };
        Self { first: ranked(&gathered.first), reranked: gathered.reranked.as_ref().map(ranked) }
    }
}

/// Candidates with one ranking of their documents, and their solvers.
pub(super) struct Ranked<'p> {
    candidates: &'p Candidates<'p>,
    manager: &'p ContextWindowManager,
    /// The first try under each budget, and the further tries with fewer tokens.
    tries: [Try<'p>; MAX_TRIES as usize + 1],
    /// The solver of whole plans.
    pub(super) whole: Solver<'p>,
}

/// One try to plan under each budget. The tries of one budget may differ in much of the prompt, but those of
/// neighbouring budgets differ little. So each try continues from its own solutions.
struct Try<'p> {
    solver: Solver<'p, ManyBudgets>,
    /// The additions of the target; `None` if only a whole plan knows them.
    sequence: OnceCell<Option<RefCell<SequenceCosts<'p>>>>,
}

impl<'p> Ranked<'p> {
    /// Returns the solver of a try: 0 is the first, later ones have fewer tokens.
    pub(super) fn solver(&self, number: u32) -> &Solver<'p, ManyBudgets> {
        &self.tries[number as usize].solver
    }

    /// Builds the range of budgets at which `included` is included. Texts before the position
    /// `released_before` are no longer sent.
    pub(super) fn range(
        &self,
        (from, to): (u64, u64),
        released_before: u32,
        mut included: Included<ManyBudgets>,
        required_by_provider: Vec<Key>,
        retained_texts: &RetainedTexts,
    ) -> BudgetRange<'p> {
        let mut others = retained_texts.within(self.candidates, included.all_ids(), released_before);
        others.extend(required_by_provider);
        let documents = Documents::Slots(std::mem::take(&mut included.documents), self.candidates);
        BudgetRange { from, to, kept: included, others, documents }
    }

    /// Returns the tokens that the target adds to the solution of a try, and the requested placeholder
    /// messages that it needs. Returns `None` if only a whole plan knows them.
    ///
    /// # Errors
    ///
    /// Any error of the token counter.
    pub(super) fn additions(
        &self,
        number: u32,
        solution: &Solution<'p, ManyBudgets>,
        asked: &[ItemId],
    ) -> Result<Option<(AddedTokens, Vec<Key>)>, Error> {
        let known = &self.tries[number as usize].sequence;
        let sequence = match known.get() {
            Some(sequence) => sequence,
            None => {
                // Computed before `get_or_init`, because counting may fail.
                let (meter, placement) = (self.candidates.meter(), self.manager.placement());
                let costs = SequenceCosts::new(self.candidates, meter, placement)?;
                known.get_or_init(|| costs.map(RefCell::new))
            }
        };
        let Some(sequence) = sequence else { return Ok(None) };
        let mut sequence = sequence.borrow_mut();
        let Some(added) = sequence.added(&solution.chosen)? else { return Ok(None) };
        let mut present = Vec::new();
        for (id, nth) in asked.iter().zip(0..) {
            let is_in = match id.as_str() {
                LEAD => added.leads,
                CONTINUE => added.continues,
                id => match self.exchange_before(id) {
                    Some(exchange) => sequence.is_bridged(exchange),
                    None => return Ok(None),
                },
            };
            present.extend(is_in.then_some(Key::RequiredByProvider(nth)));
        }
        Ok(Some((added, present)))
    }

    /// Returns the exchange before the placeholder message with this id. Returns `None` if the message
    /// follows a placeholder result.
    fn exchange_before(&self, id: &str) -> Option<CandidateId> {
        let position = self.candidates.log().position_of(&id.strip_prefix(BRIDGE)?.into())?;
        self.candidates.candidate_of(position)
    }
}
