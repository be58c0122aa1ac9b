//! What is in, documents apart.

use super::{pin_slots::PinSlots, slots::SlotSet, trail::Trail};
use crate::{
    item::Section,
    plan::reason::IncludedReason,
    planner::candidates::{CandidateId, CandidateIndex, CandidateMap},
};
use std::rc::Rc;

/// A candidate that is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) section: Section,
    pub(crate) reason: IncludedReason,
}

/// What the walk through the conversation lets in.
const WALKED: Kept = Kept { section: Section::Conversation, reason: IncludedReason::Recent };

/// What a pin lets in.
const PINNED: Kept = Kept { section: Section::SystemPinned, reason: IncludedReason::Pinned };

/// The candidates that are in: one by one, and where selections for many budgets share them, as slots of pins
/// and as the first steps of a trail. A candidate that is in as a pin may be one of those steps too.
#[derive(Debug, Default)]
pub(crate) struct KeptCandidates {
    each: Vec<(CandidateId, Kept)>,
    /// Where each of them stands.
    places: CandidateMap<u32>,
    /// The pins, and which of them are in; some may be in one by one too.
    pub(super) pins: Option<(Rc<PinSlots>, SlotSet)>,
    /// A trail, and how many of its steps are in.
    pub(super) trail: Option<(Rc<Trail>, usize)>,
    /// True if pins that are among those steps are in by their slots only: the window awaits them.
    awaits_pins: bool,
    is_off_the_trail: bool,
}

impl KeptCandidates {
    pub(super) fn new(index: &CandidateIndex<'_>) -> Self {
        Self { places: CandidateMap::of(index), ..Self::default() }
    }

    /// Says whether it was not in before.
    pub(super) fn insert(&mut self, id: CandidateId, kept: Kept) -> bool {
        let place = self.each.len() as u32;
        match self.places.insert(id, place) {
            None => self.each.push((id, kept)),
            Some(before) => {
                self.places.insert(id, before);
                self.each[before as usize].1 = kept;
            }
        }
        self.each.len() as u32 > place
    }

    /// Lets in what a walk found, none of which is in.
    pub(super) fn extend(&mut self, ids: impl ExactSizeIterator<Item = CandidateId>) {
        self.each.reserve(ids.len());
        for id in ids {
            self.insert(id, WALKED);
        }
    }

    /// Lets in pins by their slots, with the user messages that they bring; some may be in already.
    pub(super) fn keep_pins(&mut self, pins: Rc<PinSlots>, slots: SlotSet) {
        self.pins = Some((pins, slots));
    }

    /// Returns the pins that are in by their slots alone, and the user messages that they bring: those as
    /// often as they are brought.
    fn pins(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        let pins =
            self.pins.iter().flat_map(|(pins, slots)| slots.iter().flat_map(|slot| pins.with_pin(slot)));
        pins.filter(|id| self.places.get(*id).is_none())
    }

    fn has_pin(&self, id: CandidateId) -> bool {
        self.pins.as_ref().is_some_and(|(pins, slots)| pins.has(id, slots))
    }

    /// Lets pins and messages come in one by one from here on, and all that are in by their slots or as steps
    /// of a trail.
    pub(super) fn leave_the_slots(&mut self, pins: &PinSlots, slots: &SlotSet) {
        for id in slots.iter().flat_map(|slot| pins.with_pin(slot)) {
            if self.places.get(id).is_none() {
                self.insert(id, PINNED);
            }
        }
        self.is_off_the_trail = true;
        let walked: Vec<CandidateId> = self.trail_ids().filter(|id| self.places.get(*id).is_none()).collect();
        self.trail = None;
        self.extend(walked.into_iter());
    }

    /// Lets in the steps of a trail up to this one; some may be in already.
    pub(super) fn walk_to(&mut self, trail: Rc<Trail>, steps: usize) {
        self.trail = Some((trail, steps));
    }

    /// Checks if pins that are steps of the trail are in by their slots only.
    pub(super) fn awaits_pins(&self) -> bool {
        self.awaits_pins
    }

    pub(super) fn await_pins(&mut self, awaits: bool) {
        self.awaits_pins = awaits;
    }

    /// Checks if a step of the trail is a pin that is awaited.
    fn is_awaited(&self, id: CandidateId) -> bool {
        self.awaits_pins && self.pins.as_ref().is_some_and(|(pins, _)| pins.slot(id).is_some())
    }

    /// The trail whose first steps are in, and how many of them.
    pub(super) fn trail(&self) -> Option<(&Rc<Trail>, usize)> {
        self.trail.as_ref().map(|(trail, steps)| (trail, *steps))
    }

    /// From here on something else may come in between: what is in as steps of a trail is in one by one.
    pub(super) fn leave_the_trail(&mut self) {
        self.is_off_the_trail = true;
        if let Some((trail, steps)) = self.trail.take() {
            self.extend(trail.ids(steps));
        }
    }

    pub(super) fn is_off_the_trail(&self) -> bool {
        self.is_off_the_trail
    }

    /// Those that are in one by one, as they came in.
    pub(super) fn each(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each.iter().map(|(id, _)| *id)
    }

    /// Those that are in as pins.
    pub(super) fn pinned(&self) -> impl Iterator<Item = CandidateId> {
        self.each.iter().filter(|(_, kept)| kept.reason == IncludedReason::Pinned).map(|(id, _)| *id)
    }

    /// Counts them; a pin that is in by its slot too counts twice.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
            + self.pins.as_ref().map_or(0, |(_, slots)| slots.len())
            + self.trail().map_or(0, |(_, steps)| steps)
    }

    pub(crate) fn has(&self, id: CandidateId) -> bool {
        self.places.get(id).is_some() || self.is_on_the_trail(id) || self.has_pin(id)
    }

    /// What is known of a candidate that is in.
    pub(crate) fn of(&self, id: CandidateId) -> Kept {
        match self.get(id) {
            Some(kept) => kept,
            None => unreachable!("{id:?} is in"),
        }
    }

    pub(super) fn get(&self, id: CandidateId) -> Option<Kept> {
        let one = self.places.get(id).map(|place| self.each[place as usize].1);
        let one = one.or_else(|| self.has_pin(id).then_some(PINNED));
        one.or_else(|| self.is_on_the_trail(id).then_some(WALKED))
    }

    fn is_on_the_trail(&self, id: CandidateId) -> bool {
        let is_walked =
            |(trail, steps): &(Rc<Trail>, usize)| trail.place(id).is_some_and(|place| place < *steps);
        self.trail.as_ref().is_some_and(is_walked) && !self.is_awaited(id)
    }

    /// Returns those that came in one by one, in that order, then pins by their slots, and then the steps of
    /// a trail: from all but a plan's own selection some may come twice. Mostly from the newest to the
    /// oldest.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each().chain(self.pins()).chain(self.trail_ids())
    }

    /// The messages and exchanges that are in, and what else came in one by one.
    pub(super) fn without_notes(&self) -> impl Iterator<Item = CandidateId> {
        self.each().chain(self.trail_ids())
    }

    fn trail_ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        let steps = self.trail().into_iter().flat_map(|(trail, steps)| trail.ids(steps));
        steps.filter(|id| !self.is_awaited(*id))
    }

    /// What is in here and not there.
    pub(crate) fn without(&self, other: &Self) -> Vec<CandidateId> {
        // Two budgets that follow each other mostly begin with the same: only what comes after that is looked for.
        let same = self.each().zip(other.each()).take_while(|(here, there)| here == there).count();
        // Other candidates of the request may have other pins.
        let shared = match (&self.pins, &other.pins) {
            (Some((here, _)), Some((there, slots))) if Rc::ptr_eq(here, there) => Some(slots),
            _ => None,
        };
        let common = other.trail().filter(|(there, _)| {
            let is_longer = |trail: &Rc<Trail>| shared.is_some() && trail.holds_pins && there.holds_pins;
            let is_common =
                self.trail().is_some_and(|(trail, _)| Rc::ptr_eq(trail, there) || is_longer(trail));
            is_common && !self.awaits_pins && !other.awaits_pins
        });
        let walked = self.trail().map(|(trail, steps)| {
            let new = trail.ids(steps).skip(common.map_or(0, |(_, steps)| steps));
            new.filter(|id| !self.has_pin(*id) && !self.is_awaited(*id))
        });
        let nothing = SlotSet::default();
        let pins = self.pins.iter().flat_map(|(pins, slots)| {
            slots.without(shared.unwrap_or(&nothing)).flat_map(|slot| pins.with_pin(slot))
        });
        let mut pins: Vec<CandidateId> = pins.filter(|id| self.places.get(*id).is_none()).collect();
        pins.sort_unstable();
        pins.dedup();
        let ids = self.each().skip(same).chain(pins).chain(walked.into_iter().flatten());
        ids.filter(|id| !other.has(*id)).collect()
    }
}
