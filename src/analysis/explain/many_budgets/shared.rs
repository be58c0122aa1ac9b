//! Included candidates in forms that selections for many budgets share.
//!
//! Input: pins by slot, and steps of a trail. Output: membership, and the candidates that differ between two
//! selections. Rules: none.

use super::{ManyBudgets, pin_slots::PinSlots, trail::Trail, tree::visit};
use crate::planner::{
    candidates::CandidateId,
    select::{Included, Kept, SlotSet},
};
use std::{ops::Range, rc::Rc};

/// The empty set of pins.
static NO_SLOTS: SlotSet = SlotSet::new();

/// Included pins by slot, and the first steps of a trail. A candidate that is included as a pin may also be
/// one of those steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    /// The pins, and the slots of those that are included. Some may also be included one by one.
    pins: Option<(Rc<PinSlots>, SlotSet)>,
    /// A trail, and the number of its first steps that are included.
    trail: Option<(Rc<Trail>, usize)>,
    /// True if pins among those steps are included only by their slots, because the window awaits them.
    pub(super) awaits_pins: bool,
    /// True if other candidates may have been included in between. From then on messages and pins are
    /// included one by one.
    pub(super) is_off_the_trail: bool,
    /// Number of offers to pins by slot (`offers`), and of walks among them (`walks`), under this budget.
    pub(super) offers: usize,
    pub(super) walks: usize,
}

impl Shared {
    /// Starts with these pins, of which those at `slots` are included.
    pub(super) fn begin_pins(&mut self, pins: &Rc<PinSlots>, slots: &SlotSet) {
        self.pins = Some((Rc::clone(pins), slots.clone()));
    }

    /// Includes the pins at these slots, with the user messages that they bring.
    pub(super) fn insert_pins(&mut self, slots: Range<u32>) {
        if let Some((_, set)) = &mut self.pins {
            set.insert_run(slots);
        }
    }

    /// Includes the first `steps` steps of a trail. Some may be included already.
    pub(super) fn walk_to(&mut self, trail: Rc<Trail>, steps: usize) {
        self.trail = Some((trail, steps));
    }

    /// Returns the trail and the number of its included steps.
    pub(super) fn trail(&self) -> Option<(&Rc<Trail>, usize)> {
        self.trail.as_ref().map(|(trail, steps)| (trail, *steps))
    }

    /// Returns a copy with the pins, but without the steps of the trail.
    pub(super) fn only_pins(&self) -> Self {
        Self { pins: self.pins.clone(), ..Self::default() }
    }

    pub(super) fn pin_slots(&self) -> &SlotSet {
        self.pins.as_ref().map_or(&NO_SLOTS, |(_, slots)| slots)
    }

    fn has_pin(&self, id: CandidateId) -> bool {
        self.pins.as_ref().is_some_and(|(pins, slots)| pins.has(id, slots))
    }

    /// Checks if a step of the trail is a pin that the window awaits.
    fn is_awaited(&self, id: CandidateId) -> bool {
        self.awaits_pins && self.pins.as_ref().is_some_and(|(pins, _)| pins.slot(id).is_some())
    }

    /// Checks if a candidate is one of the included steps.
    pub(super) fn has_walked(&self, id: CandidateId) -> bool {
        let is_walked =
            |(trail, steps): &(Rc<Trail>, usize)| trail.place(id).is_some_and(|place| place < *steps);
        self.trail.as_ref().is_some_and(is_walked) && !self.is_awaited(id)
    }

    /// Returns the section and reason of a candidate, or `None` if it is not included here.
    pub(super) fn find(&self, id: CandidateId) -> Option<Kept> {
        let walked = || self.has_walked(id).then_some(Kept::WALKED);
        if self.has_pin(id) { Some(Kept::PINNED) } else { walked() }
    }

    /// Returns the number of pins and steps. A pin that is also a step counts twice.
    pub(super) fn count(&self) -> usize {
        self.pin_slots().len() + self.trail().map_or(0, |(_, steps)| steps)
    }

    /// Returns the included pins with the user messages that they bring. A user message comes once for each
    /// pin that brings it.
    pub(super) fn pins(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.pins.iter().flat_map(|(pins, slots)| slots.iter().flat_map(|slot| pins.with_pin(slot)))
    }

    /// Returns the included steps.
    pub(super) fn walked(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        let steps = self.trail().into_iter().flat_map(|(trail, steps)| trail.ids(steps));
        steps.filter(|id| !self.is_awaited(*id))
    }

    fn shares_pins(&self, other: &Self) -> bool {
        match (&self.pins, &other.pins) {
            (Some((here, _)), Some((there, _))) => Rc::ptr_eq(here, there),
            _ => false,
        }
    }

    /// Returns the pins that only one of the two selections includes, with the user messages that they bring.
    fn pinned_differently(&self, other: &Self) -> Vec<CandidateId> {
        let shares_pins = self.shares_pins(other);
        let of = |here: &Self, there: &Self| {
            let Some((pins, slots)) = &here.pins else { return Vec::new() };
            let others = if shares_pins { there.pin_slots() } else { &NO_SLOTS };
            slots.without(others).flat_map(|slot| pins.with_pin(slot)).collect::<Vec<_>>()
        };
        [of(self, other), of(other, self)].concat()
    }

    /// Returns the candidates that the walk includes in only one of the two selections. If one trail is the
    /// beginning of the other, these are the steps between the two ends. Otherwise they are all steps of
    /// both.
    pub(super) fn walked_differently(&self, other: &Self) -> Vec<CandidateId> {
        let is_common = match (&self.trail, &other.trail) {
            (Some((here, _)), Some((there, _))) => {
                // Trails with pinned messages on them do not depend on the included pins. So one is the
                // beginning of the other.
                Rc::ptr_eq(here, there) || self.shares_pins(other) && here.holds_pins && there.holds_pins
            }
            _ => false,
        };
        let steps = |of: &Self| of.trail().map_or(0, |(_, steps)| steps);
        let from = |of: &Self, from: usize| {
            of.trail().map_or_else(Vec::new, |(trail, steps)| trail.ids(steps).skip(from).collect())
        };
        let (longer, shorter) = if steps(self) >= steps(other) { (self, other) } else { (other, self) };
        if is_common && self.awaits_pins == other.awaits_pins {
            return from(longer, steps(shorter));
        }
        [from(longer, 0), from(shorter, 0)].concat()
    }
}

impl Included<ManyBudgets> {
    /// Returns all candidates other than documents. A candidate may come twice.
    pub(crate) fn all_ids(&self) -> impl Iterator<Item = CandidateId> {
        self.ids().chain(self.shared.pins()).chain(self.shared.walked())
    }

    /// Converts all pins and steps to candidates that are included one by one. From here on pins and messages
    /// are included that way.
    pub(super) fn leave_the_slots(&mut self) {
        let pins: Vec<CandidateId> = self.shared.pins().filter(|id| !self.has_single(*id)).collect();
        for id in pins {
            self.insert(id, Kept::PINNED);
        }
        self.shared.pins = None;
        self.leave_the_trail();
    }

    /// Converts all steps of the trail to candidates that are included one by one. From here on messages are
    /// included that way.
    pub(super) fn leave_the_trail(&mut self) {
        self.shared.is_off_the_trail = true;
        let walked: Vec<CandidateId> = self.shared.walked().filter(|id| !self.has_single(*id)).collect();
        self.shared.trail = None;
        self.insert_walked(walked.into_iter());
    }

    /// Returns the candidates, other than documents, that are included here and not in `other`.
    pub(crate) fn without(&self, other: &Self) -> Vec<CandidateId> {
        let there = (other.ids(), &other.shared);
        let mut ids = changed((self.ids(), &self.shared), there);
        ids.retain(|id| self.has(*id) && !other.has(*id));
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Returns the candidates that may be included in only one of the two selections. Some may be included in
/// both, and one may come twice. Each selection consists of the candidates that it includes one by one, and
/// the shared ones. If both share their pins and their trail, the work follows the number of differences.
pub(super) fn changed(
    here: (impl Iterator<Item = CandidateId>, &Shared),
    there: (impl Iterator<Item = CandidateId>, &Shared),
) -> Vec<CandidateId> {
    let mut changed = Vec::new();
    // Neighbouring budgets mostly begin with the same candidates, so a common beginning is skipped.
    let (mut singles, mut others) = (here.0, there.0);
    loop {
        match (singles.next(), others.next()) {
            (Some(one), Some(other)) if one == other && changed.is_empty() => {}
            (None, None) => break,
            (one, other) => changed.extend(one.into_iter().chain(other)),
        }
    }
    changed.extend(here.1.pinned_differently(there.1));
    changed.extend(here.1.walked_differently(there.1));
    // Tests measure the work by these visits.
    for _ in &changed {
        visit();
    }
    changed
}
