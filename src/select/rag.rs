//! Documents by rank, whole or not at all (rules S8, S9).

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
use std::collections::BTreeMap;

/// Offers every document that policy lets in. What is in stays in; why the others are not is told anew.
pub(super) fn take(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    rules: &RagOptions,
    chosen: &mut Selection,
) -> Result<(), Error> {
    let mut offer = Offer::new(pool, room, rules, chosen);
    chosen.passed_over.clear();
    for (rank, document) in pool.documents().iter().enumerate() {
        let unit = Unit::Document(rank as u32);
        if document.out.is_some() || chosen.has(unit) {
            continue;
        }
        match offer.decide(scale, unit, document.origin)? {
            Ok(tokens) => chosen.keep(unit, Section::Rag, IncludedReason::Relevant, tokens),
            Err(reason) => drop(chosen.passed_over.insert(unit, reason)),
        }
    }
    Ok(())
}

struct Offer<'a> {
    rules: &'a RagOptions,
    room: Room,
    left: u64,
    items: u64,
    origins: BTreeMap<u32, u64>,
    /// An item did not fit, and nothing after it is tried.
    stopped: bool,
}

impl<'a> Offer<'a> {
    fn new(pool: &Pool<'_>, room: Room, rules: &'a RagOptions, chosen: &Selection) -> Self {
        let mut offer = Self {
            rules,
            room,
            left: room.tokens(For::Anything),
            items: 0,
            origins: BTreeMap::new(),
            stopped: false,
        };
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
                self.stopped = self.rules.fill == Fill::Prefix;
                let held_by = self.room.held_by(For::Anything, HeldBy::Size);
                Ok(Err(ExcludedReason::Budget { room, held_by }))
            }
        }
    }
}
