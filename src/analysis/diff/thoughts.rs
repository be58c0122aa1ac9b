//! Changes of the reasoning of earlier replies from one plan to another (rules K1 to K4).

use crate::{
    item::ItemId,
    plan::{ContextPlan, DropReason},
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// A message whose reasoning is sent in one plan and not in the other, or is lost to both for another reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReasoningChange {
    /// The message that it came with.
    pub id: ItemId,
    from: ReasoningState,
    to: ReasoningState,
}

impl ReasoningChange {
    /// Returns true if the first plan sends it.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.from == ReasoningState::Sent
    }

    /// Returns true if the second plan sends it.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.to == ReasoningState::Sent
    }

    /// Returns the reason why the second plan drops it, or `None` if it sends it or does not hold the
    /// message.
    #[must_use]
    pub fn drop_reason(&self) -> Option<&DropReason> {
        match &self.to {
            ReasoningState::Lost(reason) => Some(reason),
            ReasoningState::Sent | ReasoningState::Absent => None,
        }
    }

    /// Describes it in the first plan: `sent`, `lost` with its reason, or `not there`.
    #[must_use]
    pub fn before(&self) -> impl fmt::Display {
        &self.from
    }

    /// Describes it in the second plan, as [`ReasoningChange::before`] does.
    #[must_use]
    pub fn after(&self) -> impl fmt::Display {
        &self.to
    }
}

/// The state of a message's reasoning in one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReasoningState {
    /// It is sent.
    Sent,
    /// It is lost, or its provider is to leave it out.
    Lost(DropReason),
    /// The message is not in the prompt, or has no reasoning.
    Absent,
}

impl fmt::Display for ReasoningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent => f.write_str("sent"),
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Absent => f.write_str("not there"),
        }
    }
}

/// Returns the changes, in the order of the second plan; then those of messages that only the first one has.
pub(super) fn changes(before: &ContextPlan, after: &ContextPlan) -> Vec<ReasoningChange> {
    let states = [before, after].map(states);
    let order = [after, before].map(|plan| plan.included.iter().map(|row| &row.id));
    let mut seen = std::collections::BTreeSet::new();
    let ids = order.into_iter().flatten().filter(|id| seen.insert(*id));
    let state = |side: usize, id: &ItemId| states[side].get(id).cloned().unwrap_or(ReasoningState::Absent);
    let change = |id: &ItemId| {
        let (from, to) = (state(0, id), state(1, id));
        (from != to).then(|| ReasoningChange { id: id.clone(), from, to })
    };
    ids.filter_map(change).collect()
}

fn states(plan: &ContextPlan) -> BTreeMap<&ItemId, ReasoningState> {
    let sent = plan.included.iter().filter(|row| !row.body.reasoning().is_empty());
    let sent = sent.map(|row| (&row.id, ReasoningState::Sent));
    let lost = plan.thoughts.lost.iter().map(|lost| (&lost.id, ReasoningState::Lost(lost.why.clone())));
    sent.chain(lost).collect()
}
