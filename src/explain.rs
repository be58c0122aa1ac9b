//! Why something is in or out, and which budget would change that: answers that another plan confirms.

use crate::{
    candidates::Unit,
    conversation::Conversation,
    error::Error,
    item::{ItemId, Section, Source},
    manager::ContextWindowManager,
    plan::{ContextPlan, Decision, ExcludedItem},
    reason::{ExcludedReason, HeldBy, PolicyRule},
    request::PlanRequest,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

mod displaced;
mod found;
mod relief;
mod sweep;

use found::{Found, Track};
use sweep::{Hypothesis, Key, Pools};

/// How many intervals of budgets are listed.
const LISTED: usize = 16;

/// Prompt budgets at which an item is in, both ends included; tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// The smallest of them.
    pub from: u64,
    /// The largest; none where that is the largest budget of the model.
    pub to: Option<u64>,
}

/// Why one item is in or out, and which other prompt budgets would change that.
///
/// Budgets run from 1 to the largest one of the model: its context length or input limit, less the safety buffer, with
/// nothing kept for the completion. They are tried as if the last prompt had been made under them (rule S5). Where
/// results of the open exchange would have to be clipped (rule S7), nothing but the minimum is taken to be in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The item's id.
    pub id: ItemId,
    /// Whether it is a document: their ids are a namespace of their own.
    pub document: bool,
    /// Whether it is in at the present budget.
    pub included: bool,
    /// Why, by the rules, with their numbers.
    pub reason: String,
    /// The present budget, in tokens.
    pub prompt_budget: u64,
    /// What it costs, in tokens; none where the answer needs no count.
    pub tokens: Option<u64>,
    /// The items that hold its place: the last ones that came in, as many as it takes to make room for it, those of its
    /// own section first. Of a duplicate, the item that stands for it.
    pub displaced_by: Vec<ItemId>,
    /// The smallest budget, from the present one up, at which it is in.
    pub enters_at: Option<u64>,
    /// The budget from which on it stays in.
    pub stays_from: Option<u64>,
    /// The first budgets, from the present one up, at which it is in.
    pub intervals: Vec<Interval>,
    /// How many more intervals there are.
    pub more: u64,
    /// The items of the present plan that are not in it any longer at `enters_at`.
    pub leaves_then: Vec<ItemId>,
    /// Of an item that is in, the largest smaller budget at which it is not.
    pub leaves_at: Option<u64>,
    /// Why no budget of this model lets it in, or none makes it leave.
    pub never: Option<String>,
}

impl ContextPlan {
    /// Why an item is in or out, in words; none where this plan knows nothing of it. No planning is needed, and no more is
    /// known than the plan holds: of a run of messages, its first and its last.
    #[must_use]
    pub fn reason(&self, id: &str) -> Option<String> {
        self.find(id).map(words)
    }
}

impl ContextWindowManager {
    /// Why this item is in or out, and which other budgets would change that.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` for an id that is nowhere in the request, and whatever planning runs into.
    pub fn explain(&self, request: &PlanRequest<'_>, id: &str) -> Result<Explanation, Error> {
        let plan = self.plan(request)?;
        let (row, id) = row_of(&plan, request, id).ok_or_else(|| Error::nowhere(id, near(&plan, id)))?;
        Ok(self.explain_some(request, &plan, vec![(row, id)])?.remove(0))
    }

    /// The same for every row of the plan, in its order: what is in first. Of a run of messages its last one, the first to
    /// come in, is asked about.
    ///
    /// # Errors
    ///
    /// Whatever planning runs into.
    pub fn explain_all(&self, request: &PlanRequest<'_>) -> Result<Vec<Explanation>, Error> {
        let plan = self.plan(request)?;
        let included = plan.included.iter().map(|row| (Decision::Included(row), row.id.clone()));
        let excluded = plan
            .excluded
            .iter()
            .map(|row| (Decision::Excluded(row), row.last_id.as_ref().unwrap_or(&row.id).clone()));
        self.explain_some(request, &plan, included.chain(excluded).collect())
    }

    fn explain_some(
        &self,
        request: &PlanRequest<'_>,
        plan: &ContextPlan,
        rows: Vec<(Decision<'_>, ItemId)>,
    ) -> Result<Vec<Explanation>, Error> {
        let frame = self.frame(request)?;
        let pools = Pools::gather(self, request, &frame)?;
        let ids = Ids { log: request.log, documents: pools.documents(), notes: notes(request) };
        let subjects: Vec<Subject<'_>> =
            rows.into_iter().map(|(row, id)| Subject { key: ids.key(row, &id), id, row }).collect();
        let moving = subjects.iter().filter(|subject| subject.moves(pools.may_give_up()));
        let asked: BTreeSet<Key> = moving.filter_map(|subject| subject.key).collect();
        let hypothesis = Hypothesis::new(self, &frame, &pools, &asked)?;
        let found = if asked.is_empty() {
            Found::default()
        } else {
            Found::search(&hypothesis, plan.prompt_budget, &asked)?
        };
        subjects.into_iter().map(|subject| answer(plan, &hypothesis, &found, &subject)).collect()
    }
}

fn answer(
    plan: &ContextPlan,
    hypothesis: &Hypothesis<'_>,
    found: &Found,
    subject: &Subject<'_>,
) -> Result<Explanation, Error> {
    let nothing = Track::default();
    let moving = subject.key.filter(|_| subject.moves(hypothesis.may_give_up()));
    let track = moving.and_then(|key| found.of(key)).unwrap_or(&nothing);
    let explanation = Explanation {
        id: subject.id.clone(),
        document: is_document(subject.row),
        included: matches!(subject.row, Decision::Included(_)),
        reason: words(subject.row),
        prompt_budget: plan.prompt_budget,
        tokens: None,
        displaced_by: Vec::new(),
        enters_at: track.enters_at(),
        stays_from: track.stays_from,
        intervals: track.intervals.clone(),
        more: track.more,
        leaves_then: track.leaves_then.iter().flat_map(|key| hypothesis.ids(*key)).collect(),
        leaves_at: track.leaves_at,
        never: None,
    };
    Ok(match subject.row {
        Decision::Included(row) => {
            let tokens = Some(row.tokens.n);
            let always = subject.key.map_or(!row.is_demanded(), |key| hypothesis.minimum().contains(&key));
            if !always {
                return Ok(Explanation { tokens, ..explanation });
            }
            let from = plan.prompt_budget;
            Explanation {
                tokens,
                enters_at: Some(from),
                stays_from: Some(from),
                intervals: vec![Interval { from, to: None }],
                never: Some("every plan of this request holds it".into()),
                ..explanation
            }
        }
        Decision::Excluded(row) => {
            let tokens = subject.key.map(|key| hypothesis.tokens(key)).transpose()?.flatten();
            let displaced_by = displaced::by(plan, row, tokens);
            let never = match explanation.enters_at {
                Some(_) => None,
                None => Some(never(subject, row, hypothesis)?),
            };
            Explanation { tokens, displaced_by, never, ..explanation }
        }
    })
}

/// Why nothing brings it in.
fn never(subject: &Subject<'_>, row: &ExcludedItem, hypothesis: &Hypothesis<'_>) -> Result<String, Error> {
    if !subject.moves(false) {
        return Ok(row.reason.to_string());
    }
    // What no walk examined may turn out to be nothing that could be sent.
    if let Some(reason) = subject.key.map(|key| hypothesis.dead(key)).transpose()?.flatten() {
        return Ok(reason.to_string());
    }
    let held = match row.reason {
        ExcludedReason::Budget { held_by: HeldBy::Cap, .. } => "the section's cap keeps it out",
        ExcludedReason::Budget { held_by: HeldBy::Steady, .. } => "the steady window keeps it out",
        ExcludedReason::Budget { held_by: HeldBy::SteadySet, .. } => {
            "the documents that stay while the question does keep it out"
        }
        ExcludedReason::Policy(_) => "the policy keeps it out",
        _ => "there is no room for it",
    };
    let most = crate::plain::grouped(hypothesis.most);
    Ok(format!("{held} at every budget of this model, up to {most}"))
}

fn is_document(row: Decision<'_>) -> bool {
    match row {
        Decision::Included(row) => row.section == Section::Rag,
        Decision::Excluded(row) => row.section == Section::Rag,
    }
}

fn words(row: Decision<'_>) -> String {
    match row {
        Decision::Included(row) => row.reason.name().to_owned(),
        Decision::Excluded(row) => row.reason.to_string(),
    }
}

/// What is asked about: a row of the plan, and what it stands for in the rules.
struct Subject<'a> {
    id: ItemId,
    row: Decision<'a>,
    key: Option<Key>,
}

impl Subject<'_> {
    /// Whether the budget decides about it at all. Where the documents of the last prompt may have to be given up, other
    /// ones come first then, and repeat nothing.
    fn moves(&self, may_give_up: bool) -> bool {
        use ExcludedReason::{Budget, Duplicate, Policy};
        use PolicyRule::{MaxItems, MaxSourceTokens};
        let Decision::Excluded(row) = self.row else { return true };
        match row.reason {
            Budget { .. } | Policy(MaxItems { .. } | MaxSourceTokens { .. }) => true,
            Duplicate { .. } => may_give_up,
            _ => false,
        }
    }
}

/// The row of an id, qualified or not (rule O5), and the id itself; messages inside a run are found by the log.
fn row_of<'a>(plan: &'a ContextPlan, request: &PlanRequest<'_>, id: &str) -> Option<(Decision<'a>, ItemId)> {
    let whole = plan.find(id).or_else(|| inside(plan, request, &id.into()));
    let bare = id.strip_prefix("item:").or_else(|| id.strip_prefix("rag:"));
    let row = whole.or_else(|| inside(plan, request, &bare.filter(|_| !id.starts_with("rag:"))?.into()))?;
    // Where an item of just that name is meant, the row or the log knows it.
    let ends = match row {
        Decision::Included(row) => [Some(&row.id), None],
        Decision::Excluded(row) => [Some(&row.id), row.last_id.as_ref()],
    };
    let known = ends.iter().flatten().any(|end| end.as_str() == id);
    let named = known || request.log.position_of(&id.into()).is_some();
    Some((row, ItemId::from(if named { id } else { bare.unwrap_or(id) })))
}

/// The run that a message stands in.
pub(crate) fn inside<'a>(
    plan: &'a ContextPlan,
    request: &PlanRequest<'_>,
    id: &ItemId,
) -> Option<Decision<'a>> {
    let position = request.log.position_of(id)?;
    let holds = |row: &&ExcludedItem| {
        let ends = row.last_id.as_ref().and_then(|last| request.log.position_of(last));
        row.section != Section::Rag
            && request.log.position_of(&row.id).is_some_and(|from| from <= position)
            && ends.is_some_and(|to| position <= to)
    };
    plan.excluded.iter().find(holds).map(Decision::Excluded)
}

/// What the ids of a request stand for.
struct Ids<'a> {
    log: &'a Conversation,
    documents: BTreeMap<&'a ItemId, Key>,
    notes: BTreeMap<&'a ItemId, u32>,
}

fn notes<'r>(request: &'r PlanRequest<'_>) -> BTreeMap<&'r ItemId, u32> {
    request.log.notes().iter().map(|note| &note.item.id).zip(0..).collect()
}

impl Ids<'_> {
    /// What a row stands for in the rules; nothing for what is no candidate.
    fn key(&self, row: Decision<'_>, id: &ItemId) -> Option<Key> {
        let (section, source) = match row {
            Decision::Included(row) => (row.section, Some(row.source)),
            Decision::Excluded(row) => (row.section, row.source),
        };
        if section == Section::Rag {
            // One that repeats another's id is not what goes by that id.
            let repeats = matches!(row, Decision::Excluded(ExcludedItem { reason: ExcludedReason::Duplicate { of }, .. }) if of == id);
            return self.documents.get(id).copied().filter(|_| !repeats);
        }
        if let (Some(Source::Pinned), Some(at)) = (source, self.notes.get(id)) {
            return Some(Unit::Note(*at));
        }
        // A made-up result belongs to the message whose call it answers.
        let demanded = matches!(row, Decision::Included(row) if row.is_demanded());
        let made_up =
            id.as_str().strip_prefix("synth:").filter(|_| source == Some(Source::Synthetic) && !demanded);
        let of = made_up.and_then(|rest| {
            let mut ends = rest.rmatch_indices(':').map(|(at, _)| &rest[..at]);
            ends.find_map(|message| self.log.position_of(&message.into()))
        });
        let position = self.log.position_of(id).or(of)?;
        Unit::of(self.log.turns().place_of(position))
    }
}

/// An id that may have been meant.
fn near(plan: &ContextPlan, id: &str) -> Option<ItemId> {
    let ids = plan.included.iter().map(|row| &row.id).chain(plan.excluded.iter().map(|row| &row.id));
    crate::plain::nearest(id, ids.map(ItemId::as_str)).map(ItemId::from)
}
