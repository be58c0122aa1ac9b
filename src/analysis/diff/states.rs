//! The state of every item in one plan, including messages inside runs of excluded messages.

use super::Item;
use crate::{
    conversation::Conversation,
    item::{ItemId, ItemKind},
    plan::{ContextPlan, Decision, ExcludedItem},
    planner::request::PlanRequest,
};
use std::{collections::BTreeMap, ops::Range};

/// A plan indexed by item. A row for a run of excluded messages names only the first and last of them.
/// Messages between them are found by their positions in the log.
pub(super) struct States<'a> {
    plan: &'a ContextPlan,
    log: &'a Conversation,
    rows: BTreeMap<(bool, &'a ItemId), Decision<'a>>,
    /// The runs of excluded messages, in ascending order of their positions in the log.
    runs: Vec<(Range<u32>, &'a ExcludedItem)>,
}

impl<'a> States<'a> {
    pub(super) fn from_plan(plan: &'a ContextPlan, request: &'a PlanRequest<'_>) -> Self {
        let log = request.log;
        let mut rows = BTreeMap::new();
        // If two rows have one id, the first one counts, and included rows come before excluded ones.
        for row in &plan.included {
            rows.entry((row.kind.is_document(), &row.id)).or_insert(Decision::Included(row));
        }
        for row in &plan.excluded {
            for id in [Some(&row.id), row.last_id.as_ref()].into_iter().flatten() {
                rows.entry((row.kind.is_document(), id)).or_insert(Decision::Excluded(row));
            }
        }
        let run = |row: &'a ExcludedItem| {
            // A row of one message has no last id. It needs no range, because `rows` holds its id.
            let (from, to) = (log.position_of(&row.id)?, log.position_of(row.last_id.as_ref()?)?);
            (!row.kind.is_document()).then_some((from..to + 1, row))
        };
        let mut runs: Vec<(Range<u32>, &ExcludedItem)> = plan.excluded.iter().filter_map(run).collect();
        // `run_at` searches by bisection, which needs ascending runs that do not overlap.
        runs.sort_unstable_by_key(|(range, _)| range.start);
        Self { plan, log, rows, runs }
    }

    /// Returns the row of an item, or `None` if the plan does not have the item.
    pub(super) fn row(&self, item: &Item) -> Option<Decision<'a>> {
        let named = self.rows.get(&(item.document, &item.id)).copied();
        named.or_else(|| {
            let position = self.log.position_of(&item.id).filter(|_| !item.document)?;
            self.run_at(position).map(|(_, row)| Decision::Excluded(row))
        })
    }

    /// Returns the run that contains the message at a position. Takes logarithmic time.
    fn run_at(&self, position: u32) -> Option<&(Range<u32>, &'a ExcludedItem)> {
        let at = self.runs.partition_point(|(range, _)| range.end <= position);
        self.runs.get(at).filter(|(range, _)| range.contains(&position))
    }

    /// Returns the items that the plan names, in its order, and the messages inside its runs whose state may
    /// differ in the other plan. The two logs have the same first `shared` messages.
    pub(super) fn items(&self, other: &States<'_>, shared: u32) -> Vec<Item> {
        let item = |id: &ItemId, kind: &ItemKind| Item { id: id.clone(), document: kind.is_document() };
        let mut items: Vec<Item> = self.plan.included.iter().map(|row| item(&row.id, &row.kind)).collect();
        for row in &self.plan.excluded {
            items.push(item(&row.id, &row.kind));
            let Some(last) = &row.last_id else { continue };
            let range = self.log.position_of(&row.id).and_then(|first| self.run_at(first));
            if let Some((range, _)) = range {
                self.inside(range.start + 1..range.end - 1, row, other, shared, &mut items);
            }
            items.push(item(last, &row.kind));
        }
        items
    }

    /// Adds the messages inside a run to `items`. Skips messages that the other plan has in a run of the same
    /// reason, because their state is the same in both plans.
    fn inside(
        &self,
        range: Range<u32>,
        row: &ExcludedItem,
        other: &States<'_>,
        shared: u32,
        items: &mut Vec<Item>,
    ) {
        let mut position = range.start;
        while position < range.end {
            if position < shared
                && let Some((same, there)) = other.run_at(position)
                && there.reason.name() == row.reason.name()
            {
                // Jumps to the end of the common stretch, so that the work follows the number of runs, not of
                // messages.
                position = same.end.min(shared);
                continue;
            }
            items.push(Item { id: self.log.message_id(position), document: false });
            position += 1;
        }
    }
}

/// Returns the number of messages that two logs have in common at their beginning, compared by id.
pub(super) fn shared(one: &Conversation, other: &Conversation) -> u32 {
    // A log shares all messages with itself, so their ids need not be compared.
    if std::ptr::eq(one, other) {
        return one.turns().messages();
    }
    let messages = one.messages().iter().zip(other.messages());
    messages.take_while(|(one, other)| one.id() == other.id()).count() as u32
}
