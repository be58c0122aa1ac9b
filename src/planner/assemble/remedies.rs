//! Single changes that make an overflowing plan fit (rule S6), the cheapest first.

use super::PlanContext;
use crate::{
    item::ItemId,
    plan::{BudgetSource, Remedy},
};

/// Returns the changes. The budget `to` would do, in the provider's tokens; items have to be less by
/// `excess`, as they are counted here. `pins` are the undroppable ones with their tokens, `longest` is an
/// item with enough text to give.
pub(super) fn find(
    context: &PlanContext<'_>,
    (to, excess): (u64, u64),
    mut pins: Vec<(ItemId, u64)>,
    longest: Option<ItemId>,
) -> Vec<Remedy> {
    let mut remedies = vec![Remedy::RaiseBudget { to }];
    remedies.extend(lower_completion(context, to));
    pins.retain(|(_, tokens)| *tokens >= excess);
    pins.sort_by_key(|(_, tokens)| *tokens);
    remedies.extend(pins.into_iter().map(|(id, _)| Remedy::Unpin { id }));
    remedies.extend(longest.map(|id| Remedy::Shorten { id, by: excess }));
    remedies
}

/// Returns the completion with which a prompt budget of `to` fits, if the budget was reduced by the
/// completion and nothing else is in the way.
fn lower_completion(context: &PlanContext<'_>, to: u64) -> Option<Remedy> {
    let limits = context.limits;
    let over = to.saturating_sub(context.prompt_budget);
    let completion = limits.max_completion_tokens.checked_sub(over).filter(|tokens| *tokens > 0)?;
    let input = to.checked_add(limits.safety_buffer)?;
    let fits = limits.max_input.is_none_or(|most| input <= most);
    let is_reduced = context.budget_source == BudgetSource::ContextLen;
    (is_reduced && fits).then_some(Remedy::LowerCompletion { to: completion })
}
