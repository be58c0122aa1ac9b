//! The fill with pins (rule S2) for many budgets, without a look at each pin.
//!
//! Input: the pins by slot with their costs, the included candidates, and a room in tokens. Output: the pins
//! that fit. Rules: pins (S2), pinned exchanges (S3).
//!
//! Pins that fit one after the other form a run, which a search by sum finds. Among pins that do not fit, a
//! search by minimum finds the next smaller one. So the work of a fill follows the number of pins that it
//! passes over, not of those that it includes.
//!
//! A pin costs more while the user message of its turn is not included, because it brings that message.
//! [`PriorityCosts`] holds the costs of the pins of one priority at the beginning of an offer, and changes
//! little from one budget to the next. Within one offer only the costs of the current turn change, because
//! the pins of a turn are neighbours within each priority.

use super::{
    fill::Filled,
    pin_slots::{PinSlots, is_user_message},
    shared::Shared,
    trail::WindowSteps,
    tree::{Summary, Tree},
};
use crate::planner::{candidates::Slot, select::SlotSet};
use std::{cell::RefCell, collections::BTreeMap, ops::Range, rc::Rc};

/// Pins with their costs, and the costs for each offer of a budget. The next budget has nearly the same
/// costs.
#[derive(Debug)]
pub(super) struct LaidOutPins {
    pub(super) slots: Rc<PinSlots>,
    /// By slot, the tokens of a pin without the user message that it brings. `u64::MAX` means more than any
    /// budget leaves.
    pub(super) costs: Vec<u64>,
    /// For each turn whose user message some pin brings, the tokens of that message. `None` if the minimum
    /// includes it.
    pub(super) heads: Vec<Option<u64>>,
    /// The slots of the pins that are part of the minimum.
    pub(super) required: SlotSet,
    /// True if messages are among the pins. The walk meets these too.
    pub(super) are_walked: bool,
    /// The last prompt's window with the pinned messages on it.
    pub(super) window: Option<WindowSteps>,
    /// The costs by three keys: the number of the offer, true if the window awaits pins, and the number of
    /// the priority.
    pub(super) by_offer: RefCell<BTreeMap<(usize, bool, usize), PriorityCosts>>,
}

/// Number of offers that have costs of their own. Later offers are few and share one entry.
const OFFERS: usize = 8;

impl LaidOutPins {
    /// Offers `tokens` to every pin that is not included, and includes the pins that fit. `number` is the
    /// number of the offer under its budget.
    pub(super) fn offer(&self, number: usize, tokens: u64, included: &mut Shared) -> Filled {
        let mut by_offer = self.by_offer.borrow_mut();
        let mut all = Filled::new(tokens);
        for (priority, range) in self.slots.priorities.iter().enumerate() {
            // If all pins are notes, the steps of the walk do not matter. Leaving them out keeps the
            // comparison small.
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

/// The costs of the pins of one priority at the beginning of an offer.
#[derive(Debug)]
pub(super) struct PriorityCosts {
    slots: Range<u32>,
    tree: Tree<PinCost>,
    /// The included candidates for which the costs are computed.
    before: Shared,
    /// By number of the turn, true if its user message is included.
    heads: Vec<bool>,
}

/// The costs of a stretch of pins, in tokens. An included pin costs nothing and does not compete.
#[derive(Debug, Clone, Copy)]
struct PinCost {
    /// The sum of all pins in order. Each user message counts with the first pin that brings it.
    sum: u64,
    /// The smallest pin, with the user message that it brings.
    least: u64,
    /// The sum of all pins if the user message is included.
    sum_behind: u64,
    /// The smallest pin if the user message is included.
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
    /// Computes the costs for a budget that includes the candidates `before`.
    fn new(slots: Range<u32>, pins: &LaidOutPins, before: Shared) -> Self {
        let heads = pins.slots.turns().zip(&pins.heads).map(|(turn, cost)| {
            cost.is_none() || turn.is_brought(before.pin_slots()) || before.has_walked(turn.head)
        });
        let heads = heads.collect();
        // `cost` reads `heads` and `before`, so the tree is built last.
        let mut built = Self { slots: slots.clone(), tree: Tree::new(std::iter::empty()), before, heads };
        built.tree = Tree::new(slots.map(|slot| built.cost(slot, pins)));
        built
    }

    /// Returns the cost of a pin together with the included candidates.
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
            // After the first pin of its turn, the user message is already included.
            let sum = if is_first { own } else { 0 };
            return PinCost { sum, sum_behind: 0, least_behind: u64::MAX, ..alone };
        }
        let both = own.saturating_add(heads[turn as usize].unwrap_or(0));
        PinCost { sum: if is_first { both } else { own }, least: both, ..alone }
    }

    /// Updates the costs to another set of included candidates. The work follows the number of differences.
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
            // If the user message of a turn comes or goes, the costs of all pins of that turn change.
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

    /// Offers the remaining tokens to the pins in order.
    fn offer_to_all(&self, pins: &PinSlots, filled: &mut Filled) {
        let Range { start: mut at, end } = self.slots;
        while at < end {
            // A turn whose first pin was passed over is handled pin by pin, because the next pin that fits
            // has to bring the user message.
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

    /// Handles the rest of the turn of the pin `out`, which did not fit. All pins from `at` up to it did.
    /// Returns the slot after that turn.
    fn finish_turn_of(&self, pins: &PinSlots, filled: &mut Filled, at: u32, out: u32) -> u32 {
        let Some((turn, slots)) = self.turn_around(pins, out) else { return out + 1 };
        // The user message was included before, or it came with the first pin of its turn.
        let brought = self.heads[turn as usize] || (at..out).contains(&slots.start);
        self.finish_turn(pins, filled, out + 1, brought, slots.end)
    }

    /// Returns the slots of the turn around a slot, if its first pin was passed over. That pin is the one
    /// whose cost contains the user message.
    fn turn_without_head(&self, pins: &PinSlots, slot: u32) -> Option<Range<u32>> {
        let (turn, slots) = self.turn_around(pins, slot)?;
        (slots.start < slot && !self.heads[turn as usize]).then_some(slots)
    }

    /// Includes all pins from a slot on that fit one after the other. Returns the first one that does not, or
    /// `None` if all fit.
    fn take_all_that_fit(&self, filled: &mut Filled, from: u32) -> Option<u32> {
        let end = self.slots.end;
        let out = self.take_run(filled, from, end, |cost| cost.sum);
        if out == end {
            return None;
        }
        filled.pass_over(self.tree.get(self.place(out)).sum);
        Some(out)
    }

    /// Handles the rest of a turn in which a pin was passed over, from the slot `from` up to `end`. Returns
    /// `end`. `brought` is true if the user message of the turn is included.
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
            // Until the user message is included, each pin is offered together with it.
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

    /// Includes all pins from a slot on that fit one after the other. Returns the first one that does not, at
    /// most `end`. `sum` selects the sum that counts.
    fn take_run(&self, filled: &mut Filled, from: u32, end: u32, sum: impl Fn(PinCost) -> u64) -> u32 {
        let left = filled.left;
        let (out, run) = self.tree.search(self.place(from), self.place(end), |cost| sum(cost) <= left);
        let out = self.slots.start + out as u32;
        filled.include(from..out, sum(run));
        out
    }

    /// Passes over the pins from a slot on up to the first one that fits. Returns that slot, at most `end`.
    /// `least` selects the minimum that counts.
    fn skip_to_next(&self, filled: &mut Filled, from: u32, end: u32, least: impl Fn(PinCost) -> u64) -> u32 {
        let left = filled.left;
        let (next, passed) = self.tree.search(self.place(from), self.place(end), |cost| least(cost) > left);
        filled.pass_over(least(passed));
        self.slots.start + next as u32
    }

    fn place(&self, slot: u32) -> usize {
        (slot - self.slots.start) as usize
    }

    /// Returns the turn that has pins before and after a slot, or at it. The result is the number of the
    /// turn, and the range from its first to its last slot in this priority.
    fn turn_around(&self, pins: &PinSlots, slot: u32) -> Option<(u32, Range<u32>)> {
        let number = pins.within(slot)?;
        let turn = pins.turn(number);
        let first = turn.first_within(&self.slots)?;
        Some((number, first..turn.last_before(self.slots.end)? + 1))
    }
}
