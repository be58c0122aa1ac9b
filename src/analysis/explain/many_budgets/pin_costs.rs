//! Pins under many budgets: the fill of rule S2 without a look at each pin.
//!
//! Input: the pins by their slots with their costs, the included candidates, and a room. Output: the pins
//! that fit. Rules: S2, S3.
//!
//! Pins that fit one after the other are a run, found by its sum; of those that do not fit the next smaller
//! one is found by the minimum. So the work of a fill follows the pins that it passes over, not those that it
//! includes. A pin costs more while the user message of its turn is not included. [`PriorityCosts`] holds the
//! costs of the pins of one priority when an offer begins, and changes little from one budget to the next.
//! Within one offer only the turn at hand differs, because the pins of a turn are neighbours in each
//! priority.

use super::{
    fill::Filled,
    pin_slots::{PinSlots, is_user_message},
    shared::Shared,
    trail::WindowSteps,
    tree::{Summary, Tree},
};
use crate::planner::{candidates::Slot, select::SlotSet};
use std::{cell::RefCell, collections::BTreeMap, ops::Range, rc::Rc};

/// Pins with their costs, and those of the offers of one budget, which are much the same under the next.
#[derive(Debug)]
pub(super) struct LaidOutPins {
    pub(super) slots: Rc<PinSlots>,
    /// By slot, the tokens of a pin without the user message that it brings; `u64::MAX` for more than any
    /// budget leaves.
    pub(super) costs: Vec<u64>,
    /// The tokens of the user message of each turn that some pin brings; `None` if it is part of the minimum.
    pub(super) heads: Vec<Option<u64>>,
    /// The slots of pins that are part of the minimum.
    pub(super) required: SlotSet,
    /// True if messages are among them, which the walk meets too.
    pub(super) are_walked: bool,
    /// The last prompt's window among them.
    pub(super) window: Option<WindowSteps>,
    /// By the number of the offer, the waiting of the window for pins, and the number of the priority.
    pub(super) by_offer: RefCell<BTreeMap<(usize, bool, usize), PriorityCosts>>,
}

/// Later offers share their costs: they are few.
const OFFERS: usize = 8;

impl LaidOutPins {
    /// Offers so many tokens to every pin that is not included, and includes those that fit. `number` is that
    /// of the offer under its budget.
    pub(super) fn offer(&self, number: usize, tokens: u64, included: &mut Shared) -> Filled {
        let mut by_offer = self.by_offer.borrow_mut();
        let mut all = Filled::new(tokens);
        for (priority, range) in self.slots.priorities.iter().enumerate() {
            let before = if self.are_walked { included.clone() } else { included.only_pins() };
            let costs = by_offer
                .entry((number.min(OFFERS), before.awaits_pins, priority))
                .or_insert_with(|| PriorityCosts::new(range.clone(), self, before.clone()));
            costs.move_to(before, self);
            let met = all.runs.len();
            costs.offer_to_all(&self.slots, &mut all);
            for run in &all.runs[met..] {
                included.insert_pins(run.clone());
            }
        }
        all
    }
}

/// The costs of pins of one priority when an offer begins.
#[derive(Debug)]
pub(super) struct PriorityCosts {
    slots: Range<u32>,
    tree: Tree<PinCost>,
    /// The candidates that were included when the costs were these.
    before: Shared,
    /// True for the turns whose user messages were included, by their numbers.
    heads: Vec<bool>,
}

/// The costs of a stretch of pins; tokens. An included pin costs nothing, and competes for no room.
#[derive(Debug, Clone, Copy)]
struct PinCost {
    /// All of them in order, each user message with the first that brings it.
    sum: u64,
    /// The smallest one, with the user message that it brings.
    least: u64,
    /// All of them if the user message is included.
    sum_behind: u64,
    /// The smallest one if the user message is included.
    least_behind: u64,
}

impl Summary for PinCost {
    const NOTHING: Self = Self { sum: 0, least: u64::MAX, sum_behind: 0, least_behind: u64::MAX };

    fn join(self, after: Self) -> Self {
        Self {
            sum: self.sum.saturating_add(after.sum),
            least: self.least.min(after.least),
            sum_behind: self.sum_behind.saturating_add(after.sum_behind),
            least_behind: self.least_behind.min(after.least_behind),
        }
    }
}

impl PriorityCosts {
    /// Builds the costs of a budget at which these candidates are included.
    fn new(slots: Range<u32>, pins: &LaidOutPins, before: Shared) -> Self {
        let heads = pins.slots.turns().zip(&pins.heads).map(|(turn, cost)| {
            cost.is_none() || turn.is_brought(before.pin_slots()) || before.has_walked(turn.head)
        });
        let heads = heads.collect();
        let mut built = Self { slots: slots.clone(), tree: Tree::new(std::iter::empty()), before, heads };
        built.tree = Tree::new(slots.map(|slot| built.cost(slot, pins)));
        built
    }

    /// Returns the cost of a pin beside the included candidates.
    fn cost(&self, slot: u32, pins: &LaidOutPins) -> PinCost {
        let LaidOutPins { slots, costs, heads, .. } = pins;
        let (id, turn) = (slots.id(Slot::new(slot)), slots.turn_at(slot));
        let has_head = turn.is_some_and(|turn| self.heads[turn as usize]);
        if is_user_message(id) && has_head
            || self.before.pin_slots().has(Slot::new(slot))
            || self.before.has_walked(id)
        {
            return PinCost::NOTHING;
        }
        let own = costs[slot as usize];
        let alone = PinCost { sum: own, least: own, sum_behind: own, least_behind: own };
        let Some(turn) = turn.filter(|_| !has_head) else { return alone };
        let is_first = slots.turn(turn).first_within(&self.slots) == Some(slot);
        if is_user_message(id) {
            // Behind the first pin of its turn it is included.
            let sum = if is_first { own } else { 0 };
            return PinCost { sum, sum_behind: 0, least_behind: u64::MAX, ..alone };
        }
        let both = own.saturating_add(heads[turn as usize].unwrap_or(0));
        PinCost { sum: if is_first { both } else { own }, least: both, ..alone }
    }

    /// Changes the costs to those beside other included candidates. The work follows the differences.
    fn move_to(&mut self, before: Shared, pins: &LaidOutPins) {
        let slots = &pins.slots;
        let mut changed: Vec<u32> = Vec::new();
        let mut turns: Vec<u32> = Vec::new();
        let old = std::mem::replace(&mut self.before, before);
        let (here, there) = (self.before.pin_slots(), old.pin_slots());
        for slot in there.without(here).chain(here.without(there)) {
            changed.push(slot.number());
            turns.extend(slots.turn_at(slot.number()));
        }
        for id in self.before.walked_differently(&old) {
            changed.extend(slots.slot(id));
            turns.extend(slots.turn_of(id));
        }
        turns.sort_unstable();
        turns.dedup();
        for number in turns.into_iter().filter(|number| pins.heads[*number as usize].is_some()) {
            let turn = slots.turn(number);
            let is_in = turn.is_brought(self.before.pin_slots()) || self.before.has_walked(turn.head);
            if std::mem::replace(&mut self.heads[number as usize], is_in) != is_in {
                changed.extend_from_slice(turn.slots_within(&self.slots));
            }
        }
        changed.retain(|slot| self.slots.contains(slot));
        changed.sort_unstable();
        changed.dedup();
        for slot in changed {
            let cost = self.cost(slot, pins);
            self.tree.set((slot - self.slots.start) as usize, cost);
        }
    }

    /// Offers the rest of the room to the pins in order.
    fn offer_to_all(&self, pins: &PinSlots, filled: &mut Filled) {
        let Range { start: mut at, end } = self.slots;
        while at < end {
            let behind = match self.turn_without_head(pins, at) {
                Some(slots) => self.finish_turn(pins, filled, at, false, slots.end),
                None => match self.take_all_that_fit(filled, at) {
                    Some(out) => self.finish_turn_of(pins, filled, at, out),
                    None => return,
                },
            };
            at = self.skip_to_next(filled, behind, end, |cost| cost.least);
        }
    }

    /// Goes through the rest of the turn of a pin that did not fit, after all from `at` up to it did. Returns
    /// the slot behind that turn.
    fn finish_turn_of(&self, pins: &PinSlots, filled: &mut Filled, at: u32, out: u32) -> u32 {
        let Some((turn, slots)) = self.turn_around(pins, out) else { return out + 1 };
        let brought = self.heads[turn as usize] || (at..out).contains(&slots.start);
        self.finish_turn(pins, filled, out + 1, brought, slots.end)
    }

    /// Returns the slots of the turn around a slot, if the pin that its user message is counted with was
    /// passed over.
    fn turn_without_head(&self, pins: &PinSlots, slot: u32) -> Option<Range<u32>> {
        let (turn, slots) = self.turn_around(pins, slot)?;
        (slots.start < slot && !self.heads[turn as usize]).then_some(slots)
    }

    /// Includes all from a slot on that fit one after the other. Returns the first that does not.
    fn take_all_that_fit(&self, filled: &mut Filled, from: u32) -> Option<u32> {
        let end = self.slots.end;
        let out = self.take_run(filled, from, end, |cost| cost.sum);
        if out == end {
            return None;
        }
        filled.pass_over(self.tree.get(self.place(out)).sum);
        Some(out)
    }

    /// Goes through the rest of a turn of which something was passed over, up to `end`, which it returns.
    /// `brought` is true if the turn's user message is included.
    fn finish_turn(
        &self,
        pins: &PinSlots,
        filled: &mut Filled,
        from: u32,
        mut brought: bool,
        end: u32,
    ) -> u32 {
        let mut at = from;
        while at < end {
            if brought {
                at = self.take_run(filled, at, end, |cost| cost.sum_behind);
                at = self.skip_to_next(filled, at, end, |cost| cost.least_behind);
                continue;
            }
            at = self.skip_to_next(filled, at, end, |cost| cost.least);
            if at < end {
                let cost = self.tree.get(self.place(at)).least;
                filled.include(at..at + 1, cost);
                brought = pins.turn_at(at).is_some();
                at += 1;
            }
        }
        end
    }

    /// Includes all from a slot on that fit one after the other. Returns the first that does not, at most
    /// `end`.
    fn take_run(&self, filled: &mut Filled, from: u32, end: u32, sum: impl Fn(PinCost) -> u64) -> u32 {
        let left = filled.left;
        let (out, run) = self.tree.search(self.place(from), self.place(end), |cost| sum(cost) <= left);
        let out = self.slots.start + out as u32;
        filled.include(from..out, sum(run));
        out
    }

    /// Passes over all from a slot on up to the first one that fits. Returns that one, at most `end`.
    fn skip_to_next(&self, filled: &mut Filled, from: u32, end: u32, least: impl Fn(PinCost) -> u64) -> u32 {
        let left = filled.left;
        let (next, passed) = self.tree.search(self.place(from), self.place(end), |cost| least(cost) > left);
        filled.pass_over(least(passed));
        self.slots.start + next as u32
    }

    fn place(&self, slot: u32) -> usize {
        (slot - self.slots.start) as usize
    }

    /// Returns the number of the turn that has pins before and behind a slot, or at it, and its slots in this
    /// priority with those between them.
    fn turn_around(&self, pins: &PinSlots, slot: u32) -> Option<(u32, Range<u32>)> {
        let number = pins.within(slot)?;
        let turn = pins.turn(number);
        let first = turn.first_within(&self.slots)?;
        Some((number, first..turn.last_before(self.slots.end)? + 1))
    }
}
