//! Documents by rank, whole or not at all (rules S8, S9); while the live question is the same, those that were in (S5).

use super::{
    Selection,
    purse::{For, Room},
};
use crate::{
    config::{RagFill, RagOptions},
    error::Error,
    plan::reason::{ExcludedReason, HeldBy, PolicyRule},
    planner::candidates::{List, Pool, Quantity, Scale, Unit},
    tokens::Weight,
};
use std::{collections::BTreeMap, ops::Range};

/// Offers every document that policy lets in, or those that stay with their question. What is in stays in; why the
/// others are not is told anew.
pub(super) fn take(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    rules: &RagOptions,
    chosen: &mut Selection,
) -> Result<(), Error> {
    chosen.passed_over.clear();
    if pool.sticky_documents.is_some() {
        let set = Set::offered(pool, scale, room, rules, chosen)?;
        if set.all || !chosen.has_documents() {
            // Where nothing of it is in yet, as many as fit from the front, or no set at all.
            chosen.gave_up_the_set = set.fitting.is_empty() && !chosen.has_documents();
            set.keep(pool, chosen);
        } else {
            chosen.passed_over.extend(set.by_policy);
            hold_the_others(pool, room.tokens(For::Anything), chosen);
        }
        return Ok(());
    }
    if rules.max_items.is_none() && rules.max_source_tokens.is_none() {
        return fill_up(pool, scale, room, rules.fill, chosen);
    }
    let mut offer = Offer::new(pool, scale, room, rules, rules.fill, chosen)?;
    for Waiting { place, unit, origin } in waiting(pool, 0..pool.places(), chosen) {
        match offer.decide(scale, unit, origin)? {
            Ok(tokens) => chosen.keep_document(place, tokens),
            Err(reason) => drop(chosen.passed_over.insert(unit, reason)),
        }
    }
    Ok(())
}

/// Where nothing but room decides.
fn fill_up(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    room: Room,
    fill: RagFill,
    chosen: &mut Selection,
) -> Result<(), Error> {
    let sizes = scale.sizes(List::Documents)?;
    let filled = chosen.documents.fill(&sizes, room.tokens(For::Anything), fill)?;
    scale.trace(|trace| filled.note(trace, room.basis(For::Anything)));
    chosen.documents.extend(&filled);
    chosen.pay_for_documents(filled.tokens);
    if scale.is_traced() {
        return Ok(());
    }
    for (range, left) in filled.passed_over {
        let first = range.start;
        for Waiting { place, unit, .. } in waiting(pool, range, chosen) {
            let held_by = match fill {
                RagFill::Prefix if place > first => HeldBy::Prefix,
                _ => room.held_by(For::Anything, HeldBy::Size),
            };
            chosen.passed_over.insert(unit, ExcludedReason::Budget { room: left, held_by });
        }
    }
    Ok(())
}

/// The first offer, of the section's own budget. The documents that stay with their question are in if all of them fit.
/// What must go goes from the end and in bulk: down to what the section's `share` holds, which is what it is left with
/// however much the other sections come to need, so that nothing need go again with the next step.
pub(super) fn take_within(
    pool: &Pool<'_>,
    scale: &Scale<'_>,
    budget: u64,
    share: u64,
    rules: &RagOptions,
    chosen: &mut Selection,
) -> Result<(), Error> {
    let room = Room::of(budget, Quantity::Rag);
    if pool.sticky_documents.is_none() {
        return take(pool, scale, room, rules, chosen);
    }
    let mut set = Set::offered(pool, scale, room, rules, chosen)?;
    if !set.all {
        let room = Room::of(share, Quantity::Share);
        set = Set::offered(pool, scale, room, rules, chosen)?;
    }
    set.keep(pool, chosen);
    Ok(())
}

/// What of the last prompt's documents fits into a room, from the front.
struct Set {
    /// Their places, and what they cost.
    fitting: Vec<(u32, u64)>,
    /// Whether that is all that policy lets in.
    all: bool,
    by_policy: Vec<(Unit, ExcludedReason)>,
    left: u64,
}

impl Set {
    fn offered(
        pool: &Pool<'_>,
        scale: &Scale<'_>,
        room: Room,
        rules: &RagOptions,
        chosen: &Selection,
    ) -> Result<Self, Error> {
        let ranks = pool.sticky_documents.unwrap_or(0);
        let places = (0..pool.places()).take_while(|place| pool.rank_at(*place) < ranks).count();
        let mut offer = Offer::new(pool, scale, room, rules, RagFill::Prefix, chosen)?;
        let mut set = Self { fitting: Vec::new(), all: true, by_policy: Vec::new(), left: 0 };
        for Waiting { place, unit, origin } in waiting(pool, 0..places as u32, chosen) {
            match offer.decide(scale, unit, origin)? {
                Ok(tokens) => set.fitting.push((place, tokens)),
                Err(ExcludedReason::Budget { .. }) => set.all = false,
                Err(policy) => set.by_policy.push((unit, policy)),
            }
        }
        set.left = offer.left;
        Ok(set)
    }

    fn keep(self, pool: &Pool<'_>, chosen: &mut Selection) {
        for (place, tokens) in self.fitting {
            chosen.keep_document(place, tokens);
        }
        chosen.passed_over.extend(self.by_policy);
        hold_the_others(pool, self.left, chosen);
    }
}

/// What is not in is held back by what is.
fn hold_the_others(pool: &Pool<'_>, left: u64, chosen: &mut Selection) {
    let held = ExcludedReason::Budget { room: left, held_by: HeldBy::StickyDocuments };
    for Waiting { unit, .. } in waiting(pool, 0..pool.places(), chosen) {
        chosen.passed_over.entry(unit).or_insert_with(|| held.clone());
    }
}

/// A document that policy lets in and that is not in yet.
struct Waiting {
    place: u32,
    unit: Unit,
    origin: Option<u32>,
}

/// The documents at these places that are not in yet.
fn waiting(pool: &Pool<'_>, places: Range<u32>, chosen: &Selection) -> Vec<Waiting> {
    let waiting = |place: u32| {
        let rank = pool.rank_at(place);
        Waiting { place, unit: Unit::Document(rank), origin: pool.documents()[rank as usize].origin }
    };
    places.filter(|place| !chosen.documents.has(*place)).map(waiting).collect()
}

struct Offer<'a> {
    rules: &'a RagOptions,
    fill: RagFill,
    room: Room,
    left: u64,
    items: u64,
    origins: BTreeMap<u32, u64>,
    /// An item did not fit, and nothing after it is tried.
    stopped: bool,
}

impl<'a> Offer<'a> {
    fn new(
        pool: &Pool<'_>,
        scale: &Scale<'_>,
        room: Room,
        rules: &'a RagOptions,
        fill: RagFill,
        chosen: &Selection,
    ) -> Result<Self, Error> {
        let left = room.tokens(For::Anything);
        let mut offer = Self { rules, fill, room, left, items: 0, origins: BTreeMap::new(), stopped: false };
        for place in chosen.documents.iter() {
            let rank = pool.rank_at(place);
            let origin = pool.documents()[rank as usize].origin;
            offer.count(origin, scale.whole(Unit::Document(rank))?);
        }
        Ok(offer)
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
        match scale.offer(unit, room, self.room.basis(For::Anything))? {
            Weight::Exactly(tokens) => {
                self.left -= tokens;
                self.count(origin, tokens);
                Ok(Ok(tokens))
            }
            Weight::Over => {
                self.stopped = self.fill == RagFill::Prefix;
                let held_by = self.room.held_by(For::Anything, HeldBy::Size);
                Ok(Err(ExcludedReason::Budget { room, held_by }))
            }
        }
    }
}
