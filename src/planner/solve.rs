//! One request, decided for any budget: what `build_plan` does once, and what explanations do again and again.

use crate::{
    config::Config,
    error::Error,
    item::Section,
    message::Role,
    plan::ContextPlan,
    planner::{
        assemble::{self, Frame},
        budget::{Budgets, Supply, Wanted},
        candidates::{Pool, Quantity, Results, Scale, Scope, Trace, Unit},
        select::{self, Purse, Selection},
    },
    provider::meter::Meter,
    tokens::{TokenCount, Weight},
};
use std::{cell::RefCell, rc::Rc};

/// How often a prompt that its joins push over the budget is planned again with less (rule N3).
const TRIES: u32 = 3;

/// One request, with everything that does not depend on its budget.
pub(crate) struct Planning<'p> {
    pool: &'p Pool<'p>,
    meter: &'p Meter,
    config: &'p Config,
    /// What is asked about, where what decisions rest on is kept.
    scope: Option<Scope>,
    cases: RefCell<Vec<Rc<Case<'p>>>>,
}

/// The sizes of a request's candidates with tool results sent in one way (rule S7).
struct Case<'p> {
    scale: Scale<'p>,
    wanted: Wanted,
}

/// What is in, and what that rests on.
pub(crate) struct Decided<'p> {
    pub(crate) chosen: Selection,
    budgets: Budgets,
    /// Every way of sending results that was tried, the last one taken.
    tried: Vec<Tried<'p>>,
    /// What there was to share out, and might be below nothing.
    total: i128,
    /// What of that everything takes that is in, the lines around documents included.
    used: i128,
    withheld: u64,
}

/// One way of sending results, what was shared out for it, and what decisions about it rest on.
struct Tried<'p> {
    case: Rc<Case<'p>>,
    budgets: Budgets,
    trace: Trace,
}

/// A plan, and how it came about.
pub(crate) struct Attempt<'p> {
    pub(crate) plan: ContextPlan,
    pub(crate) decided: Decided<'p>,
}

impl<'p> Planning<'p> {
    pub(crate) fn new(pool: &'p Pool<'p>, meter: &'p Meter, config: &'p Config) -> Self {
        Self { pool, meter, config, scope: None, cases: RefCell::default() }
    }

    /// The same, keeping what decisions rest on.
    pub(crate) fn traced(self, scope: Scope) -> Self {
        Self { scope: Some(scope), ..self }
    }

    /// A plan whose prompt fits as a whole, joins and all, as far as that takes no more than so many attempts.
    pub(crate) fn plan(&self, frame: &Frame<'_>) -> Result<Attempt<'p>, Error> {
        let mut attempt = self.attempt(frame, 0)?;
        for _ in 0..TRIES {
            let Some(withheld) = attempt.too_much() else { break };
            attempt = self.attempt(frame, withheld)?; // N3, H5: what is known only now
        }
        Ok(attempt)
    }

    fn attempt(&self, frame: &Frame<'_>, withheld: u64) -> Result<Attempt<'p>, Error> {
        let decided = self.decide(frame, frame.prompt_budget, withheld)?;
        let scale = decided.scale();
        let plan = assemble::plan(frame, self.pool, scale, self.meter, &decided.budgets, &decided.chosen)?; // O1, O2, N3, S6, H1-H4
        Ok(Attempt { plan, decided })
    }

    /// What is in for a prompt budget, less `withheld` tokens.
    pub(crate) fn decide(&self, frame: &Frame<'_>, budget: u64, withheld: u64) -> Result<Decided<'p>, Error> {
        let purse = self.purse(frame, budget, withheld);
        let mut tried = self.share_out(purse)?; // B4, B5, S6, S7, N5
        let last = tried.last().expect("one way of sending results at least");
        let (case, budgets) = (Rc::clone(&last.case), last.budgets);
        let total = purse.budget;
        let purse = Purse { reserved: purse.reserved && !budgets.no_block, ..purse };
        let chosen = select::choose(self.pool, &case.scale, &budgets, purse, self.config)?; // S2-S5, S8, S9, B6
        for tried in &mut tried {
            tried.trace = tried.case.scale.take_trace();
        }
        let block = if chosen.has_documents() { i128::from(purse.block) } else { 0 };
        let used = chosen.used() + block;
        Ok(Decided { chosen, budgets, tried, total, used, withheld })
    }

    /// The budgets, and the sizes they were made with: where tool results have to be shorter, with those.
    fn share_out(&self, purse: Purse) -> Result<Vec<Tried<'p>>, Error> {
        let supply = Supply {
            total: u64::try_from(purse.budget.max(0)).unwrap_or(u64::MAX),
            below: u64::try_from((-purse.budget).max(0)).unwrap_or(u64::MAX),
            reserved: if purse.reserved { purse.block } else { 0 },
            merge: if self.pool.merges_in_the_minimum() { purse.merge } else { 0 },
        };
        let mut results = Results::remembered(self.pool);
        let mut tried = Vec::new();
        loop {
            let case = self.case(results, supply.total)?;
            let budgets = case.wanted.divide(supply, self.config, &case.scale);
            // What is clipped depends on every token there is; where it has to be, only the minimum is asked about.
            let clips = self.scope.is_some() && budgets.overflow;
            let shorter =
                if clips { None } else { select::shorter_results(self.pool, &case.scale, &budgets)? };
            tried.push(Tried { case, budgets, trace: Trace::default() });
            match shorter {
                Some(shorter) => results = shorter,
                None => return Ok(tried),
            }
        }
    }

    /// The sizes with results sent like this, and what the sections want of `total`: found once for all totals that are
    /// asked about.
    fn case(&self, results: Results, total: u64) -> Result<Rc<Case<'p>>, Error> {
        let known = self.cases.borrow().iter().find(|case| *case.scale.results() == results).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let clipped = results.clips();
        let scale = Scale::new(self.pool, self.meter, results).traced(self.scope);
        let most = self.scope.map_or(total, |scope| scope.most);
        let wanted = Wanted::of(most, self.config, self.pool, &scale)?;
        let case = Rc::new(Case { scale, wanted });
        if !clipped {
            self.cases.borrow_mut().push(Rc::clone(&case));
        }
        Ok(case)
    }

    /// What a unit costs, counted no further than to `limit`.
    pub(crate) fn cost(&self, unit: Unit, limit: u64) -> Result<TokenCount, Error> {
        Ok(match self.case(Results::remembered(self.pool), limit)?.scale.weigh(unit, limit)? {
            Weight::Exactly(n) => {
                let messages = self.pool.members(unit).into_iter().map(|at| self.pool.log().message(at));
                let certainty =
                    messages.map(|message| self.meter.counted_message(message, n).certainty).max();
                certainty.map_or_else(|| self.meter.counted(n), |certainty| TokenCount { n, certainty })
            }
            Weight::Over => TokenCount { n: limit.saturating_add(1), certainty: self.meter.at_least() },
        })
    }

    /// The largest total, no more than `most`, up to which everything is decided as it was.
    pub(crate) fn reach_up(&self, decided: &Decided<'_>, most: i128) -> i128 {
        let holds = self.holds(decided, |trace| &trace.grows, |now, then| then - now);
        let total = decided.total;
        total + gallop((most - total).max(0), |step| holds(total + step))
    }

    /// The smallest total, no less than `least`, down to which everything is decided as it was.
    pub(crate) fn reach_down(&self, decided: &Decided<'_>, least: i128) -> i128 {
        let holds = self.holds(decided, |trace| &trace.falls, |now, then| now - then);
        let total = decided.total;
        total - gallop((total - least).max(0), |step| holds(total - step))
    }

    /// Whether everything is decided alike at another total: no quantity moves as far as a decision bears.
    fn holds<'d>(
        &'d self,
        decided: &'d Decided<'_>,
        bears: fn(&Trace) -> &[u64; 6],
        moved: fn(i128, i128) -> i128,
    ) -> impl Fn(i128) -> bool + 'd {
        let total = decided.total;
        let now: Vec<[i128; 6]> =
            decided.tried.iter().map(|tried| self.quantities(&tried.case, &tried.budgets, total)).collect();
        move |at| {
            decided.tried.iter().zip(&now).all(|(tried, now)| {
                let then = self.quantities(&tried.case, &tried.budgets, at);
                (0..now.len()).all(|q| moved(now[q], then[q]) < i128::from(bears(&tried.trace)[q]))
            })
        }
    }

    /// The numbers that decisions compare with, at another total.
    fn quantities(&self, case: &Case<'_>, like: &Budgets, at: i128) -> [i128; 6] {
        let to_share = u64::try_from((at - i128::from(like.kept)).max(0)).unwrap_or(u64::MAX);
        let budgets = case.wanted.at(to_share, like, self.config);
        Quantity::ALL.map(|quantity| match quantity {
            Quantity::SystemPinned => i128::from(budgets.of(Section::SystemPinned)),
            Quantity::Conversation => i128::from(budgets.of(Section::Conversation)),
            Quantity::Rag => i128::from(budgets.of(Section::Rag)),
            Quantity::LowMark => i128::from(select::low_mark(budgets.of(Section::Conversation), self.config)),
            Quantity::Share => i128::from(select::share(&budgets)),
            Quantity::LeftOver => at,
        })
    }

    fn purse(&self, frame: &Frame<'_>, budget: u64, withheld: u64) -> Purse {
        Purse {
            budget: frame.total(budget) - i128::from(withheld),
            block: self.meter.block(),
            reserved: self.pool.competing_documents().next().is_some(),
            merge: if self.pool.state_comes_last {
                self.meter.saved_by_merging(Role::User) * self.pool.states()
            } else {
                0
            },
            caps: Section::ALL.map(|section| self.config.sections.of(section).cap),
        }
    }
}

impl Decided<'_> {
    /// Whether it holds the minimum and nothing else, because that is too much.
    pub(crate) fn is_minimal(&self) -> bool {
        self.budgets.overflow
    }

    /// What is left of the total, to the token or less.
    pub(crate) fn left(&self) -> i128 {
        self.total - self.used
    }

    /// Whether less was planned with than there is.
    pub(crate) fn withholds(&self) -> bool {
        self.withheld > 0
    }

    pub(crate) fn scale(&self) -> &Scale<'_> {
        &self.tried[self.tried.len() - 1].case.scale
    }
}

impl Attempt<'_> {
    /// What to withhold next, where a prompt that holds more than the minimum is over its budget by what is known only
    /// once it is put together: joins, and messages that the target demands (rules N3, H5).
    fn too_much(&self) -> Option<u64> {
        let excess = self.plan.overflow_tokens();
        let supplied: u64 =
            self.plan.included.iter().filter(|row| row.is_demanded()).map(|row| row.tokens.n).sum();
        let withheld = self.decided.withheld;
        (excess > 0 && !self.decided.is_minimal()).then(|| withheld.saturating_add(excess).max(supplied))
    }
}

/// The largest number of steps, no more than `most`, so that every number up to it holds; what does not hold never does
/// again further on.
fn gallop(most: i128, holds: impl Fn(i128) -> bool) -> i128 {
    let (mut good, mut step) = (0, 1);
    while good < most && holds((good + step).min(most)) {
        good = (good + step).min(most);
        step *= 2;
    }
    let mut bad = (good + step).min(most + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) { good = middle } else { bad = middle }
    }
    good
}
