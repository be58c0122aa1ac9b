//! What each section could use (rule B5): what survives repair, expiry and policy, summed in walk order and no
//! further than to what the section may hold.

use super::SectionBudget;
use crate::{
    config::Config,
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::candidates::{CandidateId, CandidateIndex, Costs},
    provider::weight::Weight,
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

    /// Adds a candidate, counting no further than to the limit.
    fn add(&mut self, costs: &Costs<'_>, id: CandidateId) -> Result<(), Error> {
        match costs.weigh(id, self.limit.saturating_sub(self.n))? {
            Weight::Exactly(n) => self.n += n,
            Weight::Over => self.n = self.limit,
        }
        Ok(())
    }
}

/// The demands of the sections, each no further than to what it may hold of `total`.
pub(super) fn of(
    sections: &[SectionBudget; 3],
    total: u64,
    config: &Config,
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
) -> Result<[u64; 3], Error> {
    let mut paid: BTreeSet<CandidateId> = index.required_conversation.iter().copied().collect();
    let limits = sections.map(|section| section.ceiling(total));
    let [system_pinned, conversation, _] = sections.map(|section| section.minimum);
    Ok([
        pins(index, costs, limits[0], system_pinned, &mut paid)?,
        window(index, costs, limits[1], conversation, &paid)?,
        documents(config, index, costs, limits[2])?,
    ])
}

/// Every pin that is alive, and the user messages that come with them.
fn pins(
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
    minimum: u64,
    paid: &mut BTreeSet<CandidateId>,
) -> Result<u64, Error> {
    let mut sum = Sum::up_to(limit, minimum);
    // What undroppable pins bring is in the minimum already.
    for undroppable in [true, false] {
        for pin in index.pins.iter().filter(|pin| pin.undroppable == undroppable) {
            for id in [Some(pin.id), pin.brings].into_iter().flatten() {
                if paid.insert(id) && !undroppable && !sum.full() {
                    sum.add(costs, id)?;
                }
            }
        }
    }
    Ok(sum.n)
}

/// The turns, newest first, without what is required or pinned.
fn window(
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
    minimum: u64,
    paid: &BTreeSet<CandidateId>,
) -> Result<u64, Error> {
    let mut sum = Sum::up_to(limit, minimum);
    for turn in TurnIndex::each(index.turns()).rev() {
        let exchanges = ExchangeIndex::each(index.exchanges(turn)).rev().map(CandidateId::Exchange);
        for id in index.head(turn).into_iter().chain(exchanges) {
            if sum.full() {
                return Ok(sum.n);
            }
            if !paid.contains(&id) && costs.ineligible(id)?.is_none() {
                sum.add(costs, id)?;
            }
        }
    }
    Ok(sum.n)
}

/// The documents that policy would let in.
fn documents(
    config: &Config,
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
) -> Result<u64, Error> {
    let rules = &config.rag;
    let mut sum = Sum::up_to(limit, 0);
    let mut items = 0;
    let mut origins: BTreeMap<u32, u64> = BTreeMap::new();
    for (rank, document) in index.competing_documents() {
        let id = CandidateId::Document(rank);
        if sum.full() || rules.max_items.is_some_and(|most| items >= most) {
            break;
        }
        if let (Some(most), Some(origin)) = (rules.max_source_tokens, document.origin) {
            let used = origins.entry(origin).or_default();
            match costs.weigh(id, most - *used)? {
                Weight::Exactly(n) => *used += n,
                Weight::Over => continue,
            }
        }
        sum.add(costs, id)?;
        items += 1;
    }
    Ok(sum.n)
}
