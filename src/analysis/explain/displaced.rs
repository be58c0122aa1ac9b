//! The items that are included instead of an excluded one.

use crate::{
    item::{ItemId, Section},
    plan::{
        ContextPlan, ExcludedItem, PlannedItem,
        reason::{ExcludedReason, IncludedReason, LimitedBy, PolicyRule},
    },
};

/// Returns the ids of the items that are included instead of an excluded row: see
/// [`super::Explanation::displaced_by`]. `tokens` is the token count of the row.
pub(super) fn displaced_by(plan: &ContextPlan, row: &ExcludedItem, tokens: Option<u64>) -> Vec<ItemId> {
    let room = match &row.reason {
        ExcludedReason::Duplicate { of }
        | ExcludedReason::InWindow { of }
        | ExcludedReason::NearDuplicate { of, .. }
        | ExcludedReason::Repeats { of, .. } => return vec![of.clone()],
        ExcludedReason::Budget { limited_by: LimitedBy::Overflow, .. } => {
            return plan.overflow.iter().flat_map(|overflow| overflow.conflict.iter().cloned()).collect();
        }
        // Only other pins use the tokens under the pins limit, and only other documents those under a
        // question's limit.
        ExcludedReason::Budget { room, limited_by: LimitedBy::PinsLimit | LimitedBy::QuestionLimit } => {
            return make_room(last_in(plan, row.section), tokens, *room);
        }
        // Only other recalled messages use the tokens of their share.
        ExcludedReason::Budget { room, limited_by: LimitedBy::RecallShare } => {
            let recalled = |other: &&PlannedItem| other.reason == IncludedReason::Recalled;
            return make_room(last_in(plan, row.section).filter(recalled), tokens, *room);
        }
        ExcludedReason::Budget { room, .. } => *room,
        ExcludedReason::Policy(PolicyRule::MaxItems { .. }) => {
            return last_in(plan, row.section).take(1).map(|row| row.id.clone()).collect();
        }
        _ => return Vec::new(),
    };
    // The item's own section comes first, then the others from the last to the first.
    let others = Section::ALL.into_iter().rev().filter(|section| *section != row.section);
    let others = others.flat_map(|section| last_in(plan, section));
    make_room(last_in(plan, row.section).chain(others), tokens, room)
}

/// Returns the ids of the first rows that together free the missing tokens.
fn make_room<'a>(rows: impl Iterator<Item = &'a PlannedItem>, tokens: Option<u64>, room: u64) -> Vec<ItemId> {
    // With an unknown token count no number of rows is known to be enough, so all rows are named.
    let mut missing = tokens.map_or(u64::MAX, |tokens| tokens.saturating_sub(room));
    let mut displaced = Vec::new();
    for row in rows {
        if missing == 0 {
            break;
        }
        missing = missing.saturating_sub(row.token_estimate.tokens);
        displaced.push(row.id.clone());
    }
    displaced
}

/// Returns the rows of a section that could be excluded, the last included one first: the document of the
/// lowest rank, the oldest message, the last note.
fn last_in(plan: &ContextPlan, section: Section) -> impl Iterator<Item = &PlannedItem> {
    let mut rows: Vec<&PlannedItem> = plan.included.iter().filter(|row| row.section == section).collect();
    rows.retain(|row| row.reason != IncludedReason::Required && !row.kind.is_required_by_provider());
    if section == Section::Rag {
        // The order in the prompt may be another one than that of the ranks (O1).
        let ranks = plan.document_ranks();
        let mut ranked: Vec<_> = rows.iter().enumerate().map(|(at, row)| (ranks.get(at), *row)).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        rows = ranked.into_iter().map(|(_, row)| row).collect();
    }
    if section != Section::Conversation {
        rows.reverse();
    }
    rows.into_iter()
}
