//! Single changes that make an overflowing plan fit (rule S6), the cheapest first.

use crate::{
    item::ItemId,
    model::Limits,
    plan::{BudgetSource, Remedy},
};

/// One item of a minimum.
pub(crate) struct Load {
    pub(crate) id: ItemId,
    pub(crate) tokens: u64,
    /// It is there only because it is an undroppable pin.
    pub(crate) pin: bool,
    /// Tokens of its text, which could be fewer.
    pub(crate) text: u64,
}

pub(crate) fn find(
    total: u64,
    excess: u64,
    limits: Limits,
    source: BudgetSource,
    loads: &[Load],
) -> Vec<Remedy> {
    let mut remedies = vec![Remedy::RaiseBudget { to: total }];
    remedies.extend(lower_completion(total, excess, limits, source));
    let mut pins: Vec<&Load> = loads.iter().filter(|load| load.pin && load.tokens >= excess).collect();
    pins.sort_by_key(|load| load.tokens);
    remedies.extend(pins.into_iter().map(|load| Remedy::Unpin { id: load.id.clone() }));
    let longest = loads.iter().max_by_key(|load| load.text);
    remedies.extend(
        longest
            .filter(|load| load.text > excess)
            .map(|load| Remedy::Shorten { id: load.id.clone(), by: excess }),
    );
    remedies
}

/// The completion may shrink where it is what the budget was reduced by, and nothing else is in the way.
fn lower_completion(total: u64, excess: u64, limits: Limits, source: BudgetSource) -> Option<Remedy> {
    let to = limits.max_completion.checked_sub(excess).filter(|to| *to > 0)?;
    let input = total.checked_add(limits.safety_buffer)?;
    let fits = limits.max_input.is_none_or(|most| input <= most);
    (source == BudgetSource::ContextLen && fits).then_some(Remedy::LowerCompletion { to })
}
