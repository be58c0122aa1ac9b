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
    plan::reason::PolicyRule,
    planner::candidates::{CandidateId, CandidateIndex, Costs, Document, Shorter, TakenDocuments},
    provider::weight::Weight,
};
use std::collections::BTreeSet;

/// Adds the tokens of a candidate to a sum. Counts no further than to `limit`.
fn add(sum: u64, limit: u64, costs: &Costs<'_>, id: CandidateId) -> Result<u64, Error> {
    Ok(match costs.weigh(id, limit.saturating_sub(sum))? {
        Weight::Exactly(n) => sum + n,
        Weight::Over => limit,
    })
}

/// Counts the demand of each section, up to the maximum that it may hold of `total`, and that of recalled
/// messages, which the section of documents does not contain.
pub(super) fn count_demands(
    sections: &[SectionBudget; 3],
    total: u64,
    config: &Config,
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
) -> Result<([u64; 3], u64), Error> {
    // Required items are part of the minimums, and a pin counts in its own section only.
    let mut paid: BTreeSet<CandidateId> = index.required_conversation.iter().copied().collect();
    let limits = sections.map(|section| section.ceiling(total));
    let [system_pinned, conversation, _] = sections.map(|section| section.minimum);
    let pins = pins(index, costs, limits[0], system_pinned, &mut paid)?;
    let left_for_rules = limits[0].saturating_sub(pins).min(config.compaction.rules_limit);
    let pins = pins + rules(index, costs, left_for_rules)?;
    let window = window(index, costs, limits[1], conversation, &paid)?;
    // Between cuts, recalled messages take no tokens from the window (rule S15).
    let counts_recalled = costs.rendering().counts_recalled;
    let recalled = if counts_recalled { documents(true, config, index, costs, limits[2])? } else { 0 };
    Ok(([pins, window, documents(false, config, index, costs, limits[2])?], recalled))
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
        for pin in index.pins.iter().filter(|pin| pin.undroppable == undroppable && !pin.is_rule) {
            for id in [Some(pin.id), pin.brings].into_iter().flatten() {
                if paid.insert(id) && !undroppable && sum < limit {
                    sum = add(sum, limit, costs, id)?;
                }
            }
        }
    }
    Ok(sum)
}

/// Counts the user's rules that may be sent, up to their limit (rule R3).
fn rules(index: &CandidateIndex<'_>, costs: &Costs<'_>, limit: u64) -> Result<u64, Error> {
    let rules = &index.pins[index.first_rule()..];
    rules.iter().try_fold(0, |sum, rule| if sum < limit { add(sum, limit, costs, rule.id) } else { Ok(sum) })
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
        for id in index.user_message(turn).into_iter().chain(exchanges) {
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

/// Counts the documents that no policy excludes, without near-duplicates of earlier ones and without
/// dependents: the recalled messages, or the others.
fn documents(
    are_recalled: bool,
    config: &Config,
    index: &CandidateIndex<'_>,
    costs: &Costs<'_>,
    limit: u64,
) -> Result<u64, Error> {
    let rules = &config.rag;
    let mut sum = 0;
    let mut taken = TakenDocuments::default();
    let counts = |one: &Document| one.is_recalled == are_recalled && one.required.is_none();
    for (rank, _) in index.competing_documents().filter(|(_, one)| counts(one)) {
        if sum >= limit {
            break;
        }
        match taken.limit_of_items(rank, rules, costs) {
            Some(PolicyRule::MaxItems { .. }) => break,
            Some(_) => continue,
            None => {}
        }
        let Some((form, neighbours)) = taken.fullest_within_limits(rank, rules, costs)? else { continue };
        if taken.near_duplicate(rank, rules, costs).is_some() {
            continue;
        }
        let Weight::Exactly(tokens) = costs.weigh_beside((rank, form), neighbours, limit - sum)? else {
            return Ok(limit);
        };
        sum += tokens;
        taken.take(rank, tokens, neighbours, rules, costs);
        if form != costs.document(rank).fullest() {
            taken.shorten(rank, Shorter { form, fuller: None });
        }
    }
    Ok(sum)
}
