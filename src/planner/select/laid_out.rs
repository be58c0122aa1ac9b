//! Pinned messages and the walk under many budgets: laid out once, and moved from one budget to the next by
//! their changes.

use super::{
    Selection, Selector,
    pin_fill::{Cut, LaidOutPins, PinCosts, WindowSteps},
    pin_slots::PinSlots,
    slots::SlotSet,
    trail::{Steps, Trail},
    trails::{Pins, WalkFound, beside_the_walk},
    walk_sums::WalkSums,
};
use crate::{
    conversation::ExchangeIndex,
    error::Error,
    item::Section,
    planner::{
        candidates::CandidateId,
        observer::{Constraint, Observer},
    },
    provider::weight::Weight,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    rc::Rc,
};

/// Later walks of one budget share their sums: they are few.
const WALKS: usize = 8;

impl<O: Observer> Selector<'_, O> {
    /// Returns the pins laid out, or `None` if one budget is asked about, no message is among them, or some
    /// of this selection came in otherwise than by their slots.
    ///
    /// # Errors
    ///
    /// Whatever counting the pins runs into.
    pub(super) fn laid_out_pins(&self, chosen: &Selection) -> Result<Option<Rc<LaidOutPins>>, Error> {
        let Some(most) = self.costs.most().filter(|_| self.lays_out_pins) else { return Ok(None) };
        let others =
            self.index.pins_are_notes() || self.observer.follows_the_walk() || chosen.kept.is_off_the_trail();
        if others {
            return Ok(None);
        }
        if let Some(known) = self.trails.laid_out_pins.get() {
            return Ok(known.clone());
        }
        let found = self.lay_out_pins(most)?;
        Ok(self.trails.laid_out_pins.get_or_init(|| found.map(Rc::new)).clone())
    }

    /// Lays the pins out with their costs, counted no further than to the most that any budget leaves.
    /// Returns `None` if a candidate that comes in changes the offers to others: an exchange after the live
    /// question ends the merging of state, and a pin that brings a user message which is no part of the walk
    /// opens its turn.
    fn lay_out_pins(&self, most: u64) -> Result<Option<LaidOutPins>, Error> {
        let slots = self.pins_by_slots();
        let minimum: BTreeSet<CandidateId> = self.index.minimum().into_iter().map(|(id, ..)| id).collect();
        let weigh = |id: CandidateId| {
            Ok::<_, Error>(match self.costs.weigh(id, most)? {
                Weight::Exactly(tokens) => tokens,
                Weight::Over => u64::MAX,
            })
        };
        if self.may_follow_the_question(&minimum)? {
            return Ok(None);
        }
        let mut required = SlotSet::default();
        let mut pins = Vec::with_capacity(slots.len());
        for (pin, slot) in self.index.pins.iter().zip(0..) {
            if minimum.contains(&pin.id) {
                required.insert_run(slot..slot + 1);
            }
            pins.push(weigh(pin.id)?);
        }
        let mut heads = Vec::with_capacity(slots.turns().len());
        for turn in slots.turns() {
            let is_required = minimum.contains(&turn.head);
            if !is_required && self.costs.ineligible(turn.head)?.is_some() {
                return Ok(None);
            }
            heads.push(if is_required { None } else { Some(weigh(turn.head)?) });
        }
        let window = match self.index.window_start {
            Some(start) => match self.lay_out_window(start, most, &slots)? {
                Some(window) => Some(window),
                None => return Ok(None),
            },
            None => None,
        };
        let costs = PinCosts { pins, heads, required };
        Ok(slots.is_in_order.then(|| LaidOutPins::new(slots, costs, window)))
    }

    /// Checks if state is merged into the live question until some exchange comes in after it. If one is in
    /// whatever happens, state is merged at no budget.
    fn may_follow_the_question(&self, minimum: &BTreeSet<CandidateId>) -> Result<bool, Error> {
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
    fn lay_out_window(
        &self,
        start: CandidateId,
        most: u64,
        slots: &PinSlots,
    ) -> Result<Option<WindowSteps>, Error> {
        let minimum = self.required()?;
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
        let end = self.lay_out_turns(most, u64::MAX, &minimum, &mut trail)?;
        let trail = Rc::new(trail.ending(end));
        if !self.each_from(start, &minimum, |id| Ok(trail.place(id).is_some()))? {
            return Ok(None);
        }
        let mut window = WindowSteps { trail, cut: None, before: None };
        let Some(at) = exchange else { return Ok(Some(window)) };
        let exchanges = self.index.exchanges(turn);
        let is_required =
            |id: CandidateId| minimum.kept.get(id).is_some_and(|kept| kept.section == Section::Conversation);
        if !ExchangeIndex::each(at..exchanges.end).map(CandidateId::Exchange).any(is_required) {
            window.cut = window
                .trail
                .last_turn()
                .map(|turn| Cut { first: turn.first, exchanges: turn.first + usize::from(turn.has_head) });
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

    /// Keeps the last prompt's window as [`Selector::resume`] does, with pins by their slots. Says whether it
    /// fits.
    pub(super) fn resume_beside_pins(
        &self,
        laid_out: &LaidOutPins,
        window: &WindowSteps,
        (tokens, constraint): (u64, Constraint),
        pins: Pins,
        chosen: &mut Selection,
    ) -> bool {
        let number = chosen.walks.min(WALKS);
        chosen.walks += 1;
        let trail = &window.trail;
        let all = trail.len();
        let steps = match &window.cut {
            Some(cut)
                if self.missing(laid_out, trail, number, true, chosen, cut.exchanges..all).count == 0 =>
            {
                cut.first
            }
            _ => all,
        };
        let needed = self.missing(laid_out, trail, number, pins == Pins::Paid, chosen, 0..steps);
        let Some(left) = tokens.checked_sub(needed.tokens) else {
            self.observer.too_large(constraint, needed.tokens - tokens);
            return false;
        };
        if needed.count > 0 {
            self.observer.fits(constraint, left);
        }
        chosen.pay_for_the_walk(needed.tokens);
        chosen.kept.walk_to(Rc::clone(trail), steps);
        chosen.kept.await_pins(pins == Pins::Awaited);
        chosen.note_resumed(Vec::new(), left);
        true
    }

    /// Checks if the window waits for pins that did not come in.
    pub(super) fn waits_in_vain(&self, chosen: &mut Selection) -> Result<bool, Error> {
        if !chosen.kept.awaits_pins() {
            return Ok(false);
        }
        let (Some(laid_out), Some((trail, steps))) = (self.laid_out_pins(chosen)?, chosen.kept.trail())
        else {
            return Ok(false);
        };
        let number = chosen.walks.min(WALKS);
        let [all, others] = [true, false]
            .map(|counts_pins| self.missing(&laid_out, trail, number, counts_pins, chosen, 0..steps));
        let waits = all.count > others.count;
        chosen.kept.await_pins(waits);
        Ok(waits)
    }

    /// Sums these steps as far as they are not in, with pins that are out or without.
    fn missing(
        &self,
        laid_out: &LaidOutPins,
        trail: &Rc<Trail>,
        number: usize,
        counts_pins: bool,
        chosen: &Selection,
        steps: Range<usize>,
    ) -> Steps {
        let mut known = self.trails.walks.borrow_mut();
        let sums = sums_of(&mut known, (number, counts_pins), trail, &laid_out.slots, &chosen.pins);
        sums.missing(steps.start, steps.end)
    }

    /// Finds the end of the walk beside the pins that are in by their slots. Returns `None` if it is not to
    /// be found so: then they are in one by one.
    pub(super) fn walk_beside_pins(
        &self,
        pins: &LaidOutPins,
        room: u64,
        chosen: &mut Selection,
    ) -> Option<WalkFound> {
        let number = chosen.walks.min(WALKS);
        chosen.walks += 1;
        let found = self.reach_beside_pins(pins, room, number, chosen);
        if found.is_none() {
            chosen.kept.leave_the_slots(&pins.slots, &chosen.pins);
            chosen.pins = SlotSet::default();
        }
        found
    }

    fn reach_beside_pins(
        &self,
        pins: &LaidOutPins,
        room: u64,
        number: usize,
        chosen: &Selection,
    ) -> Option<WalkFound> {
        let most = self.costs.most()?;
        let from = chosen.kept.trail().map_or(0, |(_, steps)| steps);
        let mut known = self.trails.walks.borrow_mut();
        if let Some(window) = &pins.window {
            let trail = Rc::clone(&window.trail);
            let sums = sums_of(&mut known, (number, true), &trail, &pins.slots, &chosen.pins);
            let (reach, paid) = sums.walk(from, room, window.has_whole_turn(&chosen.pins))?;
            return Some(WalkFound { trail, reach, paid });
        }
        let laid_out = self.trails.beside_pins.borrow().clone();
        let mut trail = match laid_out {
            Some(trail) => trail,
            None => self.lay_out_with_pins(most, room.max(1), beside_the_walk(chosen).collect()),
        };
        loop {
            let sums = sums_of(&mut known, (number, true), &trail, &pins.slots, &chosen.pins);
            if let Some((reach, paid)) = sums.walk(from, room, false) {
                return Some(WalkFound { trail, reach, paid });
            }
            let room = trail.laid_out_for()?.saturating_add(room);
            trail = self.lay_out_with_pins(most, room, trail.beside.clone());
        }
    }

    /// Lays out the walk beside the minimum, with the pinned messages on it.
    fn lay_out_with_pins(&self, most: u64, room: u64, beside: Vec<CandidateId>) -> Rc<Trail> {
        let trail = Rc::new(self.lay_out(most, room, Trail::with_pins(beside, None)));
        *self.trails.beside_pins.borrow_mut() = Some(Rc::clone(&trail));
        trail
    }
}

/// Returns the sums of a walk with these pins in.
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
