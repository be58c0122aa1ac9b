//! Pins in order; one that does not fit is passed over and smaller ones are still tried (rules S2, S3).
//!
//! They are offered all that the minimum leaves, up to their limit, then what is left of their section's budget, then what
//! is free (rule B6).
//!
//! A pin that does not fit, or cannot be sent, has one of four outcomes:
//!
//! - a droppable note is excluded, and a notice says so
//! - a droppable message or exchange becomes an ordinary one: the walk may still include it, paid for by `conversation`
//! - an undroppable pin (`Ttl::Unlimited`) is part of the minimum: it is always included, and the plan overflows if the
//!   minimum exceeds the budget (rule S6)
//! - a pin that has expired or can never be sent is in `CandidateIndex::ineligible_pins` and is never tried

use super::{
    PassedOver, Selection, Selector,
    pin_fill::{InBefore, LaidOutPins},
    room::{AfterQuestion, Room},
};
use crate::{
    config::RagFill,
    error::Error,
    item::Section,
    plan::reason::{ExcludedReason, IncludedReason, LimitedBy},
    planner::{
        candidates::{CandidateId, List, Pin},
        observer::{Constraint, Observer},
    },
    provider::weight::Weight,
};
use smallvec::SmallVec;
use std::rc::Rc;

impl<O: Observer> Selector<'_, O> {
    /// Offers every pin what the room holds. What is in stays in; the reasons of the others are replaced.
    pub(super) fn take_pins(&self, room: Room, chosen: &mut Selection) -> Result<(), Error> {
        chosen.dropped_pins.clear();
        if self.index.pins_are_notes() {
            return self.fill_with_notes(room, chosen);
        }
        if let Some(pins) = self.laid_out_pins(chosen)? {
            self.fill_by_slots(&pins, room, chosen);
            return Ok(());
        }
        let mut spent = 0;
        // Once something follows the live question, what merging state into it would save is gone for the rest too.
        let mut followed = false;
        for pin in &self.index.pins {
            if chosen.has(pin.id) {
                continue;
            }
            let ids = missing(pin, chosen);
            let follows = self.index.follows_the_question(pin.id);
            let after = if follows || followed { AfterQuestion::Yes } else { AfterQuestion::No };
            let left = room.tokens(after).saturating_sub(spent);
            match self.all_or_none(&ids, left, room.constraint(after))? {
                Some(costs) => {
                    followed |= follows;
                    for (id, tokens) in ids.into_iter().zip(costs) {
                        spent += tokens;
                        chosen.keep(id, Section::SystemPinned, IncludedReason::Pinned, tokens);
                    }
                }
                None => {
                    let limited_by = room.limited_by(after, LimitedBy::Size);
                    let reason = ExcludedReason::Budget { room: left, limited_by };
                    chosen.dropped_pins.insert(pin.id, reason);
                }
            }
        }
        Ok(())
    }

    /// Where all pins are notes: none brings anything along, and none follows the live question.
    fn fill_with_notes(&self, room: Room, chosen: &mut Selection) -> Result<(), Error> {
        if chosen.pins.is_empty() {
            for slot in &self.index.undroppable {
                chosen.pins.insert(*slot);
            }
        }
        let sizes = self.costs.sizes(List::Notes)?;
        let filled = chosen.pins.offer_all(&sizes, room.tokens(AfterQuestion::No), RagFill::Backfill)?;
        filled.tell(self.observer, room.constraint(AfterQuestion::No));
        chosen.pins.extend(&filled);
        let is_one_budget = self.costs.most().is_none();
        if !is_one_budget {
            chosen.pay_for_pins(filled.tokens);
        }
        for slot in filled.runs.into_iter().flatten().take_while(|_| is_one_budget) {
            let id = self.index.pins[slot as usize].id;
            chosen.keep(id, Section::SystemPinned, IncludedReason::Pinned, self.costs.whole(id)?);
        }
        let limited_by = room.limited_by(AfterQuestion::No, LimitedBy::Size);
        chosen.notes_passed_over = PassedOver::all(filled.passed_over, limited_by, limited_by);
        Ok(())
    }

    /// Offers the room to the pins that are laid out for many budgets.
    fn fill_by_slots(&self, pins: &LaidOutPins, room: Room, chosen: &mut Selection) {
        if chosen.offers == 0 {
            chosen.pins = pins.costs.required.clone();
        }
        let walked = chosen.kept.trail().map(|(trail, steps)| (Rc::clone(trail), steps));
        let awaits_pins = chosen.kept.awaits_pins();
        let mut is_in = InBefore { pins: std::mem::take(&mut chosen.pins), walked, awaits_pins };
        let filled = pins.offer(chosen.offers, room.tokens(AfterQuestion::No), &mut is_in);
        filled.tell(self.observer, room.constraint(AfterQuestion::No));
        chosen.offers += 1;
        chosen.kept.keep_pins(Rc::clone(&pins.slots), is_in.pins.clone());
        chosen.pins = is_in.pins;
        chosen.pay_for_pins(filled.tokens);
    }

    /// What each costs, if all of them fit.
    fn all_or_none(
        &self,
        ids: &[CandidateId],
        tokens: u64,
        constraint: Constraint,
    ) -> Result<Option<SmallVec<[u64; 2]>>, Error> {
        let mut left = tokens;
        let mut costs = SmallVec::new();
        for id in ids {
            match self.offer(*id, left, constraint)? {
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

/// The pin and the user message it brings, as far as they are not in.
fn missing(pin: &Pin, chosen: &Selection) -> SmallVec<[CandidateId; 2]> {
    let ids = [Some(pin.id), pin.brings].into_iter().flatten();
    ids.filter(|id| !chosen.has(*id)).collect()
}
