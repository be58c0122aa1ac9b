//! Pins and the walk among them, laid out once and moved from one budget to the next by their changes.
//!
//! Input: the pins and turns of a request, and the most tokens that any budget leaves. Output: pins with
//! their costs, trails with pinned messages on them, and the ends of walks. Rules: S2 to S5.

use super::{
    ManyBudgets,
    layout::beside_the_walk,
    pin_costs::LaidOutPins,
    pin_slots::PinSlots,
    trail::{Reach, Trail, WindowSteps},
    tree::Stretch,
    walk_sums::WalkSums,
};
use crate::{
    conversation::ExchangeIndex,
    error::Error,
    item::Section,
    planner::{
        candidates::CandidateId,
        select::{Pins, Room, Selection, Selector, SlotSet, Walker},
    },
    provider::weight::Weight,
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    rc::Rc,
};

/// Later walks of one budget share their sums: they are few.
const WALKS: usize = 8;

impl Selector<'_, ManyBudgets> {
    /// Returns the pins laid out. Returns `None` if they have to be looked at one by one: the walk is looked
    /// at step by step, something was included otherwise than by slots, or a candidate that comes in changes
    /// the offers to others.
    ///
    /// # Errors
    ///
    /// Counters that fail.
    pub(super) fn laid_out_pins(
        &self,
        chosen: &Selection<ManyBudgets>,
    ) -> Result<Option<Rc<LaidOutPins>>, Error> {
        let are_walked = !self.index.pins_are_notes();
        if self.walker.goal.is_some() || are_walked && chosen.included.shared.is_off_the_trail {
            return Ok(None);
        }
        if let Some(known) = self.walker.laid_out_pins.get() {
            return Ok(known.clone());
        }
        let found = self.lay_out_pins(are_walked)?;
        Ok(self.walker.laid_out_pins.get_or_init(|| found.map(Rc::new)).clone())
    }

    /// Lays the pins out with their costs, counted no further than to the most that any budget leaves.
    /// Returns `None` if a candidate that comes in changes the offers to others: an exchange after the live
    /// question ends the merging of state, and a pin that brings a user message which is no part of the walk
    /// opens its turn.
    fn lay_out_pins(&self, are_walked: bool) -> Result<Option<LaidOutPins>, Error> {
        let slots = Rc::clone(&self.walker.pins);
        let minimum: BTreeSet<CandidateId> = self.index.minimum().into_iter().map(|(id, ..)| id).collect();
        if are_walked && (!slots.is_in_order || self.may_still_follow_the_question(&minimum)?) {
            return Ok(None);
        }
        let mut required = SlotSet::default();
        let mut costs = Vec::with_capacity(slots.len());
        for (pin, slot) in self.index.pins.iter().zip(0..) {
            if minimum.contains(&pin.id) {
                required.insert_run(slot..slot + 1);
            }
            costs.push(self.tokens_up_to_most(pin.id)?);
        }
        let mut heads = Vec::with_capacity(slots.turns().len());
        for turn in slots.turns() {
            let is_required = minimum.contains(&turn.head);
            if !is_required && self.costs.ineligible(turn.head)?.is_some() {
                return Ok(None);
            }
            heads.push(if is_required { None } else { Some(self.tokens_up_to_most(turn.head)?) });
        }
        let window = match self.index.window_start.filter(|_| are_walked) {
            Some(start) => match self.lay_out_window(start, &slots)? {
                Some(window) => Some(window),
                None => return Ok(None),
            },
            None => None,
        };
        let by_offer = RefCell::default();
        Ok(Some(LaidOutPins { slots, costs, heads, required, are_walked, window, by_offer }))
    }

    /// Returns the tokens of a candidate, `u64::MAX` for more than any budget leaves.
    pub(super) fn tokens_up_to_most(&self, id: CandidateId) -> Result<u64, Error> {
        Ok(match self.costs.weigh(id, self.walker.most)? {
            Weight::Exactly(tokens) => tokens,
            Weight::Over => u64::MAX,
        })
    }

    /// Checks if state is merged into the live question until some exchange is included after it. If one is
    /// part of the minimum, state is merged at no budget.
    fn may_still_follow_the_question(&self, minimum: &BTreeSet<CandidateId>) -> Result<bool, Error> {
        if !self.index.merges_in_the_minimum() {
            return Ok(false);
        }
        let exchanges = self.index.exchanges_after_the_question().filter(|_| self.index.states() > 0);
        for id in exchanges.into_iter().flat_map(ExchangeIndex::each).map(CandidateId::Exchange) {
            if !minimum.contains(&id) && self.costs.ineligible(id)?.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lays out the last prompt's window with the pinned messages in it. Returns `None` if some of it fits no
    /// budget, or if it starts in a turn that is kept only as a whole, or of which nothing can be sent from
    /// there on.
    fn lay_out_window(&self, start: CandidateId, slots: &PinSlots) -> Result<Option<WindowSteps>, Error> {
        let minimum = self.minimum()?;
        let turn = self.index.turn_of(start);
        let exchange = match start {
            CandidateId::Exchange(at) => Some(at),
            _ => None,
        };
        if let Some(at) = exchange {
            let may_be_cut = self.index.head(turn).is_some() || self.is_one_turn();
            if !may_be_cut || !self.reaches(turn, at, &minimum)? {
                return Ok(None);
            }
        }
        let beside = beside_the_walk(&minimum).collect();
        let mut trail = Trail::with_pins(beside, Some(start));
        let end = self.lay_out_turns(u64::MAX, &minimum, &mut trail)?;
        let trail = Rc::new(trail.ending(end));
        if !self.each_from(start, &minimum, |id| Ok(trail.place(id).is_some()))? {
            return Ok(None);
        }
        let mut window = WindowSteps { trail, cut: None, before: None };
        let Some(at) = exchange else { return Ok(Some(window)) };
        let exchanges = self.index.exchanges(turn);
        let is_required = |id: CandidateId| {
            minimum.included.find(id).is_some_and(|kept| kept.section == Section::Conversation)
        };
        if !ExchangeIndex::each(at..exchanges.end).map(CandidateId::Exchange).any(is_required) {
            window.cut = window.trail.last_turn();
        }
        let mut before = SlotSet::default();
        for id in ExchangeIndex::each(exchanges.start..at).map(CandidateId::Exchange) {
            if minimum.has(id) || self.costs.ineligible(id)?.is_some() {
                continue;
            }
            let Some(slot) = slots.slot(id) else { return Ok(Some(window)) };
            before.insert_run(slot..slot + 1);
        }
        window.before = Some(before.into_runs());
        Ok(Some(window))
    }

    /// Includes the last prompt's window as the rule itself does, with pins by their slots. Returns false if
    /// it does not fit.
    pub(super) fn resume_beside_pins(
        &self,
        laid_out: &LaidOutPins,
        window: &WindowSteps,
        room: Room,
        pins: Pins,
        chosen: &mut Selection<ManyBudgets>,
    ) -> bool {
        let number = next_walk(chosen);
        let trail = &window.trail;
        let all = trail.len();
        let missing =
            |counts_pins, steps| self.missing(laid_out, trail, (number, counts_pins), chosen, steps);
        let steps = match window.cut {
            Some(cut) if missing(true, cut.exchanges()..all).count == 0 => cut.first,
            _ => all,
        };
        let needed = missing(pins == Pins::Paid, 0..steps);
        let Some(left) = room.tokens().checked_sub(needed.tokens) else {
            self.walker.too_large(room, needed.tokens - room.tokens());
            return false;
        };
        if needed.count > 0 {
            self.walker.fits(room, left);
        }
        chosen.included.pay(Section::Conversation, needed.tokens);
        chosen.included.shared.walk_to(Rc::clone(trail), steps);
        chosen.included.shared.awaits_pins = pins == Pins::Awaited;
        chosen.resumed(Vec::new(), left);
        true
    }

    /// Checks if the window waits for pins that are not included.
    pub(super) fn awaits_missing_pins(&self, chosen: &mut Selection<ManyBudgets>) -> Result<bool, Error> {
        let shared = &chosen.included.shared;
        if !shared.awaits_pins {
            return Ok(false);
        }
        let (Some(laid_out), Some((trail, steps))) = (self.laid_out_pins(chosen)?, shared.trail()) else {
            return Ok(false);
        };
        let number = shared.walks.min(WALKS);
        let [all, others] = [true, false]
            .map(|counts_pins| self.missing(&laid_out, trail, (number, counts_pins), chosen, 0..steps));
        let waits = all.count > others.count;
        chosen.included.shared.awaits_pins = waits;
        Ok(waits)
    }

    /// Sums these steps as far as they are not included, with excluded pins or without.
    fn missing(
        &self,
        laid_out: &LaidOutPins,
        trail: &Rc<Trail>,
        key: (usize, bool),
        chosen: &Selection<ManyBudgets>,
        steps: Range<usize>,
    ) -> Stretch {
        let mut known = self.walker.sums.borrow_mut();
        let pins = chosen.included.shared.pin_slots();
        sums_of(&mut known, key, trail, &laid_out.slots, pins).missing(steps.start, steps.end)
    }

    /// Finds the end of the walk beside the pins that are included by their slots. Returns `None` if it
    /// cannot be found so: then they are included one by one.
    pub(super) fn walk_beside_pins(
        &self,
        pins: &LaidOutPins,
        room: u64,
        chosen: &mut Selection<ManyBudgets>,
    ) -> Option<Reach> {
        let number = next_walk(chosen);
        let found = self.reach_beside_pins(pins, room, number, chosen);
        if found.is_none() {
            chosen.included.leave_the_slots();
        }
        found
    }

    fn reach_beside_pins(
        &self,
        pins: &LaidOutPins,
        room: u64,
        number: usize,
        chosen: &Selection<ManyBudgets>,
    ) -> Option<Reach> {
        let shared = &chosen.included.shared;
        let from = shared.trail().map_or(0, |(_, steps)| steps);
        let mut known = self.walker.sums.borrow_mut();
        let mut walk = |trail: &Rc<Trail>, ends_whole| {
            sums_of(&mut known, (number, true), trail, &pins.slots, shared.pin_slots())
                .walk(from, room, ends_whole)
        };
        if let Some(window) = &pins.window {
            return walk(&window.trail, window.has_whole_turn(shared.pin_slots()));
        }
        let laid_out = self.walker.beside_pins.borrow().clone();
        let mut trail = match laid_out {
            Some(trail) => trail,
            None => self.lay_out_with_pins(room.max(1), beside_the_walk(chosen).collect()),
        };
        loop {
            if let Some(reach) = walk(&trail, false) {
                return Some(reach);
            }
            let room = trail.laid_out_for()?.saturating_add(room);
            trail = self.lay_out_with_pins(room, trail.beside.clone());
        }
    }

    /// Lays out the walk beside the minimum, with the pinned messages on it.
    fn lay_out_with_pins(&self, room: u64, beside: Vec<CandidateId>) -> Rc<Trail> {
        let trail = Rc::new(self.lay_out(room, Trail::with_pins(beside, None)));
        *self.walker.beside_pins.borrow_mut() = Some(Rc::clone(&trail));
        trail
    }
}

/// Returns the number of the next walk of a budget.
fn next_walk(chosen: &mut Selection<ManyBudgets>) -> usize {
    let walks = &mut chosen.included.shared.walks;
    *walks += 1;
    (*walks - 1).min(WALKS)
}

/// Returns the sums of a walk with these pins included.
fn sums_of<'s>(
    known: &'s mut BTreeMap<(usize, bool), WalkSums>,
    (number, counts_pins): (usize, bool),
    trail: &Rc<Trail>,
    slots: &PinSlots,
    pins: &SlotSet,
) -> &'s mut WalkSums {
    let build = || WalkSums::new(Rc::clone(trail), slots, pins.clone(), counts_pins);
    let sums = known.entry((number, counts_pins)).or_insert_with(build);
    if sums.is_along(trail) {
        sums.move_to(pins, slots);
    } else {
        *sums = build();
    }
    sums
}
