//! Which items are in instead of one that is out.

use crate::{
    item::{ItemId, Section},
    plan::{
        ContextPlan, ExcludedItem, PlannedItem,
        reason::{ExcludedReason, IncludedReason, LimitedBy, PolicyRule},
    },
};

/// Returns the items that are in instead of a row that is out: see [`super::Explanation::displaced_by`].
/// `tokens` is what it costs.
pub(super) fn by(plan: &ContextPlan, row: &ExcludedItem, tokens: Option<u64>) -> Vec<ItemId> {
    let room = match &row.reason {
        ExcludedReason::Duplicate { of } => return vec![of.clone()],
        ExcludedReason::Budget { limited_by: LimitedBy::Overflow, .. } => {
            return plan.overflow.iter().flat_map(|overflow| overflow.conflict.iter().cloned()).collect();
        }
        // Only other pins take what pins may take, and only other documents what those of one question may.
        ExcludedReason::Budget { room, limited_by: LimitedBy::PinsLimit | LimitedBy::QuestionLimit } => {
            return make_room(last_in(plan, row.section), tokens, *room);
        }
        ExcludedReason::Budget { room, .. } => *room,
        ExcludedReason::Policy(PolicyRule::MaxItems { .. }) => {
            return last_in(plan, row.section).take(1).map(|row| row.id.clone()).collect();
        }
        _ => return Vec::new(),
    };
    let others = Section::ALL.into_iter().rev().filter(|section| *section != row.section);
    let others = others.flat_map(|section| last_in(plan, section));
    make_room(last_in(plan, row.section).chain(others), tokens, room)
}

/// Returns the first of these that together leave as much as is missing.
fn make_room<'a>(rows: impl Iterator<Item = &'a PlannedItem>, tokens: Option<u64>, room: u64) -> Vec<ItemId> {
    let mut missing = tokens.map_or(u64::MAX, |tokens| tokens.saturating_sub(room));
    let mut holding = Vec::new();
    for row in rows {
        if missing == 0 {
            break;
        }
        missing = missing.saturating_sub(row.token_estimate.tokens);
        holding.push(row.id.clone());
    }
    holding
}

/// What is in and could be out, of one section, the last to come in first: the document of the lowest rank,
/// the oldest message, the last note.
fn last_in(plan: &ContextPlan, section: Section) -> impl Iterator<Item = &PlannedItem> {
    let mut rows: Vec<&PlannedItem> = plan.included.iter().filter(|row| row.section == section).collect();
    rows.retain(|row| row.reason != IncludedReason::Required && !row.kind.is_required_by_provider());
    if section != Section::Conversation {
        rows.reverse();
    }
    rows.into_iter()
}
