//! Documents by rank, whole or not at all (rules S8, S9); while the live question is the same, those that were in (S5).

use super::{
    Selection,
    purse::{For, Room},
};
use crate::{
    candidates::{Pool, Scale, Unit},
    config::{Fill, RagOptions},
    error::Error,
    item::Section,
    reason::{ExcludedReason, HeldBy, IncludedReason, PolicyRule},
    tokens::Weight,
};
use std::{collections::BTreeMap, ops::Range};

/// Which room is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// The section's own budget.
    Budget,
    /// What is left over (rule B6).
    LeftOver,
}

/// Offers every document that policy lets in. What is in stays in; why the others are not is told anew.
pub(super) fn take(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    round: Round,
    rules: &RagOptions,
    chosen: &mut Selection,
) -> Result<(), Error> {
    chosen.passed_over.clear();
    if pool.steady_documents.is_some() && keep_the_set(pool, scale, room, round, rules, chosen)? {
        return Ok(());
    }
    let mut offer = Offer::new(pool, room, rules, rules.fill, chosen);
    for (unit, origin) in waiting(pool, 0..pool.documents().len(), chosen) {
        match offer.decide(scale, unit, origin)? {
            Ok(tokens) => chosen.keep(unit, Section::Rag, IncludedReason::Relevant, tokens),
            Err(reason) => drop(chosen.passed_over.insert(unit, reason)),
        }
    }
    Ok(())
}

/// The documents of the last prompt, and no others, as long as all of them fit. What must go goes from the end and in
/// bulk: down to what the section's share holds, so that it need not go again with the next step. Where not even
/// the first fits, the set is given up: says whether it held.
fn keep_the_set(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    round: Round,
    rules: &RagOptions,
    chosen: &mut Selection,
) -> Result<bool, Error> {
    let set = pool.steady_documents.map_or(0, |set| set as usize);
    let mut offer = Offer::new(pool, room, rules, Fill::Prefix, chosen);
    let (mut fitting, mut all) = (Vec::new(), true);
    for (unit, origin) in waiting(pool, 0..set, chosen) {
        match offer.decide(scale, unit, origin)? {
            Ok(tokens) => fitting.push((unit, tokens)),
            Err(ExcludedReason::Budget { .. }) => all = false,
            Err(policy) => drop(chosen.passed_over.insert(unit, policy)),
        }
    }
    let bulk = round == Round::LeftOver && !all;
    if bulk && !chosen.has_documents() && fitting.is_empty() {
        chosen.passed_over.clear();
        return Ok(false);
    }
    let mut left = room.tokens(For::Anything);
    if !bulk || !chosen.has_documents() {
        left = offer.left;
        for (unit, tokens) in fitting {
            chosen.keep(unit, Section::Rag, IncludedReason::Relevant, tokens);
        }
    }
    let held = ExcludedReason::Budget { room: left, held_by: HeldBy::SteadySet };
    for (unit, _) in waiting(pool, 0..pool.documents().len(), chosen) {
        chosen.passed_over.entry(unit).or_insert_with(|| held.clone());
    }
    Ok(true)
}

/// The documents of these ranks that policy lets in and that are not in yet, each with its origin.
fn waiting(pool: &Pool<'_>, ranks: Range<usize>, chosen: &Selection) -> Vec<(Unit, Option<u32>)> {
    let documents = ranks.map(|rank| (Unit::Document(rank as u32), &pool.documents()[rank]));
    let waiting = documents.filter(|(unit, document)| document.out.is_none() && !chosen.has(*unit));
    waiting.map(|(unit, document)| (unit, document.origin)).collect()
}

struct Offer<'a> {
    rules: &'a RagOptions,
    fill: Fill,
    room: Room,
    left: u64,
    items: u64,
    origins: BTreeMap<u32, u64>,
    /// An item did not fit, and nothing after it is tried.
    stopped: bool,
}

impl<'a> Offer<'a> {
    fn new(pool: &Pool<'_>, room: Room, rules: &'a RagOptions, fill: Fill, chosen: &Selection) -> Self {
        let left = room.tokens(For::Anything);
        let mut offer = Self { rules, fill, room, left, items: 0, origins: BTreeMap::new(), stopped: false };
        for (unit, kept) in &chosen.kept {
            if let Unit::Document(rank) = unit {
                offer.count(pool.documents()[*rank as usize].origin, kept.tokens);
            }
        }
        offer
    }

    fn count(&mut self, origin: Option<u32>, tokens: u64) {
        self.items += 1;
        if let Some(origin) = origin {
            *self.origins.entry(origin).or_default() += tokens;
        }
    }

    /// What the document costs, if it comes in; otherwise why not: policies first, then room.
    fn decide(
        &mut self,
        scale: &Scale<'_>,
        unit: Unit,
        origin: Option<u32>,
    ) -> Result<Result<u64, ExcludedReason>, Error> {
        if let Some(limit) = self.rules.max_items.filter(|limit| self.items >= *limit) {
            let rule = PolicyRule::MaxItems { limit };
            return Ok(Err(ExcludedReason::Policy(rule)));
        }
        if let (Some(limit), Some(origin)) = (self.rules.max_source_tokens, origin) {
            let used = self.origins.get(&origin).copied().unwrap_or_default();
            if scale.weigh(unit, limit.saturating_sub(used))? == Weight::Over {
                let rule = PolicyRule::MaxSourceTokens { used, limit };
                return Ok(Err(ExcludedReason::Policy(rule)));
            }
        }
        let room = self.left;
        if self.stopped {
            let held_by = HeldBy::Prefix;
            return Ok(Err(ExcludedReason::Budget { room, held_by }));
        }
        match scale.weigh(unit, room)? {
            Weight::Exactly(tokens) => {
                self.left -= tokens;
                self.count(origin, tokens);
                Ok(Ok(tokens))
            }
            Weight::Over => {
                self.stopped = self.fill == Fill::Prefix;
                let held_by = self.room.held_by(For::Anything, HeldBy::Size);
                Ok(Err(ExcludedReason::Budget { room, held_by }))
            }
        }
    }
}
