//! Pinned messages under many budgets: the fill of rule S2 without a look at each pin.
//!
//! Pins that fit one after the other are a run, found by its sum; of those that do not fit the next smaller
//! one is found by the minimum. So the work of a fill follows the pins that it passes over, not those that it
//! lets in. A pin is dearer while the user message of its turn is not in. [`PriorityCosts`] holds the costs
//! of the pins of one priority when an offer begins, and changes little from one budget to the next. Within
//! one offer only the turn at hand differs, because the pins of a turn are neighbours in each priority.

use super::{
    pin_slots::PinSlots,
    slots::{Filled, SlotSet},
    trail::Trail,
    tree::{Summary, Tree},
};
use crate::planner::candidates::{CandidateId, Slot};
use std::{cell::RefCell, collections::BTreeMap, ops::Range, rc::Rc};

/// The costs of pins and of the user messages that they bring; tokens, `u64::MAX` for more than any budget
/// leaves.
#[derive(Debug)]
pub(super) struct PinCosts {
    /// By slot, without the user message that the pin brings.
    pub(super) pins: Vec<u64>,
    /// The user message of each turn that some pin brings; `None` if it is in whatever happens.
    pub(super) heads: Vec<Option<u64>>,
    /// The slots of pins that are in whatever happens.
    pub(super) required: SlotSet,
}

/// The part of the conversation that is in when an offer begins.
#[derive(Debug, Clone, Default)]
pub(super) struct InBefore {
    pub(super) pins: SlotSet,
    /// The steps of a trail that are in.
    pub(super) walked: Option<(Rc<Trail>, usize)>,
    /// True if pins among them are in by their slots only.
    pub(super) awaits_pins: bool,
}

impl InBefore {
    fn has_walked(&self, id: CandidateId, pins: &PinSlots) -> bool {
        if self.awaits_pins && pins.slot(id).is_some() {
            return false;
        }
        self.walked.as_ref().is_some_and(|(trail, steps)| trail.place(id).is_some_and(|place| place < *steps))
    }

    /// The candidates that the walk let in here, or in another one, and not in both.
    fn walked_differently(&self, other: &Self) -> Vec<CandidateId> {
        let (here, there) = (self.walked.as_ref(), other.walked.as_ref());
        let steps = |walked: Option<&(Rc<Trail>, usize)>| walked.map_or(0, |(_, steps)| *steps);
        let (here_steps, there_steps) = (steps(here), steps(there));
        // One trail is the beginning of the other.
        let longer = if here_steps > there_steps { here } else { there };
        let (from, to) = (here_steps.min(there_steps), here_steps.max(there_steps));
        longer.map_or_else(Vec::new, |(trail, _)| trail.ids(to).skip(from).collect())
    }
}

/// The pins laid out, and the costs of the offers of one budget, which are much the same under the next.
#[derive(Debug)]
pub(super) struct LaidOutPins {
    pub(super) slots: Rc<PinSlots>,
    pub(super) costs: PinCosts,
    /// The last prompt's window, where there is one.
    pub(super) window: Option<WindowSteps>,
    /// By the number of the offer, the waiting of the window for pins, and the number of the priority.
    by_offer: RefCell<BTreeMap<(usize, bool, usize), PriorityCosts>>,
}

/// The last prompt's window (rule S5) among pins: all steps of a trail that ends before it.
#[derive(Debug)]
pub(super) struct WindowSteps {
    pub(super) trail: Rc<Trail>,
    /// The steps of the exchanges of the turn that it starts in, if it starts at one of them, and at least
    /// one is not in whatever happens: they are in with the user message, or all of the turn is in by its
    /// pins alone.
    pub(super) cut: Option<Cut>,
    /// The slots of the candidates of that turn before the window; `None` if some of them are no pins.
    pub(super) before: Option<Vec<Range<u32>>>,
}

/// The turn in which a window starts.
#[derive(Debug)]
pub(super) struct Cut {
    /// Its first step.
    pub(super) first: usize,
    /// Its first step that is no user message.
    pub(super) exchanges: usize,
}

impl WindowSteps {
    /// Checks if nothing of the turn that it starts in is missing before it.
    pub(super) fn has_whole_turn(&self, pins: &SlotSet) -> bool {
        self.before.as_ref().is_some_and(|before| before.iter().all(|slots| pins.covers(slots)))
    }
}

/// Later offers share their costs: they are few.
const OFFERS: usize = 8;

impl LaidOutPins {
    pub(super) fn new(slots: Rc<PinSlots>, costs: PinCosts, window: Option<WindowSteps>) -> Self {
        Self { slots, costs, window, by_offer: RefCell::default() }
    }

    /// Offers every pin that is not in so many tokens, and adds those that fit to what is in. `number` is
    /// that of the offer under its budget.
    pub(super) fn offer(&self, number: usize, tokens: u64, is_in: &mut InBefore) -> Filled {
        let mut by_offer = self.by_offer.borrow_mut();
        let mut all = Filled { left: tokens, ..Filled::default() };
        for (priority, range) in self.slots.priorities.iter().enumerate() {
            let costs =
                by_offer.entry((number.min(OFFERS), is_in.awaits_pins, priority)).or_insert_with(|| {
                    PriorityCosts::new(range.clone(), &self.slots, &self.costs, is_in.clone())
                });
            costs.move_to(is_in.clone(), &self.slots, &self.costs);
            let met = all.runs.len();
            costs.fill(&self.slots, &mut all);
            for run in &all.runs[met..] {
                is_in.pins.insert_run(run.clone());
            }
        }
        all
    }
}

/// The costs of pins of one priority when an offer begins.
#[derive(Debug)]
struct PriorityCosts {
    slots: Range<u32>,
    tree: Tree<PinCost>,
    /// The candidates that were in when the costs were these.
    before: InBefore,
    /// The turns whose user messages were in, by their numbers.
    heads: Vec<bool>,
}

/// The costs of a stretch of pins; tokens. A pin that is in costs nothing, and is no candidate for room.
#[derive(Debug, Clone, Copy)]
struct PinCost {
    /// All of them in order, each user message with the first that brings it.
    sum: u64,
    /// The smallest one, with the user message that it brings.
    least: u64,
    /// All of them where the user message is in.
    sum_behind: u64,
    /// The smallest one where the user message is in.
    least_behind: u64,
}

impl PinCost {
    /// A pin that is in.
    const IN: Self = Self { sum: 0, least: u64::MAX, sum_behind: 0, least_behind: u64::MAX };
}

impl Summary for PinCost {
    const NOTHING: Self = Self::IN;

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
    /// Builds the costs of a budget at which this is in.
    fn new(slots: Range<u32>, pins: &PinSlots, costs: &PinCosts, before: InBefore) -> Self {
        let heads = pins.turns().zip(&costs.heads).map(|(turn, cost)| {
            cost.is_none() || turn.is_brought(&before.pins) || before.has_walked(turn.head, pins)
        });
        let heads = heads.collect();
        let mut built = Self { slots: slots.clone(), tree: Tree::new(std::iter::empty()), before, heads };
        built.tree = Tree::new(slots.map(|slot| built.cost(slot, pins, costs)));
        built
    }

    /// Returns the cost of a pin beside the candidates that are in.
    fn cost(&self, slot: u32, pins: &PinSlots, costs: &PinCosts) -> PinCost {
        let pin = pins.pin(slot);
        let has_head = pin.turn.is_some_and(|turn| self.heads[turn as usize]);
        if pin.is_user_message && has_head
            || self.before.pins.has(Slot::new(slot))
            || self.before.has_walked(pins.id(Slot::new(slot)), pins)
        {
            return PinCost::IN;
        }
        let own = costs.pins[slot as usize];
        let alone = PinCost { sum: own, least: own, sum_behind: own, least_behind: own };
        let Some(turn) = pin.turn.filter(|_| !has_head) else { return alone };
        let is_first = pins.turn(turn).first_within(&self.slots) == Some(slot);
        if pin.is_user_message {
            // Behind the first pin of its turn it is in.
            let sum = if is_first { own } else { 0 };
            return PinCost { sum, sum_behind: 0, least_behind: u64::MAX, ..alone };
        }
        let both = own.saturating_add(costs.heads[turn as usize].unwrap_or(0));
        PinCost { sum: if is_first { both } else { own }, least: both, ..alone }
    }

    /// Changes the costs to those with which this is in. The work follows the differences.
    fn move_to(&mut self, before: InBefore, pins: &PinSlots, costs: &PinCosts) {
        let mut changed: Vec<u32> = Vec::new();
        let mut turns: Vec<u32> = Vec::new();
        let old = std::mem::replace(&mut self.before, before);
        for slot in old.pins.without(&self.before.pins).chain(self.before.pins.without(&old.pins)) {
            changed.push(slot.number());
            turns.extend(pins.pin(slot.number()).turn);
        }
        for id in old.walked_differently(&self.before) {
            changed.extend(pins.slot(id));
            turns.extend(pins.turn_of(id));
        }
        turns.sort_unstable();
        turns.dedup();
        for number in turns.into_iter().filter(|number| costs.heads[*number as usize].is_some()) {
            let turn = pins.turn(number);
            let is_in = turn.is_brought(&self.before.pins) || self.before.has_walked(turn.head, pins);
            if std::mem::replace(&mut self.heads[number as usize], is_in) != is_in {
                changed.extend_from_slice(turn.slots_within(&self.slots));
            }
        }
        changed.retain(|slot| self.slots.contains(slot));
        changed.sort_unstable();
        changed.dedup();
        for slot in changed {
            let cost = self.cost(slot, pins, costs);
            self.tree.set((slot - self.slots.start) as usize, cost);
        }
    }

    /// Offers the rest of the room to the pins in order.
    fn fill(&self, pins: &PinSlots, filled: &mut Filled) {
        Fill { costs: self, pins, filled }.offer_all();
    }
}

/// One offer to the pins of one priority.
struct Fill<'f> {
    costs: &'f PriorityCosts,
    pins: &'f PinSlots,
    filled: &'f mut Filled,
}

/// The pins of a turn in one priority, with those between them.
struct Stretch {
    turn: u32,
    /// The first of them.
    first: u32,
    end: u32,
}

impl Fill<'_> {
    fn offer_all(&mut self) {
        let Range { start: mut at, end } = self.costs.slots;
        while at < end {
            let behind = match self.stretch_without_head(at) {
                Some(stretch) => self.finish_turn(at, false, stretch.end),
                None => match self.take_all_that_fit(at) {
                    Some(out) => self.finish_turn_of(at, out),
                    None => return,
                },
            };
            at = self.skip_to_next(behind, end, |cost| cost.least);
        }
    }

    /// Goes through the rest of the turn of a pin that did not fit, after all from `at` up to it did. Returns
    /// the slot behind that turn.
    fn finish_turn_of(&mut self, at: u32, out: u32) -> u32 {
        let Some(stretch) = self.stretch(out) else { return out + 1 };
        let brought = self.has_head(stretch.turn) || (at..out).contains(&stretch.first);
        self.finish_turn(out + 1, brought, stretch.end)
    }

    /// Returns the turn that a slot is within, if the pin that its user message is counted with was passed
    /// over.
    fn stretch_without_head(&self, slot: u32) -> Option<Stretch> {
        self.stretch(slot).filter(|stretch| stretch.first < slot && !self.has_head(stretch.turn))
    }

    /// Lets in all from a slot on that fit one after the other. Returns the first that does not.
    fn take_all_that_fit(&mut self, from: u32) -> Option<u32> {
        let end = self.costs.slots.end;
        let out = self.take_run(from, end, |cost| cost.sum);
        if out == end {
            return None;
        }
        self.pass_over(self.costs.tree.get(self.place(out)).sum);
        Some(out)
    }

    /// Goes through the rest of a turn of which something was passed over, up to `end`, which it returns.
    /// `brought` is true if the turn's user message is in.
    fn finish_turn(&mut self, from: u32, mut brought: bool, end: u32) -> u32 {
        let mut at = from;
        while at < end {
            if brought {
                at = self.take_run(at, end, |cost| cost.sum_behind);
                at = self.skip_to_next(at, end, |cost| cost.least_behind);
                continue;
            }
            at = self.skip_to_next(at, end, |cost| cost.least);
            if at < end {
                let cost = self.costs.tree.get(self.place(at)).least;
                self.let_in(at..at + 1, cost);
                brought = self.pins.pin(at).turn.is_some();
                at += 1;
            }
        }
        end
    }

    /// Lets in all from a slot on that fit one after the other. Returns the first that does not, at most
    /// `end`.
    fn take_run(&mut self, from: u32, end: u32, sum: impl Fn(PinCost) -> u64) -> u32 {
        let left = self.filled.left;
        let (out, run) = self.costs.tree.search(self.place(from), self.place(end), |cost| sum(cost) <= left);
        let out = self.costs.slots.start + out as u32;
        self.let_in(from..out, sum(run));
        out
    }

    /// Passes over all from a slot on up to the first one that fits. Returns that one, at most `end`.
    fn skip_to_next(&mut self, from: u32, end: u32, least: impl Fn(PinCost) -> u64) -> u32 {
        let left = self.filled.left;
        let (next, passed) =
            self.costs.tree.search(self.place(from), self.place(end), |cost| least(cost) > left);
        self.pass_over(least(passed));
        self.costs.slots.start + next as u32
    }

    fn let_in(&mut self, slots: Range<u32>, tokens: u64) {
        if !slots.is_empty() {
            self.filled.runs.push(slots);
            self.filled.left -= tokens;
            self.filled.tokens += tokens;
        }
    }

    /// Notes the cost of the smallest one that was passed over: one that is larger than any budget is out at
    /// every one.
    fn pass_over(&mut self, tokens: u64) {
        let by = (tokens < u64::MAX).then(|| tokens - self.filled.left);
        self.filled.over = self.filled.over.into_iter().chain(by).min();
    }

    fn place(&self, slot: u32) -> usize {
        (slot - self.costs.slots.start) as usize
    }

    fn has_head(&self, turn: u32) -> bool {
        self.costs.heads[turn as usize]
    }

    /// Returns the turn that a slot is within.
    fn stretch(&self, slot: u32) -> Option<Stretch> {
        let turn = self.pins.within(slot)?;
        let pinned = self.pins.turn(turn);
        let first = pinned.first_within(&self.costs.slots)?;
        let end = pinned.last_before(self.costs.slots.end)? + 1;
        Some(Stretch { turn, first, end })
    }
}
