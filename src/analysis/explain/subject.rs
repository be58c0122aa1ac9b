//! The subjects of explanations: rows of a plan, found by ids as people write them, and the candidates of
//! these rows.

use super::{gathered::Rounds, key::Key, retained_texts::RetainedTexts};
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

/// A row of the plan with its keys.
pub(super) struct Subject<'a> {
    pub(super) id: ItemId,
    pub(super) row: Decision<'a>,
    /// The key of the row's candidate; `None` if the row has no candidate.
    pub(super) key: Option<Key>,
    /// The same key, but `None` if no budget changes the decision on the row.
    pub(super) requested: Option<Key>,
}

impl Subject<'_> {
    /// Returns true if the item is included at the present budget.
    pub(super) fn is_in(&self) -> bool {
        matches!(self.row, Decision::Included(_))
    }
}

/// The keys of the ids of a request.
pub(super) struct Subjects<'a> {
    log: &'a Conversation,
    documents: BTreeMap<&'a ItemId, Key>,
    notes: BTreeMap<&'a ItemId, u32>,
    /// Messages that the provider requires (placeholder messages, rule H5), by id, with their numbers in the
    /// present plan.
    required_by_provider: BTreeMap<&'a ItemId, u32>,
    retained_texts: &'a RetainedTexts,
    can_rank_differently: bool,
}

impl<'a> Subjects<'a> {
    pub(super) fn from_request(
        request: &'a PlanRequest<'_>,
        rounds: &'a Rounds<'_>,
        retained_texts: &'a RetainedTexts,
        required_by_provider: &'a [ItemId],
    ) -> Self {
        let notes = rounds.first.first.notes().iter().map(|(number, note)| (&note.item.id, number)).collect();
        Self {
            log: request.log,
            documents: rounds.documents(),
            notes,
            required_by_provider: required_by_provider.iter().zip(0..).collect(),
            retained_texts,
            can_rank_differently: rounds.can_rank_differently(),
        }
    }

    pub(super) fn subject<'p>(&self, row: Decision<'p>, id: ItemId) -> Subject<'p> {
        let key = self.key(row, &id);
        Subject { key, requested: key.filter(|_| self.can_move(row)), id, row }
    }

    /// Checks if the budget decides about a row. An archived message is included if a pin brings it, and then
    /// it has a key.
    fn can_move(&self, row: Decision<'_>) -> bool {
        let Decision::Excluded(row) = row else { return true };
        // A pin without room may fall together with its question (pinned exchanges, rule S3). With more room
        // it does not.
        let may_have_fallen = row.section == Section::SystemPinned
            && row.kind == ItemKind::Message
            && matches!(row.reason, ExcludedReason::TtlExpired { .. });
        is_excluded_for_room(&row.reason)
            || may_have_fallen
            || matches!(row.reason, ExcludedReason::Archived { .. })
            || self.can_rank_differently && depends_on_ranks(&row.reason)
    }

    /// Returns the key of a row's candidate, or `None` if the row has no candidate.
    fn key(&self, row: Decision<'_>, id: &ItemId) -> Option<Key> {
        let source = match row {
            Decision::Included(row) => Some(row.source),
            Decision::Excluded(row) => row.source,
        };
        // Competing documents and messages are candidates of their own. Other rows may be retained texts.
        let competes = |row: &PlannedItem| {
            let is_document = row.kind.is_document();
            is_document && row.section == Section::Rag || !is_document && self.log.position_of(id).is_some()
        };
        if let Decision::Included(row) = row
            && !competes(row)
            && let Some(key) = self.retained_texts.key(id, row.kind.is_document())
        {
            return Some(key);
        }
        if row.is_document() {
            // A document that repeats the id of another one is not the document with that key.
            let repeats = matches!(row, Decision::Excluded(ExcludedItem { reason: ExcludedReason::Duplicate { of }, .. }) if of == id);
            return self.documents.get(id).copied().filter(|_| !repeats);
        }
        if let (Some(Source::Pinned | Source::Rule), Some(at)) = (source, self.notes.get(id)) {
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

/// Checks if an item may be included if documents rank differently. Others may come first, and a duplicate no
/// longer repeats one. Documents of the last prompt that are not given up may come before their question, and
/// a note then does not wait (retained texts, rule S10).
fn depends_on_ranks(reason: &ExcludedReason) -> bool {
    matches!(reason, ExcludedReason::Duplicate { .. } | ExcludedReason::Policy(PolicyRule::NextQuestion))
}

/// Checks if an item is excluded for lack of budget, by a policy that counts items or tokens, or because its
/// text stands in another item. Another budget may change that.
pub(super) fn is_excluded_for_room(reason: &ExcludedReason) -> bool {
    use ExcludedReason::{Budget, InWindow, NearDuplicate, Policy, Repeats};
    use PolicyRule::{
        Group, MaxItems, MaxListItems, MaxListTokens, MaxSourceItems, MaxSourceTokens, Requires,
    };
    matches!(
        reason,
        Budget { .. }
            | InWindow { .. }
            | NearDuplicate { .. }
            | Repeats { .. }
            | Policy(
                MaxItems { .. }
                    | MaxListItems { .. }
                    | MaxListTokens { .. }
                    | MaxSourceItems { .. }
                    | MaxSourceTokens { .. }
                    | Requires { .. }
                    | Group { .. }
            )
    )
}

/// Returns the row of an id, and the id itself. The id may have a namespace, `item:` or `rag:` (rule O5).
/// Messages inside a run are found by the log. Returns `None` if no row has the id.
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
    // If an item has exactly this name, the prefix is a part of the name and not a namespace.
    let ends = match row {
        Decision::Included(row) => [Some(&row.id), None],
        Decision::Excluded(row) => [Some(&row.id), row.last_id.as_ref()],
    };
    let known = ends.iter().flatten().any(|end| end.as_str() == id);
    let named = known || request.log.position_of(&id.into()).is_some();
    Some((row, ItemId::from(if named { id } else { bare.unwrap_or(id) })))
}

/// Returns the row of a run by its name in reports, such as `m0..m77`, and the id of its last message.
/// Returns `None` if an item has that name.
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

/// Returns the row of the run that contains a message. Returns `None` if the message is in no run.
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

/// Returns the id of the plan that is most similar to `id`, as a suggestion.
pub(super) fn near(plan: &ContextPlan, id: &str) -> Option<ItemId> {
    let ids = plan.included.iter().map(|row| &row.id).chain(plan.excluded.iter().map(|row| &row.id));
    plain::nearest(id, ids.map(ItemId::as_str)).map(ItemId::from)
}
