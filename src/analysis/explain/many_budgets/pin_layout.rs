//! Pins and the walk among them, laid out once and updated from one budget to the next.
//!
//! Input: the pins and turns of a request, and the largest number of tokens that any budget leaves. Output:
//! pins with their costs, trails with pinned messages on them, and the ends of walks. Rules: pins,
//! conversation and sticky window (S2 to S5).

use super::{
    ManyBudgets,
    layout::included_apart,
    pin_costs::LaidOutPins,
    pin_slots::PinSlots,
    trail::{Trail, WalkEnd, WindowSteps},
    tree::Stretch,
    walk_sums::WalkSums,
};
use crate::{
    conversation::ExchangeIndex,
    error::Error,
    item::Section,
    planner::{
        candidates::CandidateId,
        select::{Room, Selection, Selector, SlotSet, Walker},
    },
    provider::weight::Weight,
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    rc::Rc,
};

/// Number of walks of one budget that have sums of their own. Later walks are few and share one entry.
const WALKS: usize = 8;

impl Selector<'_, ManyBudgets> {
    /// Returns the pins laid out. Returns `None` if they have to be examined one by one. That is so in three
    /// cases: the walk is examined step by step, something was included other than by slots, or an included
    /// candidate changes the offers to others.
    ///
    /// # Errors
    ///
    /// Any error of the token counter.
    pub(super) fn laid_out_pins(
        &self,
        chosen: &Selection<ManyBudgets>,
    ) -> Result<Option<Rc<LaidOutPins>>, Error> {
        // The layout has no limit of rules of the user, and none of them waits for a pin.
        if self.index.first_rule() < self.index.pins.len() {
            return Ok(None);
        }
        let are_walked = !self.index.has_only_pinned_notes();
        if self.walker.goal.is_some() || are_walked && chosen.included.shared.has_left_trail {
            return Ok(None);
        }
        if let Some(known) = self.walker.laid_out_pins.get() {
            return Ok(known.clone());
        }
        // Laid out once for all budgets, because nothing in the layout depends on one.
        let found = self.lay_out_pins(are_walked)?;
        Ok(self.walker.laid_out_pins.get_or_init(|| found.map(Rc::new)).clone())
    }

    /// Lays out the pins with their costs, counted no further than to the largest number of tokens that any
    /// budget leaves. Returns `None` if an included candidate changes the offers to others. Such a candidate
    /// is an exchange after the live question, which ends the merging of state. Another one is a pin with a
    /// user message that is not part of the walk, which opens the turn of that message.
    fn lay_out_pins(&self, are_walked: bool) -> Result<Option<LaidOutPins>, Error> {
        let slots = Rc::clone(&self.walker.pins);
        let minimum: BTreeSet<CandidateId> = self.index.minimum().into_iter().map(|(id, ..)| id).collect();
        if are_walked && (!slots.is_in_order || self.can_still_follow_question(&minimum)?) {
            return Ok(None);
        }
        let mut required = SlotSet::default();
        let mut costs = Vec::with_capacity(slots.len());
        for (pin, slot) in self.index.pins.iter().zip(0..) {
            if minimum.contains(&pin.id) {
                // The minimum is included before any offer, so its pins cost nothing.
                required.insert_run(slot..slot + 1);
            }
            costs.push(self.tokens_up_to_largest(pin.id)?);
        }
        let mut user_messages = Vec::with_capacity(slots.turns().len());
        for turn in slots.turns() {
            let is_required = minimum.contains(&turn.user_message);
            if !is_required && self.costs.ineligible(turn.user_message)?.is_some() {
                return Ok(None);
            }
            user_messages.push(if is_required {
                None
            } else {
                Some(self.tokens_up_to_largest(turn.user_message)?)
            });
        }
        let window = match self.index.window_start.filter(|_| are_walked) {
            Some(start) => match self.lay_out_window(start, &slots)? {
                Some(window) => Some(window),
                None => return Ok(None),
            },
            None => None,
        };
        let by_offer = RefCell::default();
        Ok(Some(LaidOutPins { slots, costs, user_messages, required, are_walked, window, by_offer }))
    }

    /// Returns the tokens of a candidate, or `u64::MAX` if it needs more than any budget leaves.
    pub(super) fn tokens_up_to_largest(&self, id: CandidateId) -> Result<u64, Error> {
        Ok(match self.costs.weigh(id, self.walker.largest_budget)? {
            Weight::Exactly(tokens) => tokens,
            Weight::Over => u64::MAX,
        })
    }

    /// Checks if state is merged into the live question until some exchange is included after it. If the
    /// minimum already includes such an exchange, no budget merges state, and the result is false.
    fn can_still_follow_question(&self, minimum: &BTreeSet<CandidateId>) -> Result<bool, Error> {
        if !self.index.merges_in_minimum() {
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

    /// Lays out the last prompt's window with the pinned messages in it. Returns `None` if part of it fits no
    /// budget. Also returns `None` if it starts in a turn that is kept only as a whole, whose user message
    /// has expired, or that has nothing to send from there on.
    fn lay_out_window(&self, start: CandidateId, slots: &PinSlots) -> Result<Option<WindowSteps>, Error> {
        let minimum = self.minimum()?;
        let turn = self.index.turn_of(start);
        let exchange = match start {
            CandidateId::Exchange(at) => Some(at),
            _ => None,
        };
        if let Some(at) = exchange {
            let may_be_cut = self.index.user_message(turn).is_some() || self.is_one_turn();
            // Without its user message, nothing of the turn is part of the window.
            let is_skipped = self.has_expired_user_message(turn, &minimum)?;
            if !may_be_cut || is_skipped || !self.reaches(turn, at, &minimum)? {
                return Ok(None);
            }
        }
        let apart = included_apart(&minimum).collect();
        let mut trail = Trail::with_pins(apart, Some(start));
        let end = self.lay_out_turns(u64::MAX, &minimum, &mut trail)?;
        let trail = Rc::new(trail.ending(end));
        // Every candidate of the window must have a step, because the window is included as a whole or not at
        // all.
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

    /// Includes the last prompt's window by the same rule as a plan (sticky window, S5), with pins by their
    /// slots. Returns false if the window does not fit into `room`.
    pub(super) fn resume_around_pins(
        &self,
        laid_out: &LaidOutPins,
        window: &WindowSteps,
        room: Room,
        chosen: &mut Selection<ManyBudgets>,
    ) -> bool {
        let number = next_walk(chosen);
        let trail = &window.trail;
        let all = trail.len();
        let missing =
            |counts_pins, steps| self.missing(laid_out, trail, (number, counts_pins), chosen, steps);
        // If the pins already include everything of the cut turn, the walk adds nothing of that turn.
        let steps = match window.cut {
            Some(cut) if missing(true, cut.exchanges()..all).count == 0 => cut.first,
            _ => all,
        };
        let needed = missing(chosen.pays_for_pins, 0..steps);
        let Some(left) = room.tokens().checked_sub(needed.tokens) else {
            self.walker.too_large(room, needed.tokens - room.tokens());
            return false;
        };
        if needed.count > 0 {
            self.walker.fits(room, left);
        }
        chosen.included.pay(Section::Conversation, needed.tokens);
        chosen.included.shared.walk_to(Rc::clone(trail), steps);
        chosen.included.shared.awaits_pins = !chosen.pays_for_pins;
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
        // The two sums differ exactly if excluded pins are among the steps.
        let [all, others] = [true, false]
            .map(|counts_pins| self.missing(&laid_out, trail, (number, counts_pins), chosen, 0..steps));
        let waits = all.count > others.count;
        chosen.included.shared.awaits_pins = waits;
        Ok(waits)
    }

    /// Sums those of the given steps that are not included. `key` holds the number of the walk, and true if
    /// excluded pins count.
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

    /// Finds the end of the walk when pins are included by their slots. Returns `None` if it cannot be found
    /// that way. From then on pins are included one by one.
    pub(super) fn walk_around_pins(
        &self,
        pins: &LaidOutPins,
        room: u64,
        chosen: &mut Selection<ManyBudgets>,
    ) -> Option<WalkEnd> {
        let number = next_walk(chosen);
        let found = self.find_end_around_pins(pins, room, number, chosen);
        if found.is_none() {
            chosen.included.convert_slots();
        }
        found
    }

    fn find_end_around_pins(
        &self,
        pins: &LaidOutPins,
        room: u64,
        number: usize,
        chosen: &Selection<ManyBudgets>,
    ) -> Option<WalkEnd> {
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
            None => self.lay_out_with_pins(room.max(1), included_apart(chosen).collect()),
        };
        // A trail that is too short is laid out again. The room at least doubles each time, so few rounds are
        // needed.
        loop {
            if let Some(walk_end) = walk(&trail, false) {
                return Some(walk_end);
            }
            let room = trail.laid_out_for()?.saturating_add(room);
            trail = self.lay_out_with_pins(room, trail.apart.clone());
        }
    }

    /// Lays out the walk with the pinned messages on it. `apart` is the minimum.
    fn lay_out_with_pins(&self, room: u64, apart: Vec<CandidateId>) -> Rc<Trail> {
        let trail = Rc::new(self.lay_out(room, Trail::with_pins(apart, None)));
        *self.walker.beside_pins.borrow_mut() = Some(Rc::clone(&trail));
        trail
    }
}

/// Counts one more walk of this budget and returns its number, at most `WALKS`.
fn next_walk(chosen: &mut Selection<ManyBudgets>) -> usize {
    let walks = &mut chosen.included.shared.walks;
    *walks += 1;
    (*walks - 1).min(WALKS)
}

/// Returns the sums of a walk with these pins included. Sums along the same trail are updated by the
/// differences.
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
