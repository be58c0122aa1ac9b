//! What changes that are tried bring.

use context_window::{ContextPlan, ItemId};
use std::collections::BTreeSet;

/// What a plan under changes has that the one without them has not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WhatIfEffect {
    /// Items that came in, in the order of their ids.
    pub came: Vec<ItemId>,
    /// Items that dropped out, in the order of their ids.
    pub went: Vec<ItemId>,
    /// Tokens of the prompt without the changes that the one with them begins with, and how many it had; none where it is not
    /// known.
    pub kept: Option<(u64, u64)>,
}

impl WhatIfEffect {
    /// From the plan without changes to the one with them.
    #[must_use]
    pub fn between(base: &ContextPlan, plan: &ContextPlan) -> Self {
        let ids = |plan: &ContextPlan| -> BTreeSet<ItemId> {
            plan.included.iter().map(|item| item.id.clone()).collect()
        };
        let (before, after) = (ids(base), ids(plan));
        Self {
            came: after.difference(&before).cloned().collect(),
            went: before.difference(&after).cloned().collect(),
            kept: plan.prefix(&base.anchor()).map(|prefix| (prefix.tokens, prefix.of)),
        }
    }
}
