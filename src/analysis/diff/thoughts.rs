//! Changes in the reasoning of earlier replies between two plans (reasoning rules K1 to K4).

use crate::{
    item::ItemId,
    plan::{ContextPlan, DropReason},
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// A message whose reasoning has a different state in the two plans: sent, dropped for a reason, or absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReasoningChange {
    /// The id of the message.
    pub id: ItemId,
    from: ReasoningState,
    to: ReasoningState,
}

impl ReasoningChange {
    /// Returns true if the first plan sends the reasoning.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.from == ReasoningState::Sent
    }

    /// Returns true if the second plan sends the reasoning.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.to == ReasoningState::Sent
    }

    /// Returns the reason why the second plan drops the reasoning. Returns `None` if the plan sends it, or
    /// does not include the message.
    #[must_use]
    pub fn drop_reason(&self) -> Option<&DropReason> {
        match &self.to {
            ReasoningState::Lost(reason) => Some(reason),
            ReasoningState::Sent | ReasoningState::Absent => None,
        }
    }

    /// Describes the reasoning in the first plan: `sent`, `lost` with the reason, or `not there`.
    #[must_use]
    pub fn before(&self) -> impl fmt::Display {
        &self.from
    }

    /// Describes the reasoning in the second plan, as [`ReasoningChange::before`] does.
    #[must_use]
    pub fn after(&self) -> impl fmt::Display {
        &self.to
    }
}

/// The state of a message's reasoning in one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReasoningState {
    /// Reasoning that is sent.
    Sent,
    /// Reasoning that is dropped, or that its provider is asked to leave out.
    Lost(DropReason),
    /// No reasoning: the message is excluded, or has none.
    Absent,
}

impl fmt::Display for ReasoningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent => f.write_str("sent"),
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Absent => f.write_str("no reasoning"),
        }
    }
}

/// Returns the changes in the order of the second plan, then those of messages that only the first plan
/// includes.
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
    // Dropped reasoning comes last and replaces sent reasoning in the map. Under
    // `conversation.reasoning = "provider"`, reasoning is sent although its provider drops it.
    sent.chain(lost).collect()
}
