//! What is asked about: rows of a plan, by ids as people give them, and the candidates behind them.

use super::{gathered::Rounds, key::Key, stays::Stays};
use crate::{
    conversation::Conversation,
    item::{ItemId, ItemKind, Section, Source},
    plan::{
        ContextPlan, Decision, ExcludedItem, PlannedItem,
        reason::{ExcludedReason, PolicyRule},
    },
    planner::{candidates::CandidateId, request::PlanRequest},
    text::plain,
};
use std::collections::BTreeMap;

/// A row of the plan.
pub(super) struct Subject<'a> {
    pub(super) id: ItemId,
    pub(super) row: Decision<'a>,
    /// The key of its candidate; none for what is no candidate.
    pub(super) key: Option<Key>,
    /// The key again, where the budget decides about it at all.
    pub(super) asked: Option<Key>,
}

impl Subject<'_> {
    /// Whether it is in at the present budget.
    pub(super) fn is_in(&self) -> bool {
        matches!(self.row, Decision::Included(_))
    }
}

/// The keys behind the ids of a request.
pub(super) struct Subjects<'a> {
    log: &'a Conversation,
    documents: BTreeMap<&'a ItemId, Key>,
    notes: BTreeMap<&'a ItemId, u32>,
    /// Messages that the provider requires (rule H5), in the order of the present plan.
    required_by_provider: BTreeMap<&'a ItemId, u32>,
    stays: &'a Stays,
    may_rank_anew: bool,
}

impl<'a> Subjects<'a> {
    pub(super) fn of(
        request: &'a PlanRequest<'_>,
        rounds: &'a Rounds<'_>,
        stays: &'a Stays,
        required_by_provider: &'a [ItemId],
    ) -> Self {
        let notes = request.log.note_entries().iter().map(|(number, note)| (&note.item.id, number)).collect();
        Self {
            log: request.log,
            documents: rounds.documents(),
            notes,
            required_by_provider: required_by_provider.iter().zip(0..).collect(),
            stays,
            may_rank_anew: rounds.may_rank_anew(),
        }
    }

    pub(super) fn subject<'p>(&self, row: Decision<'p>, id: ItemId) -> Subject<'p> {
        let key = self.key(row, &id);
        Subject { key, asked: key.filter(|_| self.moves(row)), id, row }
    }

    /// Whether the budget decides about a row. What is archived comes in where a pin brings it, and then
    /// there is a key. Where documents may be ranked otherwise, other ones come first then, and repeat
    /// nothing.
    fn moves(&self, row: Decision<'_>) -> bool {
        let Decision::Excluded(row) = row else { return true };
        // A pin that has no room may fall with its question (rule S3): with more room it does not.
        let may_have_fallen = row.section == Section::SystemPinned
            && row.kind == ItemKind::Message
            && matches!(row.reason, ExcludedReason::TtlExpired { .. });
        is_for_want_of_room(&row.reason)
            || may_have_fallen
            || matches!(row.reason, ExcludedReason::Archived { .. })
            || self.may_rank_anew && matches!(row.reason, ExcludedReason::Duplicate { .. })
    }

    /// Returns the key of a row's candidate; none for what is no candidate.
    fn key(&self, row: Decision<'_>, id: &ItemId) -> Option<Key> {
        let source = match row {
            Decision::Included(row) => Some(row.source),
            Decision::Excluded(row) => row.source,
        };
        // A document that competes and a message are candidates of their own.
        let competes = |row: &PlannedItem| {
            let is_document = row.kind.is_document();
            is_document && row.section == Section::Rag || !is_document && self.log.position_of(id).is_some()
        };
        if let Decision::Included(row) = row
            && !competes(row)
            && let Some(key) = self.stays.key(id, row.kind.is_document())
        {
            return Some(key);
        }
        if row.is_document() {
            // One that repeats another's id is not what goes by that id.
            let repeats = matches!(row, Decision::Excluded(ExcludedItem { reason: ExcludedReason::Duplicate { of }, .. }) if of == id);
            return self.documents.get(id).copied().filter(|_| !repeats);
        }
        if let (Some(Source::Pinned), Some(at)) = (source, self.notes.get(id)) {
            return Some(Key::Item(CandidateId::Note(*at)));
        }
        if matches!(row, Decision::Included(row) if row.kind.is_required_by_provider()) {
            return self.required_by_provider.get(id).map(|nth| Key::RequiredByProvider(*nth));
        }
        // A placeholder result belongs to the message whose call it answers.
        let id = match row {
            Decision::Included(PlannedItem { kind: ItemKind::PlaceholderResult { of }, .. }) => of,
            _ => id,
        };
        let position = self.log.position_of(id)?;
        CandidateId::from_place(self.log.turns().place_of(position)).map(Key::Item)
    }
}

/// Whether something is out for lack of budget, or by a policy that counts items: another budget may change
/// that.
pub(super) fn is_for_want_of_room(reason: &ExcludedReason) -> bool {
    use PolicyRule::{MaxItems, MaxSourceTokens};
    matches!(
        reason,
        ExcludedReason::Budget { .. } | ExcludedReason::Policy(MaxItems { .. } | MaxSourceTokens { .. })
    )
}

/// Returns the row of an id, qualified or not (rule O5), and the id itself; messages inside a run are found
/// by the log.
pub(super) fn row_of<'a>(
    plan: &'a ContextPlan,
    request: &PlanRequest<'_>,
    id: &str,
) -> Option<(Decision<'a>, ItemId)> {
    if let Some(run) = run_of(plan, request, id) {
        return Some(run);
    }
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

/// Returns the row of a run by its name in reports, `m0..m77`, and its last id; none if an item has that
/// name.
fn run_of<'a>(
    plan: &'a ContextPlan,
    request: &PlanRequest<'_>,
    name: &str,
) -> Option<(Decision<'a>, ItemId)> {
    if !name.contains("..") || plan.find(name).is_some() || request.log.position_of(&name.into()).is_some() {
        return None;
    }
    plan.excluded.iter().find_map(|row| {
        let last = row.last_id.as_ref().filter(|last| format!("{}..{last}", row.id) == name)?;
        Some((Decision::Excluded(row), last.clone()))
    })
}

/// Returns the row of a run of messages that a message is part of.
fn inside<'a>(plan: &'a ContextPlan, request: &PlanRequest<'_>, id: &ItemId) -> Option<Decision<'a>> {
    let position = request.log.position_of(id)?;
    let holds = |row: &&ExcludedItem| {
        let ends = row.last_id.as_ref().and_then(|last| request.log.position_of(last));
        !row.kind.is_document()
            && request.log.position_of(&row.id).is_some_and(|from| from <= position)
            && ends.is_some_and(|to| position <= to)
    };
    plan.excluded.iter().find(holds).map(Decision::Excluded)
}

/// Returns an id that may have been meant.
pub(super) fn near(plan: &ContextPlan, id: &str) -> Option<ItemId> {
    let ids = plan.included.iter().map(|row| &row.id).chain(plan.excluded.iter().map(|row| &row.id));
    plain::nearest(id, ids.map(ItemId::as_str)).map(ItemId::from)
}
