//! A sweep over every budget of a model that does not plan for each one.
//!
//! An explanation covers every budget of a model, and there are hundreds of thousands of them. The sweep
//! starts at one budget, solves the request there, and computes the range of budgets at which the same
//! solution holds (see [`super::slack`]). Inside the range nothing has to be solved again. The sweep
//! continues with the first budget after that range. Ranges are as long as the decisions allow, so their
//! number follows the number of changes, not the number of budgets.
//!
//! Two effects are not part of a solution, and may still change the plan. First, a prompt can be larger than
//! the sum of its parts, because of joins or messages that the provider requires (rules N3, H5). If more
//! tokens are left than these can ever add, they change nothing. Otherwise the whole plan is made, and the
//! range is limited to budgets at which the size of the prompt plays no part. If tokens were withheld because
//! of that size, the range is this one budget.
//!
//! Second, documents of the last prompt that no longer fit are given up (sticky documents, rule S5). Then the
//! solution without them counts, for the budgets that both ranges share. If reasoning or retained texts may
//! be lost (rules K1, S10), the last round counts, for the budgets that the ranges of all rounds share.
//!
//! Invariant: at every budget of a range, `build_plan` under that budget includes exactly the candidates of
//! the range. A brute-force test plans for every budget and compares.

use super::{
    budget_range::BudgetRange,
    gathered::{Gathered, Rounds},
    key::Key,
    many_budgets::ManyBudgets,
    ranked::{Ranked, Rankings},
    reach,
    retained_texts::RetainedTexts,
};
use crate::{
    error::Error,
    item::{ItemId, Section},
    plan::{ContextPlan, DropReason, PlannedItem, anchor::SentAgain, reason::ExcludedReason},
    planner::{
        assemble::{LaidOut, PlanContext},
        budget,
        candidates::{CandidateId, Candidates, Comparisons, Rank},
        eligibility::Eligibility,
        manager::ContextWindowManager,
        replan::{MAX_TRIES, Replan, tokens_to_withhold},
        solve::Solution,
    },
    tokens::TokenCount,
};
use std::collections::{BTreeMap, BTreeSet};

/// A request under budgets other than its own.
pub(super) struct Sweep<'p> {
    manager: &'p ContextWindowManager,
    context: &'p PlanContext<'p>,
    rounds: &'p Rounds<'p>,
    retained_texts: &'p RetainedTexts,
    /// The first round with its solvers.
    first: Rankings<'p>,
    /// The largest number of tokens that any budget leaves.
    available: u64,
    /// The most tokens by which a prompt can exceed the sum of its parts (rules N3, H5); `None` if there is
    /// no known bound.
    most_added: Option<u64>,
    /// True if chunks of documents may be joined.
    may_join: bool,
    /// The largest budget of the sweep.
    pub(super) largest_budget: u64,
    minimum: BTreeSet<Key>,
    /// The ids of the messages that the provider requires in the present plan. Empty if no explanation is
    /// about one of them.
    required_by_provider: Vec<ItemId>,
    /// By position in the request, the rank of each document in the last round at the present budget.
    ranks: BTreeMap<usize, Rank>,
}

/// A function from a solution to the range of budgets, on one side of the solved one, at which it stays the
/// same. The last argument is the number of withheld tokens.
type Reach<'r> = dyn Fn(&Solution<'_, ManyBudgets>, i128) -> (u64, u64) + 'r;

/// A range with the facts that decide if another solution is needed.
struct Solved<'p> {
    /// True if the documents of the last prompt do not fit and were given up.
    gives_up_documents: bool,
    /// Retained texts that are missing from its prompt (rule S10).
    missing: SentAgain,
    /// Reasoning that is invalid in its prompt, by position of its message (rules K1 to K3).
    lost: BTreeMap<u32, DropReason>,
    range: BudgetRange<'p>,
}

impl<'p> Sweep<'p> {
    pub(super) fn new(
        manager: &'p ContextWindowManager,
        context: &'p PlanContext<'p>,
        (rounds, retained_texts): (&'p Rounds<'p>, &'p RetainedTexts),
        requested: &BTreeSet<Key>,
        required_by_provider: Vec<ItemId>,
    ) -> Result<Self, Error> {
        let largest_budget = context.largest_budget();
        let index = rounds.first.first.index();
        // The text of joined chunks is counted as a whole, so only layout knows its tokens (S14).
        let rankings = std::iter::once(&rounds.first.first).chain(&rounds.first.reranked);
        let finds_joins = |one| Comparisons::default().finds_joins(one, &manager.config().rag);
        let may_join = rankings.into_iter().any(finds_joins);
        let most_added = manager.most_added(!index.document_slots().is_empty())?.filter(|_| !may_join);
        // A goal keeps ranges long, but ignores the comparisons of the walk. That is safe only if nothing
        // else changes the plan. Added tokens may displace a candidate that is included after the goal.
        // Losses depend on everything before the goal.
        let goal = match requested.first() {
            Some(Key::Item(id))
                if requested.len() == 1 && most_added == Some(0) && !rounds.can_lose_texts =>
            {
                Some(*id)
            }
            _ => None,
        };
        let goal = goal.filter(|id| index.is_decided_by_walk(*id));
        let available = budget::clamped(context.total(largest_budget));
        let present = rounds.present().first.index();
        let is_asked = requested.iter().any(|key| matches!(key, Key::RequiredByProvider(_)));
        Ok(Self {
            manager,
            context,
            rounds,
            retained_texts,
            first: Rankings::from_gathered(&rounds.first, manager, goal, available),
            available,
            most_added,
            may_join,
            largest_budget,
            minimum: index.minimum().into_iter().map(|(id, ..)| Key::Item(id)).collect(),
            required_by_provider: if is_asked { required_by_provider } else { Vec::new() },
            ranks: present.documents().map(|(rank, document)| (document.at, rank)).collect(),
        })
    }

    /// Returns the candidates of the last round at the present budget.
    fn candidates(&self) -> &'p Candidates<'p> {
        &self.rounds.present().first
    }

    /// Returns a range that includes nothing.
    pub(super) fn empty_range(&self) -> BudgetRange<'p> {
        BudgetRange::empty(self.candidates())
    }

    /// Returns the keys that are included at every budget.
    pub(super) fn minimum(&self) -> &BTreeSet<Key> {
        &self.minimum
    }

    /// Returns the item ids of a key; for an exchange, those of all its messages.
    pub(super) fn ids(&self, key: Key) -> Vec<ItemId> {
        let candidates = self.candidates();
        match key {
            Key::RequiredByProvider(nth) => {
                self.required_by_provider.get(nth as usize).cloned().into_iter().collect()
            }
            Key::RetainedTexts(number) => vec![self.retained_texts.id(number)],
            Key::Document(at) => vec![candidates.request().rag[at].id.clone()],
            Key::Item(CandidateId::Note(at)) => {
                vec![candidates.notes().get(at).item.id.clone()]
            }
            Key::Item(id) => {
                let members = candidates.members(id).into_iter();
                members.map(|position| candidates.log().message_id(position)).collect()
            }
        }
    }

    /// Returns the token count of a key's candidate, counted no further than to the largest budget. Returns
    /// `None` if the key has no candidate.
    pub(super) fn tokens(&self, key: Key) -> Result<Option<TokenCount>, Error> {
        let Some(id) = self.id(key) else { return Ok(None) };
        // The solvers of the first round are valid for the last one only if no round can lose anything.
        if !self.rounds.can_lose_texts {
            return self.first.first.solver(0).cost(id, self.available).map(Some);
        }
        self.manager.solver(self.candidates()).cost(id, self.available).map(Some)
    }

    /// Returns the reason why a candidate can never be sent as it is, or `None` if it can be sent.
    pub(super) fn ineligible(&self, key: Key) -> Result<Option<ExcludedReason>, Error> {
        let Some(id) = self.id(key) else { return Ok(None) };
        Ok(match self.candidates().eligibility(id)? {
            Eligibility::Out(reason) => Some(reason),
            Eligibility::Eligible | Eligibility::Asks(_) => None,
        })
    }

    fn id(&self, key: Key) -> Option<CandidateId> {
        match key {
            Key::Item(id) => Some(id),
            Key::Document(at) => self.ranks.get(&at).map(|rank| CandidateId::Document(*rank)),
            Key::RetainedTexts(_) | Key::RequiredByProvider(_) => None,
        }
    }

    /// Returns the included document of the plan that quotes a message (rule S15).
    pub(super) fn recalled_as(&self, plan: &ContextPlan, id: &ItemId) -> Option<ItemId> {
        let log = self.candidates().request().log;
        let position = log.position_of(id)?;
        let quotes = |row: &&PlannedItem| {
            let places = row.quoted_messages().map(|ends| ends.map(|end| log.position_of(end)));
            matches!(places, Some([Some(first), Some(last)]) if (first..=last).contains(&position))
        };
        plan.included.iter().find(quotes).map(|row| row.id.clone())
    }

    /// Returns the included candidates at this budget, with the range of larger budgets that include the
    /// same.
    pub(super) fn above(&self, budget: u64) -> Result<BudgetRange<'p>, Error> {
        self.at(budget, &|solution, withheld| {
            let largest_budget = self.context.total(self.largest_budget) - withheld;
            let available = reach::highest_same(solution, largest_budget) + withheld;
            (budget, self.highest_with(available, budget))
        })
    }

    /// Returns the included candidates at this budget, with the range of smaller budgets that include the
    /// same.
    pub(super) fn below(&self, budget: u64) -> Result<BudgetRange<'p>, Error> {
        self.at(budget, &|solution, withheld| {
            let least = self.context.total(1) - withheld;
            let available = reach::lowest_same(solution, least) + withheld;
            (self.lowest_with(available, budget), budget)
        })
    }

    /// Builds the whole plan at a budget as `build_plan` does, with clipped results if necessary (clipping,
    /// rule S7).
    pub(super) fn plan_at(&self, budget: u64) -> Result<ContextPlan, Error> {
        let context = PlanContext { prompt_budget: budget, ..self.context.clone() };
        self.manager.plan_from(self.candidates().request(), &context, self.rounds.sticky)
    }

    /// Returns the budgets of the sections at a prompt budget, in the order of
    /// [`Section::ALL`](crate::item::Section::ALL).
    pub(super) fn section_budgets(&self, budget: u64) -> Result<[u64; 3], Error> {
        let plan = self.plan_at(budget)?;
        Ok(Section::ALL.map(|section| plan.sections.get(section as usize).map_or(0, |used| used.budget)))
    }

    /// Returns the range at a budget. If something may be lost, it plans in rounds as `build_plan` does. The
    /// range then contains the budgets at which every round stays the same.
    fn at(&self, budget: u64, reach: &Reach<'_>) -> Result<BudgetRange<'p>, Error> {
        let Solved { mut missing, mut lost, range, .. } = self.solve_round(&self.first, budget, reach)?;
        if !self.rounds.can_lose_texts {
            return Ok(range);
        }
        // Each round has candidates of its own, so documents are compared by keys and no longer by slots.
        let mut range = range.named();
        let (manager, request) = (self.manager, self.candidates().request());
        let mut replan = manager.first_replan(request.log);
        // `adjust_to` returns a value if no further round follows.
        while replan.adjust_to(missing, lost, manager.reasoning_policy()).is_none() {
            let gathered = Gathered::in_round(manager, request, self.rounds.sticky, &replan)?;
            let rankings = Rankings::from_gathered(&gathered, manager, None, self.available);
            let solved = self.solve_round(&rankings, budget, reach)?;
            let (from, to) = (range.from.max(solved.range.from), range.to.min(solved.range.to));
            range = BudgetRange { from, to, ..solved.range.named() };
            (missing, lost) = (solved.missing, solved.lost);
        }
        Ok(range)
    }

    fn solve_round<'s>(
        &self,
        rankings: &Rankings<'s>,
        budget: u64,
        reach: &Reach<'_>,
    ) -> Result<Solved<'s>, Error> {
        let found = self.solve_at(&rankings.first, budget, reach)?;
        let Some(reranked) = rankings.reranked.as_ref().filter(|_| found.gives_up_documents) else {
            return Ok(found);
        };
        let other = self.solve_at(reranked, budget, reach)?;
        // The first solution decides that the documents are given up, so both solutions have to hold.
        let (from, to) = (found.range.from.max(other.range.from), found.range.to.min(other.range.to));
        Ok(Solved { range: BudgetRange { from, to, ..other.range }, ..other })
    }

    fn solve_at<'s>(&self, ranked: &Ranked<'s>, budget: u64, reach: &Reach<'_>) -> Result<Solved<'s>, Error> {
        let solution = ranked.solver(0).solve(self.context, budget, 0)?;
        let (from, to) = reach(&solution, 0);
        let is_asked = !self.required_by_provider.is_empty();
        let needs_plan = is_asked || self.rounds.can_lose_texts;
        let spare = self.most_added.map(|added| solution.left() - i128::from(added));
        if let Some(spare) = spare.filter(|spare| *spare >= 0 && !needs_plan) {
            // The range ends at the smallest budget at which the remaining tokens still cover everything that
            // may be added.
            let from = from.max(self.lowest_with(self.context.total(budget) - spare, budget));
            return Ok(self.solved(ranked, (from, to), solution, Vec::new()));
        }
        if solution.is_minimal() && self.most_added.is_some() && !needs_plan {
            return Ok(self.solved(ranked, (from, to), solution, Vec::new()));
        }
        // The quick way finds no faults and joins no texts, so it is only for requests without both.
        if !self.rounds.can_lose_texts
            && !self.may_join
            && let Some(solved) = self.solve_sized(ranked, budget, solution, (from, to), reach)?
        {
            return Ok(solved);
        }
        self.solve_laid_out(ranked, budget, (from, to))
    }

    /// Builds the range of a solution that loses nothing.
    fn solved<'s>(
        &self,
        ranked: &Ranked<'s>,
        range: (u64, u64),
        solution: Solution<'s, ManyBudgets>,
        required: Vec<Key>,
    ) -> Solved<'s> {
        let (gives_up_documents, released_before) =
            (solution.chosen.set_does_not_fit, solution.released_before());
        let included = solution.chosen.included;
        let range = ranked.range(range, released_before, included, required, self.retained_texts);
        Solved { gives_up_documents, missing: SentAgain::default(), lost: BTreeMap::new(), range }
    }

    /// Solves for a budget as planning does, but computes the tokens of each prompt from the neighbours of
    /// its candidates. If the prompt exceeds the budget, it solves again with fewer tokens. `solution` is the
    /// first solution, and `range` its budgets. Returns `None` if only whole plans know these tokens.
    fn solve_sized<'s>(
        &self,
        ranked: &Ranked<'s>,
        budget: u64,
        mut solution: Solution<'s, ManyBudgets>,
        mut range: (u64, u64),
        reach: &Reach<'_>,
    ) -> Result<Option<Solved<'s>>, Error> {
        let (mut withheld, mut number, mut depends_on_every_token) = (0u64, 0, false);
        loop {
            let additions = ranked.additions(number, &solution, &self.required_by_provider)?;
            let Some((added, required)) = additions else { return Ok(None) };
            let total = self.context.prompt_total(solution.used() + added.tokens);
            let excess = total.saturating_sub(budget);
            if excess == 0 || solution.is_minimal() || number == MAX_TRIES {
                if !solution.is_minimal() {
                    range.0 = range.0.max(total);
                    depends_on_every_token |= total > budget;
                }
                let range = if depends_on_every_token { (budget, budget) } else { range };
                return Ok(Some(self.solved(ranked, range, solution, required)));
            }
            let more = tokens_to_withhold(withheld, excess, added.placeholders);
            // As long as the placeholder messages need more than the excess, the neighbouring budgets
            // withhold the same number of tokens.
            depends_on_every_token |= more != added.placeholders;
            range.0 = range.0.max(total.saturating_sub(more - withheld));
            // At a budget of `total` tokens the prompt fits and nothing is withheld, so the range ends below
            // it.
            range.1 = range.1.min(total.saturating_sub(1));
            (withheld, number) = (more, number + 1);
            solution = ranked.solver(number).solve(self.context, budget, withheld)?;
            let (from, to) = reach(&solution, i128::from(withheld));
            range = (range.0.max(from), range.1.min(to));
        }
    }

    /// Solves for a budget by laying out its prompt as planning does. If the prompt exceeds its budget, it is
    /// solved again with fewer tokens. `from` and `to` are the budgets of its first solution.
    fn solve_laid_out<'s>(
        &self,
        ranked: &Ranked<'s>,
        budget: u64,
        (from, to): (u64, u64),
    ) -> Result<Solved<'s>, Error> {
        let context = PlanContext { prompt_budget: budget, ..self.context.clone() };
        let (solver, request) = (&ranked.whole, self.candidates().request());
        let mut replan = Replan::default();
        loop {
            let solution = solver.solve_in_detail(&context, budget, replan.tokens_withheld())?;
            let (selector, budgets) = solution.final_trial();
            let (costs, chosen) = (&selector.costs, &solution.chosen);
            let candidates = solver.candidates();
            let prompt = LaidOut::new(&context, candidates, costs, candidates.meter(), (&budgets, chosen))?;
            let (excess, placeholders) = (prompt.excess(), prompt.required_by_provider());
            if !solution.is_minimal() && replan.withhold_tokens(excess, placeholders) {
                continue;
            }
            let (missing, lost) = if self.rounds.can_lose_texts {
                (prompt.missing(), self.manager.lost_reasoning(&prompt, request)?)
            } else {
                (SentAgain::default(), BTreeMap::new())
            };
            let (total, required) = (prompt.tokens(), self.required_by(prompt.rows()));
            drop(prompt);
            let range = match (solution.is_minimal(), replan.tokens_withheld()) {
                (true, 0) => (from, to),
                (false, 0) if total <= budget => (from.max(total), to),
                // The tokens withheld depend on every token of the budget.
                _ => (budget, budget),
            };
            let (gives_up_documents, released_before) =
                (solution.chosen.set_does_not_fit, solution.released_before());
            let included = solution.chosen.included.for_walker();
            let range = ranked.range(range, released_before, included, required, self.retained_texts);
            return Ok(Solved { gives_up_documents, missing, lost, range });
        }
    }

    /// Returns the requested placeholder messages among these rows.
    fn required_by(&self, rows: &[PlannedItem]) -> Vec<Key> {
        let required = rows.iter().filter(|row| row.kind.is_required_by_provider());
        let there: BTreeSet<&ItemId> = required.map(|row| &row.id).collect();
        let requested = self.required_by_provider.iter().zip(0..).filter(|(id, _)| there.contains(id));
        requested.map(|(_, nth)| Key::RequiredByProvider(nth)).collect()
    }

    /// Returns the smallest budget, up to `budget`, that leaves at least `available` tokens.
    fn lowest_with(&self, available: i128, budget: u64) -> u64 {
        // Without a calibration, each token of budget leaves one token more, so a subtraction is enough. With
        // one, the tokens left never fall as the budget grows, which allows a bisection.
        if self.context.calibration.is_none() {
            let lowest = u64::try_from(available + i128::from(budget) - self.context.total(budget));
            return lowest.unwrap_or(1).max(1);
        }
        let (mut low, mut high) = (1, budget);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.context.total(middle) >= available { high = middle } else { low = middle + 1 }
        }
        high
    }

    /// Returns the largest budget, from `budget` on, that leaves at most `available` tokens.
    fn highest_with(&self, available: i128, budget: u64) -> u64 {
        if self.context.calibration.is_none() {
            let highest = u64::try_from(available + i128::from(budget) - self.context.total(budget));
            return highest.unwrap_or(u64::MAX).clamp(budget, self.largest_budget.max(budget));
        }
        // Rounds up, because the range may end at `low`: a middle equal to `low` would never end the loop.
        let (mut low, mut high) = (budget, self.largest_budget.max(budget));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.context.total(middle) <= available { low = middle } else { high = middle - 1 }
        }
        low
    }
}
