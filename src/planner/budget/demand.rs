//! What each section could use (rule B5): what survives repair, expiry and policy, summed in walk order and no
//! further than to what the section may hold.

use super::{Pot, ceiling};
use crate::{
    config::Config,
    error::Error,
    planner::candidates::{Pool, Scale, Unit},
    tokens::Weight,
};
use std::collections::{BTreeMap, BTreeSet};

/// A sum that stops counting at its limit.
struct Sum {
    n: u64,
    limit: u64,
}

impl Sum {
    fn up_to(limit: u64, from: u64) -> Self {
        Self { n: from, limit }
    }

    fn full(&self) -> bool {
        self.n >= self.limit
    }

    /// Adds a unit, counting no further than to the limit.
    fn add(&mut self, scale: &Scale<'_>, unit: Unit) -> Result<(), Error> {
        match scale.weigh(unit, self.limit.saturating_sub(self.n))? {
            Weight::Exactly(n) => self.n += n,
            Weight::Over => self.n = self.limit,
        }
        Ok(())
    }
}

/// The demands of the pots, each no further than to what it may hold of `total`.
pub(super) fn of(
    pots: &[Pot; 3],
    total: u64,
    config: &Config,
    pool: &Pool<'_>,
    scale: &Scale<'_>,
) -> Result<[u64; 3], Error> {
    let mut paid: BTreeSet<Unit> = pool.required_conversation.iter().copied().collect();
    let limits = pots.map(|pot| ceiling(&pot, total));
    let [system_pinned, conversation, _] = pots.map(|pot| pot.minimum);
    Ok([
        pins(pool, scale, limits[0], system_pinned, &mut paid)?,
        window(scale, limits[1], conversation, &paid)?,
        documents(config, pool, scale, limits[2])?,
    ])
}

/// Every pin that is alive, and the user messages that come with them.
fn pins(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    limit: u64,
    minimum: u64,
    paid: &mut BTreeSet<Unit>,
) -> Result<u64, Error> {
    let mut sum = Sum::up_to(limit, minimum);
    // Whole units of undroppable pins are in the minimum already.
    for undroppable in [true, false] {
        for pin in pool.pins.iter().filter(|pin| pin.undroppable == undroppable) {
            for unit in [Some(pin.unit), pin.brings].into_iter().flatten() {
                if paid.insert(unit) && !undroppable && !sum.full() {
                    sum.add(scale, unit)?;
                }
            }
        }
    }
    Ok(sum.n)
}

/// The turns, newest first, without what is required or pinned.
fn window(scale: &Scale<'_>, limit: u64, minimum: u64, paid: &BTreeSet<Unit>) -> Result<u64, Error> {
    let mut sum = Sum::up_to(limit, minimum);
    for turn in (0..scale.turns()).rev() {
        let exchanges = scale.exchanges(turn).rev().map(Unit::Exchange);
        for unit in scale.head(turn).into_iter().chain(exchanges) {
            if sum.full() {
                return Ok(sum.n);
            }
            if !paid.contains(&unit) && scale.dead(unit)?.is_none() {
                sum.add(scale, unit)?;
            }
        }
    }
    Ok(sum.n)
}

/// The documents that policy would let in.
fn documents(config: &Config, pool: &Pool<'_>, scale: &Scale<'_>, limit: u64) -> Result<u64, Error> {
    let rules = &config.rag;
    let mut sum = Sum::up_to(limit, 0);
    let mut items = 0;
    let mut origins: BTreeMap<u32, u64> = BTreeMap::new();
    for (unit, document) in pool.competing_documents() {
        if sum.full() || rules.max_items.is_some_and(|most| items >= most) {
            break;
        }
        if let (Some(most), Some(origin)) = (rules.max_source_tokens, document.origin) {
            let used = origins.entry(origin).or_default();
            match scale.weigh(unit, most - *used)? {
                Weight::Exactly(n) => *used += n,
                Weight::Over => continue,
            }
        }
        sum.add(scale, unit)?;
        items += 1;
    }
    Ok(sum.n)
}
