//! Explanations: the reason why an item is included or excluded, and the budgets that would change that, each
//! confirmed by a plan.

use super::Explainer;
use crate::{
    error::Error,
    item::ItemId,
    plan::{
        ContextPlan, Decision, ExcludedItem,
        reason::{Never, Reason},
    },
    tokens::{Certainty, TokenCount},
};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

mod key;
mod displaced;
mod relief;
mod advice;
mod slack;
mod many_budgets;
mod budget_range;
mod gathered;
mod retained_texts;
mod reach;
mod ranked;
mod sweep;
mod subject;
mod tracks;
mod budget_map;

pub use advice::{Advice, AdvisedChange};
pub use budget_map::{BudgetMap, BudgetStep, EnteringItem, MappedItem, MappedSection};
use gathered::Rounds;
use key::Key;
pub use relief::ConfirmedRemedy;
use retained_texts::RetainedTexts;
use subject::{Subject, Subjects, is_excluded_for_room, near, row_of};
use sweep::Sweep;
use tracks::Track;

/// Number of intervals that an explanation lists.
const LISTED: usize = 16;

/// A range of prompt budgets, in tokens, at which an item is included. It contains both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// The smallest budget.
    pub from: u64,
    /// The largest budget; `None` if that is the largest budget of the model.
    pub to: Option<u64>,
}

/// The reason why one item is included or excluded, and the prompt budgets that would change that.
///
/// Budgets range from 1 token to the largest budget of the model: its context length or input limit, minus
/// the safety buffer, with nothing reserved for the completion. For each budget, the last prompt counts as
/// planned with the same budget, so that its window is kept (sticky window, rule S5). A budget that would
/// truncate results of the current tool call (rule S7) counts as including only the minimum.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The id of the item.
    pub id: ItemId,
    /// For a run of messages, the id of the first message. `id` is then the last.
    pub first_id: Option<ItemId>,
    /// Number of messages that the explanation is about.
    pub count: u64,
    /// True for a document. Document ids are a separate namespace.
    pub document: bool,
    /// True if the item is included at the present budget.
    pub included: bool,
    /// The reason with its numbers, which displays as a sentence.
    pub reason: Reason,
    /// The present prompt budget, in tokens.
    pub prompt_budget: u64,
    /// Tokens of the item; for an excluded message, those of its whole exchange. `None` if no count is
    /// needed.
    pub tokens: Option<u64>,
    /// The certainty of `tokens`.
    pub certainty: Certainty,
    /// For a run of messages, the token count of all of them, as in the plan's row. `tokens` then counts the
    /// newest message and its exchange, which a growing budget includes first.
    pub run_tokens: Option<TokenCount>,
    /// The items that are included instead: just enough of them to free the missing tokens. They are taken
    /// from the item's own section first, and in a section from the last included one on. For a duplicate,
    /// this is the item that it repeats.
    pub displaced_by: Vec<ItemId>,
    /// The included document that quotes this message, which is excluded itself: it comes back for the
    /// question (rule S15).
    pub recalled_as: Option<ItemId>,
    /// The smallest budget, from the present one up, at which the item is included.
    pub enters_at: Option<u64>,
    /// The budget from which on every larger budget includes the item.
    pub stays_from: Option<u64>,
    /// The first ranges of budgets, from the present one up, at which the item is included.
    pub intervals: Vec<Interval>,
    /// Number of further intervals.
    pub more: u64,
    /// Items of the present plan that are excluded at `enters_at`. Placeholder messages that the target
    /// requires (rule H5) are not listed.
    pub leaves_then: Vec<ItemId>,
    /// For an included item, the largest smaller budget at which it is excluded.
    pub leaves_at: Option<u64>,
    /// The reason why no budget of this model includes the item, or why none excludes it. It displays as a
    /// sentence.
    pub never: Option<Never>,
}

/// The JSON form of an explanation. Each reason is written as a sentence, and as a code with its numbers.
#[derive(Serialize)]
struct Written<'a> {
    id: &'a ItemId,
    first_id: &'a Option<ItemId>,
    count: u64,
    document: bool,
    included: bool,
    reason: String,
    reason_code: &'a Reason,
    prompt_budget: u64,
    tokens: Option<u64>,
    certainty: Certainty,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_tokens: Option<TokenCount>,
    displaced_by: &'a [ItemId],
    #[serde(skip_serializing_if = "Option::is_none")]
    recalled_as: &'a Option<ItemId>,
    enters_at: Option<u64>,
    stays_from: Option<u64>,
    intervals: &'a [Interval],
    more: u64,
    leaves_then: &'a [ItemId],
    leaves_at: Option<u64>,
    never: Option<String>,
    never_code: &'a Option<Never>,
}

/// Writes an object with all fields. `reason` and `never` are sentences. `reason_code` and `never_code` hold
/// the same as data.
impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Written {
            id: &self.id,
            first_id: &self.first_id,
            count: self.count,
            document: self.document,
            included: self.included,
            reason: self.reason.to_string(),
            reason_code: &self.reason,
            prompt_budget: self.prompt_budget,
            tokens: self.tokens,
            certainty: self.certainty,
            run_tokens: self.run_tokens,
            displaced_by: &self.displaced_by,
            recalled_as: &self.recalled_as,
            enters_at: self.enters_at,
            stays_from: self.stays_from,
            intervals: &self.intervals,
            more: self.more,
            leaves_then: &self.leaves_then,
            leaves_at: self.leaves_at,
            never: self.never.as_ref().map(ToString::to_string),
            never_code: &self.never,
        };
        written.serialize(serializer)
    }
}

impl ContextPlan {
    /// Returns the reason why an item is included or excluded, or `None` if this plan does not list it. It
    /// does not plan again, so it finds only ids of the plan. Of a run of messages these are the first and
    /// the last.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<Reason> {
        self.find(id).map(reason_of)
    }
}

impl Explainer<'_> {
    /// Explains one item: the reason why it is included or excluded, and the other budgets that would change
    /// that. A run of messages has the name that reports use, such as `m0..m77`.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no item of the request has this id, and any error of planning.
    pub fn explain(&self, id: &str) -> Result<Explanation, Error> {
        let plan = self.manager.plan(self.request)?;
        let (row, id) =
            row_of(&plan, self.request, id).ok_or_else(|| Error::item_not_found(id, near(&plan, id)))?;
        Ok(self.explain_some(&plan, vec![(row, id)])?.remove(0))
    }

    /// Explains every row of the plan, in the order of the plan: included items first. For a run of messages
    /// it explains the last one, which a growing budget includes first.
    ///
    /// # Errors
    ///
    /// Any error of planning.
    pub fn explain_all(&self) -> Result<Vec<Explanation>, Error> {
        let plan = self.manager.plan(self.request)?;
        let included = plan.included.iter().map(|row| (Decision::Included(row), row.id.clone()));
        let excluded = plan
            .excluded
            .iter()
            .map(|row| (Decision::Excluded(row), row.last_id.as_ref().unwrap_or(&row.id).clone()));
        self.explain_some(&plan, included.chain(excluded).collect())
    }

    fn explain_some(
        &self,
        plan: &ContextPlan,
        rows: Vec<(Decision<'_>, ItemId)>,
    ) -> Result<Vec<Explanation>, Error> {
        let (manager, request) = (self.manager, self.request);
        let context = manager.context(request)?;
        let rounds = Rounds::from_request(manager, request, &context)?;
        let retained_texts = RetainedTexts::new(&rounds);
        let required_by_provider =
            plan.included.iter().filter(|row| row.kind.is_required_by_provider()).map(|row| row.id.clone());
        let required_by_provider: Vec<ItemId> = required_by_provider.collect();
        let ids = Subjects::from_request(request, &rounds, &retained_texts, &required_by_provider);
        let subjects: Vec<Subject<'_>> = rows.into_iter().map(|(row, id)| ids.subject(row, id)).collect();
        // All rows share one sweep over the budgets, because each step of a sweep selects again.
        let requested: BTreeSet<Key> = subjects.iter().filter_map(|subject| subject.requested).collect();
        let rows = plan.included.iter().map(|row| ids.subject(Decision::Included(row), row.id.clone()));
        let present: BTreeSet<Key> = rows.filter_map(|subject| subject.key).collect();
        let sweep = Sweep::new(
            manager,
            &context,
            (&rounds, &retained_texts),
            &requested,
            required_by_provider.clone(),
        )?;
        let tracks = tracks::search(&sweep, plan.prompt_budget, &requested, &present)?;
        subjects.iter().map(|subject| answer(plan, &sweep, &tracks, subject)).collect()
    }
}

fn answer(
    plan: &ContextPlan,
    sweep: &Sweep<'_>,
    tracks: &BTreeMap<Key, Track>,
    subject: &Subject<'_>,
) -> Result<Explanation, Error> {
    let nothing = Track::default();
    let track = subject.requested.and_then(|key| tracks.get(&key)).unwrap_or(&nothing);
    let explanation = Explanation {
        id: subject.id.clone(),
        first_id: None,
        count: 1,
        document: subject.row.is_document(),
        included: subject.is_in(),
        reason: reason_of(subject.row),
        prompt_budget: plan.prompt_budget,
        tokens: None,
        certainty: plan.estimated_tokens_total.certainty,
        run_tokens: None,
        displaced_by: Vec::new(),
        recalled_as: None,
        enters_at: track.enters_at(),
        stays_from: track.stays_from,
        intervals: track.intervals.clone(),
        more: track.more,
        leaves_then: track
            // A placeholder message appears and disappears with its neighbours. It is not an item that the
            // reader could keep.
            .leaves_then
            .iter()
            .filter(|key| !matches!(key, Key::RequiredByProvider(_)))
            .flat_map(|key| sweep.ids(*key))
            .collect(),
        leaves_at: track.leaves_at,
        never: None,
    };
    Ok(match subject.row {
        Decision::Included(row) => {
            let (tokens, certainty) = (Some(row.token_estimate.tokens), row.token_estimate.certainty);
            let always = match subject.key {
                None => true,
                // A larger budget may also exclude placeholder messages that a target requires, and items
                // that are sent again.
                Some(key) => {
                    let leaves = track.leaves_at.is_some() || track.stays_from != Some(plan.prompt_budget);
                    sweep.minimum().contains(&key) || !leaves
                }
            };
            if !always {
                return Ok(Explanation { tokens, certainty, ..explanation });
            }
            let from = plan.prompt_budget;
            Explanation {
                tokens,
                certainty,
                enters_at: Some(from),
                stays_from: Some(from),
                intervals: vec![Interval { from, to: None }],
                never: Some(Never::AlwaysIn),
                ..explanation
            }
        }
        Decision::Excluded(row) => {
            let count = subject.key.map(|key| sweep.tokens(key)).transpose()?.flatten();
            let tokens = count.map(|count| count.tokens);
            let never = match explanation.enters_at {
                Some(_) => None,
                None => Some(never(subject, row, sweep)?),
            };
            // Only the last message of a run explains the run. Messages inside it are explained by
            // themselves.
            let is_run = row.last_id.as_ref() == Some(&subject.id);
            Explanation {
                first_id: is_run.then(|| row.id.clone()),
                count: if is_run { row.count } else { 1 },
                tokens,
                certainty: count.map_or(explanation.certainty, |count| count.certainty),
                run_tokens: is_run.then_some(row.token_estimate),
                displaced_by: displaced::displaced_by(plan, row, tokens),
                recalled_as: if subject.row.is_document() {
                    None
                } else {
                    sweep.recalled_as(plan, &subject.id)
                },
                never,
                ..explanation
            }
        }
    })
}

/// Returns the reason why no budget includes the item.
fn never(subject: &Subject<'_>, row: &ExcludedItem, sweep: &Sweep<'_>) -> Result<Never, Error> {
    if !is_excluded_for_room(&row.reason) {
        return Ok(Never::Reason(row.reason.clone()));
    }
    // A message that no walk examined may have no content to send.
    if let Some(reason) = subject.key.map(|key| sweep.ineligible(key)).transpose()?.flatten() {
        return Ok(Never::Reason(reason));
    }
    Ok(Never::UpTo { reason: row.reason.clone(), largest_budget: sweep.largest_budget })
}

fn reason_of(row: Decision<'_>) -> Reason {
    match row {
        Decision::Included(row) => Reason::Included(row.reason),
        Decision::Excluded(row) => Reason::Excluded(row.reason.clone()),
    }
}
