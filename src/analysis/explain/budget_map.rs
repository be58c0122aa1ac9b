//! The prompt at every budget, as a list of changes from one budget to the next.

use super::{Explainer, gathered::Rounds, key::Key, stays::Stays, sweep::Sweep};
use crate::{
    error::Error,
    item::{ItemId, Section},
    plan::{ContextPlan, Kind, LedgerLine, NoticeCode, composition::RowKey},
    tokens::TokenCount,
};
use std::collections::{BTreeMap, BTreeSet};

/// The prompts of a request at every prompt budget of a range, with their tokens. Made by
/// [`Explainer::budget_map`].
///
/// Every budget is tried as if the last prompt had been made under it (counterfactual budgets, rule E1).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BudgetMap {
    /// The present prompt budget, in tokens.
    pub prompt_budget: u64,
    /// The largest prompt budget of the model, in tokens. The last step ends below it if there are too many
    /// changes.
    pub largest_budget: u64,
    /// The items that any budget of the map includes, in the order of the prompts that include them.
    pub items: Vec<MappedItem>,
    /// The steps in ascending order, without gaps. All budgets of one step have the same prompt.
    pub steps: Vec<BudgetStep>,
}

/// An item of a [`BudgetMap`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct MappedItem {
    /// The id of the item.
    pub id: ItemId,
    /// True for a document. Document ids are a separate namespace.
    pub document: bool,
    /// The section that pays for the item.
    pub section: Section,
    /// The kind of content that the item's tokens are used for.
    pub kind: Kind,
    /// The item's number, from 0, among the items with this id in its section.
    pub nth: usize,
}

/// A range of budgets with the same prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct BudgetStep {
    /// The smallest budget, in tokens.
    pub from: u64,
    /// The largest budget, in tokens.
    pub to: u64,
    /// The token count of the prompt.
    pub total: TokenCount,
    /// Tokens that belong to no item.
    pub overhead: Vec<LedgerLine>,
    /// Included items that the step before does not include, or includes with other tokens. For the first
    /// step, all included items.
    pub enters: Vec<EnteringItem>,
    /// Items of the step before that this step excludes, as indices into [`BudgetMap::items`].
    pub leaves: Vec<usize>,
    /// The sections, in the order of [`Section::ALL`].
    pub sections: Vec<MappedSection>,
}

/// An item that is included from a [`BudgetStep`] on, or has other tokens from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnteringItem {
    /// The index of the item in [`BudgetMap::items`].
    pub place: usize,
    /// Tokens of the item.
    pub tokens: u64,
    /// Tokens of its reasoning, a part of `tokens`.
    pub reasoning: u64,
}

/// A section at the budgets of a [`BudgetStep`], in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedSection {
    /// The section.
    pub section: Section,
    /// The section's budget at the smallest prompt budget of the step.
    pub budget_from: u64,
    /// The section's budget at the largest prompt budget of the step. At prompt budgets in between, the
    /// section's budget is between the two.
    pub budget_to: u64,
    /// Tokens of its included items.
    pub used: u64,
    /// Number of its included items.
    pub included: u64,
    /// Number of its excluded items.
    pub excluded: u64,
}

impl BudgetMap {
    /// Returns the step of a budget in tokens, or `None` if the map does not reach that budget. Takes
    /// logarithmic time.
    #[must_use]
    pub fn step(&self, budget: u64) -> Option<&BudgetStep> {
        let at = self.steps.partition_point(|step| step.to < budget);
        self.steps.get(at).filter(|step| step.from <= budget)
    }
}

/// The prompt at a range of budgets. `rows` holds the tokens of each item and of its reasoning, by the item's
/// index.
struct Seen {
    from: u64,
    to: u64,
    total: TokenCount,
    overhead: Vec<LedgerLine>,
    rows: BTreeMap<usize, (u64, u64)>,
    sections: Vec<MappedSection>,
}

/// The items found so far, with the index of each key. Several items with one id have different numbers in
/// their keys.
#[derive(Default)]
struct Items {
    all: Vec<MappedItem>,
    places: BTreeMap<RowKey, usize>,
}

impl Items {
    /// Records the prompt of a range of budgets. `plan` is the plan at the largest budget, and `lowest` holds
    /// the section budgets at the smallest.
    fn seen(&mut self, (from, to): (u64, u64), lowest: [u64; 3], plan: ContextPlan) -> Seen {
        let mut rows = BTreeMap::new();
        for one in plan.rows_by_kind() {
            let (row, key) = (one.row, one.key());
            let document = row.kind.is_document();
            let place = *self.places.entry(key).or_insert_with(|| {
                let (id, section, kind, nth) = (row.id.clone(), row.section, one.kind, one.nth);
                self.all.push(MappedItem { id, document, section, kind, nth });
                self.all.len() - 1
            });
            rows.insert(place, (row.token_estimate.tokens, one.reasoning));
        }
        let sections = plan.sections.iter().map(|one| MappedSection {
            section: one.section,
            budget_from: lowest[one.section as usize].min(one.budget),
            budget_to: lowest[one.section as usize].max(one.budget),
            used: one.used,
            included: one.included,
            excluded: one.excluded,
        });
        let sections = sections.collect();
        Seen { from, to, total: plan.estimated_tokens_total, overhead: plan.overhead, rows, sections }
    }
}

impl Explainer<'_> {
    /// Maps the prompt at every budget, as far as `most_steps` ranges reach below and above the present
    /// budget.
    ///
    /// ```
    /// # use context_window::{
    /// #     ContextWindowManager, Conversation, Message, PlanRequest, RagItem, RequestLimits,
    /// # };
    /// # fn main() -> Result<(), context_window::Error> {
    /// # #[cfg(feature = "openai")] {
    /// let manager = ContextWindowManager::for_model("gpt-4o")?;
    /// let log = Conversation::from([Message::user("How long do refunds take?")]);
    /// let refunds = RagItem::new("refunds", 0.92, "Refunds take 5 days.");
    /// let request =
    ///     PlanRequest::new(&log).with_rag([refunds]).with_limits(RequestLimits::prompt_budget(20));
    ///
    /// let map = manager.explainer(&request).budget_map(100)?;
    /// let totals: Vec<_> = map.steps.iter().map(|step| (step.from, step.total.tokens)).collect();
    /// // Below 13 tokens the prompt is over its budget. From 40 tokens on the document is included.
    /// assert_eq!(totals, [(1, 13), (40, 40)]);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any error of planning.
    #[doc(hidden)]
    pub fn budget_map(&self, most_steps: usize) -> Result<BudgetMap, Error> {
        let (manager, request) = (self.manager, self.request);
        let present = manager.plan(request)?;
        let budget = present.prompt_budget;
        let context = manager.context(request)?;
        let rounds = Rounds::from_request(manager, request, &context)?;
        let stays = Stays::new(&rounds);
        let required = present.included.iter().filter(|row| row.kind.is_required_by_provider());
        let required: Vec<ItemId> = required.map(|row| row.id.clone()).collect();
        // Only messages that the provider requires are goals. A goal of another item would join ranges of
        // budgets that differ in the rest of the prompt.
        let asked: BTreeSet<Key> = (0..).take(required.len()).map(Key::RequiredByProvider).collect();
        let sweep = Sweep::new(manager, &context, (&rounds, &stays), &asked, required)?;
        let mut items = Items::default();
        let (mut above, mut at) = (Vec::new(), budget);
        while above.len() < most_steps.max(1) {
            // One plan describes the whole range. Clips are the exception, because their length follows the
            // budget: then the range shrinks to one budget.
            let to = sweep.above(at)?.to;
            let plan = sweep.plan_at(to)?;
            let (to, plan) = if is_clipped(&plan) && to > at { (at, sweep.plan_at(at)?) } else { (to, plan) };
            above.push(items.seen((at, to), lowest(&sweep, (at, to), &plan)?, plan));
            if to >= sweep.most {
                break;
            }
            at = to + 1;
        }
        let (mut below, mut at) = (Vec::new(), budget);
        while at > 1 && below.len() < most_steps {
            at -= 1;
            let plan = sweep.plan_at(at)?;
            let from = if is_clipped(&plan) { at } else { sweep.below(at)?.from };
            below.push(items.seen((from, at), lowest(&sweep, (from, at), &plan)?, plan));
            at = from;
        }
        // These ranges were found from the present budget down, but steps ascend.
        below.reverse();
        Ok(BudgetMap {
            prompt_budget: budget,
            largest_budget: sweep.most,
            steps: steps(below.into_iter().chain(above)),
            items: items.all,
        })
    }
}

/// Returns the section budgets at the smallest of a range of prompt budgets. `plan` is the plan at the
/// largest.
fn lowest(sweep: &Sweep<'_>, (from, to): (u64, u64), plan: &ContextPlan) -> Result<[u64; 3], Error> {
    // A range of one budget needs no further plan.
    if from == to {
        return Ok(Section::ALL.map(|section| plan.section(section).budget));
    }
    sweep.section_budgets(from)
}

/// Checks if tool results are clipped. The length of a clip depends on the exact budget (clipping, rule S7).
/// If a budget does not hold the minimum and still needs no clips, no smaller budget has any.
fn is_clipped(plan: &ContextPlan) -> bool {
    plan.notices.iter().any(|notice| notice.code == NoticeCode::ResultsClipped)
}

/// Returns the changes from each prompt to the next. Neighbouring ranges with the same prompt become one
/// step.
fn steps(seen: impl Iterator<Item = Seen>) -> Vec<BudgetStep> {
    let mut steps: Vec<BudgetStep> = Vec::new();
    let mut before: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for now in seen {
        let changed = now.rows.iter().filter(|(place, tokens)| before.get(place) != Some(tokens));
        let enters: Vec<_> = changed
            .map(|(place, (tokens, thought))| EnteringItem {
                place: *place,
                tokens: *tokens,
                reasoning: *thought,
            })
            .collect();
        let leaves: Vec<_> = before.keys().filter(|place| !now.rows.contains_key(place)).copied().collect();
        match steps.last_mut() {
            Some(last)
                if enters.is_empty()
                    && leaves.is_empty()
                    && last.total == now.total
                    && last.overhead == now.overhead =>
            {
                last.to = now.to;
                for (known, section) in last.sections.iter_mut().zip(&now.sections) {
                    known.budget_from = known.budget_from.min(section.budget_from);
                    known.budget_to = known.budget_to.max(section.budget_to);
                }
            }
            _ => {
                let Seen { from, to, total, overhead, sections, .. } = now;
                steps.push(BudgetStep { from, to, total, overhead, enters, leaves, sections });
            }
        }
        before = now.rows;
    }
    steps
}
