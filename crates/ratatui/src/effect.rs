//! The effect of a trial ([`WhatIf`](super::WhatIf)) on the plan.

use context_window::{ContextPlan, ItemId};
use std::collections::BTreeSet;

/// The differences between a plan under changes and the plan without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WhatIfEffect {
    /// Ids of items that only the plan under changes includes, sorted.
    pub came: Vec<ItemId>,
    /// Ids of items that only the plan without changes includes, sorted.
    pub went: Vec<ItemId>,
    /// The tokens of the original prompt that the changed prompt repeats as its beginning, and the total
    /// tokens of the original prompt. `None` if they cannot be compared.
    pub kept: Option<(u64, u64)>,
}

impl WhatIfEffect {
    /// Computes the effect from the plan without changes and the plan with them.
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
