//! Single changes that make an overflowing plan fit, the cheapest first.
//!
//! - Input: the missing tokens, undroppable pins, and an item that could be shorter.
//! - Output: remedies.
//! - Rules: S6.

use super::PlanContext;
use crate::{
    item::ItemId,
    plan::{BudgetSource, Remedy},
};

/// Returns the changes that make a plan fit.
///
/// `to` is a sufficient budget in the provider's tokens. `excess` is the number of tokens to remove from the
/// items, as counted here. `pins` are the undroppable pins with their tokens. `longest` is an item with
/// enough text to shorten.
pub(super) fn find(
    context: &PlanContext<'_>,
    (to, excess): (u64, u64),
    mut pins: Vec<(ItemId, u64)>,
    longest: Option<ItemId>,
) -> Vec<Remedy> {
    let mut remedies = vec![Remedy::RaiseBudget { to }];
    remedies.extend(lower_completion(context, to));
    // Each remedy must be sufficient by itself.
    pins.retain(|(_, tokens)| *tokens >= excess);
    pins.sort_by_key(|(_, tokens)| *tokens);
    remedies.extend(pins.into_iter().map(|(id, _)| Remedy::Unpin { id }));
    remedies.extend(longest.map(|id| Remedy::Shorten { id, by: excess }));
    remedies
}

/// Returns the completion length at which a prompt budget of `to` fits. Returns `None` if the completion did
/// not reduce the budget, or if another limit is in the way.
fn lower_completion(context: &PlanContext<'_>, to: u64) -> Option<Remedy> {
    let limits = context.limits;
    let over = to.saturating_sub(context.prompt_budget);
    let completion = limits.max_completion_tokens.checked_sub(over).filter(|tokens| *tokens > 0)?;
    let input = to.checked_add(limits.safety_buffer)?;
    let fits = limits.max_input.is_none_or(|most| input <= most);
    let is_reduced = context.budget_source == BudgetSource::ContextLen;
    (is_reduced && fits).then_some(Remedy::LowerCompletion { to: completion })
}
