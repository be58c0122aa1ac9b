//! Selection of pins in order, then of rules of the user. One that does not fit is passed over, and smaller
//! ones are still tried.
//!
//! - Input: the pins in the order of rule S2, and a room.
//! - Output: the included pins, and the reasons of the others.
//! - Rules: S2, S3, R3, B6.
//!
//! Pins are offered all tokens that the minimum leaves, up to their limit, then the rest of their section's
//! budget, then the free tokens. A pin that does not fit or cannot be sent has one of four outcomes:
//!
//! - A droppable note is excluded, and a notice reports it.
//! - A droppable message or exchange becomes an ordinary one. The walk may still include it, paid for by
//!   `conversation`.
//! - An undroppable pin (`Ttl::Unlimited`) is part of the minimum and always included. The plan overflows if
//!   the minimum exceeds the budget (S6).
//! - A pin that has expired or can never be sent is in `CandidateIndex::ineligible_pins`, and is never tried.

use super::{Inclusion, Room, Selection, Selector, Walker};
use crate::{
    error::Error,
    plan::reason::{ExcludedReason, LimitedBy},
    planner::candidates::{CandidateId, Pin},
    provider::weight::Weight,
};
use smallvec::SmallVec;

impl<W: Walker> Selector<'_, W> {
    /// Offers a room to every pin that is not included. Replaces the reasons of excluded pins.
    pub(super) fn offer_to_pins(&self, room: Room, chosen: &mut Selection<W>) -> Result<(), Error> {
        chosen.reasons.pins.clear();
        if self.walker.offer_pins(self, room, chosen)? {
            return Ok(());
        }
        let mut spent = 0;
        let (pins, rules) = self.index.pins.split_at(self.index.first_rule());
        // Once something follows the live question, state is no longer merged into it, and the saved tokens
        // are gone for all later pins.
        let mut followed = false;
        for pin in pins {
            if chosen.has(pin.id) {
                continue;
            }
            let ids = missing(pin, chosen);
            let follows = self.index.follows_the_question(pin.id);
            let offered = if follows || followed { room.without_merge() } else { room };
            let left = offered.tokens().saturating_sub(spent);
            // A pin and its user message are included together or not at all (S3).
            match self.all_or_none(&ids, left, offered)? {
                Some(costs) => {
                    followed |= follows;
                    for (id, tokens) in ids.into_iter().zip(costs) {
                        spent += tokens;
                        chosen.included.keep(id, Inclusion::PINNED, tokens);
                    }
                }
                None => {
                    let limited_by = offered.limited_by(LimitedBy::Size);
                    chosen.reasons.pins.insert(pin.id, ExcludedReason::Budget { room: left, limited_by });
                }
            }
        }
        if !rules.is_empty() && chosen.reasons.pins.is_empty() {
            let room = if followed { room.without_merge() } else { room };
            return self.offer_rest_to_rules(room, spent, chosen);
        }
        // A pin is left out, so the rules wait for the tokens that it cannot use.
        Ok(())
    }

    /// Offers a room to every rule of the user that is not included (rule R3). Replaces the reasons of
    /// excluded rules.
    pub(super) fn offer_to_rules(&self, room: Room, chosen: &mut Selection<W>) -> Result<(), Error> {
        self.offer_rest_to_rules(room, 0, chosen)
    }

    /// Offers a room to every rule of the user that is not included. Pins of the same offer have taken
    /// `spent` tokens of it.
    fn offer_rest_to_rules(&self, room: Room, spent: u64, chosen: &mut Selection<W>) -> Result<(), Error> {
        let rules = &self.index.pins[self.index.first_rule()..];
        let mut taken = 0u64;
        for rule in rules.iter().filter(|rule| chosen.has(rule.id)) {
            taken = taken.saturating_add(self.costs.whole(rule.id)?);
        }
        let mut spent = spent;
        for rule in rules {
            if chosen.has(rule.id) {
                continue;
            }
            let limit = self.config.compaction.rules_limit.saturating_sub(taken);
            let offered = room.for_rules(limit.saturating_add(spent));
            let left = offered.tokens().saturating_sub(spent);
            match self.offer(rule.id, left, offered)? {
                Weight::Exactly(tokens) => {
                    (spent, taken) = (spent + tokens, taken + tokens);
                    chosen.included.keep(rule.id, Inclusion::RULE, tokens);
                    chosen.reasons.pins.remove(&rule.id);
                }
                Weight::Over => {
                    let limited_by = offered.limited_by(LimitedBy::Size);
                    chosen.reasons.pins.insert(rule.id, ExcludedReason::Budget { room: left, limited_by });
                }
            }
        }
        Ok(())
    }

    /// Returns the tokens of each candidate if all of them fit. Returns `None` otherwise.
    fn all_or_none(
        &self,
        ids: &[CandidateId],
        tokens: u64,
        room: Room,
    ) -> Result<Option<SmallVec<[u64; 2]>>, Error> {
        let mut left = tokens;
        let mut costs = SmallVec::new();
        for id in ids {
            match self.offer(*id, left, room)? {
                Weight::Exactly(n) => {
                    left -= n;
                    costs.push(n);
                }
                Weight::Over => return Ok(None),
            }
        }
        Ok(Some(costs))
    }
}

/// Returns the pin and the user message that it brings, without those that are included already.
fn missing<W: Walker>(pin: &Pin, chosen: &Selection<W>) -> SmallVec<[CandidateId; 2]> {
    let ids = [Some(pin.id), pin.brings].into_iter().flatten();
    ids.filter(|id| !chosen.has(*id)).collect()
}
