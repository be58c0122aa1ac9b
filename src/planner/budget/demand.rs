//! Demands of the sections.
//!
//! - Input: candidates, their costs, and the minimums of the sections.
//! - Output: the tokens that each section could use, up to the maximum that it may hold.
//! - Rules: B5, N5.
//!
//! A demand sums the candidates that survive repair, expiry and policy, in the order in which selection
//! offers them.

use super::SectionBudget;
use crate::{
    config::Config,
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::candidates::{CandidateId, CandidateIndex, Costs},
    provider::weight::Weight,
};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the tokens of a candidate to a sum. Counts no further than to `limit`.
fn add(sum: u64, limit: u64, costs: &Costs<'_>, id: CandidateId) -> Result<u64, Error> {
    Ok(match costs.weigh(id, limit.saturating_sub(sum))? {
        Weight::Exactly(n) => sum + n,
        Weight::Over => limit,
    })
}

/// Counts the demand of each section, up to the maximum that it may hold of `total`.
pub(super) fn count_demands(
    sections: &[SectionBudget; 3],
    total: u64,
    config: &Config,
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
) -> Result<[u64; 3], Error> {
    // Required items are part of the minimums, and a pin counts in its own section only.
    let mut paid: BTreeSet<CandidateId> = index.required_conversation.iter().copied().collect();
    let limits = sections.map(|section| section.ceiling(total));
    let [system_pinned, conversation, _] = sections.map(|section| section.minimum);
    Ok([
        pins(index, costs, limits[0], system_pinned, &mut paid)?,
        window(index, costs, limits[1], conversation, &paid)?,
        documents(config, index, costs, limits[2])?,
    ])
}

/// Counts every pin that has not expired, with the user messages that pins bring.
fn pins(
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
    minimum: u64,
    paid: &mut BTreeSet<CandidateId>,
) -> Result<u64, Error> {
    let mut sum = minimum;
    // Undroppable pins, and the messages that they bring, are in the minimum already.
    for undroppable in [true, false] {
        for pin in index.pins.iter().filter(|pin| pin.undroppable == undroppable) {
            for id in [Some(pin.id), pin.brings].into_iter().flatten() {
                if paid.insert(id) && !undroppable && sum < limit {
                    sum = add(sum, limit, costs, id)?;
                }
            }
        }
    }
    Ok(sum)
}

/// Counts the turns, newest first, without required or pinned items.
fn window(
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
    minimum: u64,
    paid: &BTreeSet<CandidateId>,
) -> Result<u64, Error> {
    let mut sum = minimum;
    for turn in TurnIndex::each(index.turns()).rev() {
        let exchanges = ExchangeIndex::each(index.exchanges(turn)).rev().map(CandidateId::Exchange);
        for id in index.head(turn).into_iter().chain(exchanges) {
            // Stops at the limit: a long conversation is not counted further than the budget reaches (N5).
            if sum >= limit {
                return Ok(sum);
            }
            if !paid.contains(&id) && costs.ineligible(id)?.is_none() {
                sum = add(sum, limit, costs, id)?;
            }
        }
    }
    Ok(sum)
}

/// Counts the documents that no policy excludes.
fn documents(
    config: &Config,
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
) -> Result<u64, Error> {
    let rules = &config.rag;
    let mut sum = 0;
    let mut items = 0;
    let mut origins: BTreeMap<u32, u64> = BTreeMap::new();
    for (rank, document) in index.competing_documents() {
        let id = CandidateId::Document(rank);
        if sum >= limit || rules.max_items.is_some_and(|most| items >= most) {
            break;
        }
        if let (Some(most), Some(origin)) = (rules.max_source_tokens, document.origin) {
            let used = origins.entry(origin).or_default();
            // `used` never exceeds `most`: a document over the rest is skipped before it is added.
            match costs.weigh(id, most - *used)? {
                Weight::Exactly(n) => *used += n,
                Weight::Over => continue,
            }
        }
        sum = add(sum, limit, costs, id)?;
        items += 1;
    }
    Ok(sum)
}
