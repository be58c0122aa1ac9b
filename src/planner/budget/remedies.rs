//! Single changes that make an overflowing plan fit (rule S6), the cheapest first.

use crate::{
    item::ItemId,
    plan::{BudgetSource, Remedy},
    provider::model::Limits,
};

/// How far a minimum is over its budget, and what that budget came from; tokens.
pub(crate) struct Shortfall {
    /// The budget that would do, and by how much that is more: in the provider's tokens.
    pub(crate) total: u64,
    pub(crate) over: u64,
    /// By how much items have to be less, as they are counted here.
    pub(crate) excess: u64,
    pub(crate) limits: Limits,
    pub(crate) source: BudgetSource,
}

/// Finds the changes: `pins` are the undroppable ones with their tokens, `longest` is an item with enough text to give.
pub(crate) fn find(
    shortfall: &Shortfall,
    mut pins: Vec<(ItemId, u64)>,
    longest: Option<ItemId>,
) -> Vec<Remedy> {
    let Shortfall { total, excess, .. } = *shortfall;
    let mut remedies = vec![Remedy::RaiseBudget { to: total }];
    remedies.extend(lower_completion(shortfall));
    pins.retain(|(_, tokens)| *tokens >= excess);
    pins.sort_by_key(|(_, tokens)| *tokens);
    remedies.extend(pins.into_iter().map(|(id, _)| Remedy::Unpin { id }));
    remedies.extend(longest.map(|id| Remedy::Shorten { id, by: excess }));
    remedies
}

/// The completion may shrink where it is what the budget was reduced by, and nothing else is in the way.
fn lower_completion(shortfall: &Shortfall) -> Option<Remedy> {
    let limits = shortfall.limits;
    let to = limits.max_completion_tokens.checked_sub(shortfall.over).filter(|to| *to > 0)?;
    let input = shortfall.total.checked_add(limits.safety_buffer)?;
    let fits = limits.max_input.is_none_or(|most| input <= most);
    (shortfall.source == BudgetSource::ContextLen && fits).then_some(Remedy::LowerCompletion { to })
}
