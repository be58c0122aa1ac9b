//! The walk through the conversation (rule S4) with pinned messages on it.
//!
//! Input: a trail with pinned messages on it, and the included pins. Output: sums of the steps that no pin
//! includes. Rule: conversation (S4).
//!
//! A trail that is laid out from the minimum alone also has the pinned messages on it. Included pins cost the
//! walk nothing. [`WalkSums`] holds the sums of the other steps. It changes with the included pins, by a few
//! steps from one budget to the next.

use super::{
    pin_slots::PinSlots,
    trail::{Reach, Trail},
    tree::{Stretch, Summary, Tree},
};
use crate::planner::{candidates::CandidateId, select::SlotSet};
use std::rc::Rc;

/// The costs of the steps of a trail that no pin includes.
#[derive(Debug)]
pub(super) struct WalkSums {
    trail: Rc<Trail>,
    tree: Tree<Stretch>,
    /// The included pins.
    pins: SlotSet,
    /// True if excluded pins count, as the ordinary messages that they are then.
    counts_pins: bool,
}

impl WalkSums {
    pub(super) fn new(trail: Rc<Trail>, slots: &PinSlots, pins: SlotSet, counts_pins: bool) -> Self {
        // `step` reads the other fields, so the tree is built last.
        let mut sums = Self { tree: Tree::new(std::iter::empty()), trail, pins, counts_pins };
        sums.tree = Tree::new((0..sums.trail.len()).map(|at| sums.step(at, slots)));
        sums
    }

    pub(super) fn is_along(&self, trail: &Rc<Trail>) -> bool {
        Rc::ptr_eq(&self.trail, trail)
    }

    /// Updates the sums to another set of included pins. The work follows the number of differences.
    pub(super) fn move_to(&mut self, pins: &SlotSet, slots: &PinSlots) {
        let old = std::mem::replace(&mut self.pins, pins.clone());
        let changed: Vec<CandidateId> =
            old.without(pins).chain(pins.without(&old)).flat_map(|slot| slots.with_pin(slot)).collect();
        for place in changed.into_iter().filter_map(|id| self.trail.place(id)) {
            self.tree.set(place, self.step(place, slots));
        }
    }

    /// Finds the end of a walk that starts at the step `from` with `room` tokens. Returns `None` if the trail
    /// ends before that is known.
    pub(super) fn walk(&self, from: usize, room: u64, ends_whole: bool) -> Option<Reach> {
        self.trail.walk_beside_pins(from, room, &self.tree, ends_whole)
    }

    /// Returns the sum of the steps from `from` up to `to` that are not included.
    pub(super) fn missing(&self, from: usize, to: usize) -> Stretch {
        self.tree.fold(from, to)
    }

    fn step(&self, place: usize, slots: &PinSlots) -> Stretch {
        let id = self.trail.id(place);
        if slots.has(id, &self.pins) || !self.counts_pins && slots.slot(id).is_some() {
            return Stretch::NOTHING;
        }
        Stretch::one(self.trail.cost(place))
    }
}
