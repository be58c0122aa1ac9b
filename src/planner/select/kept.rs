//! What is in, documents apart.

use super::{slots::SlotSet, trail::Trail};
use crate::{
    item::Section,
    plan::reason::IncludedReason,
    planner::candidates::{CandidateId, CandidateIndex, CandidateMap, Slot},
};
use foldhash::fast::FixedState;
use indexmap::IndexSet;
use std::rc::Rc;

/// The pins of a request, each at its slot.
pub(super) type PinSlots = IndexSet<CandidateId, FixedState>;

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

/// The candidates that are in: one by one, and where selections for many budgets share them, as slots of pinned notes and as
/// the first steps of a trail.
#[derive(Debug, Default)]
pub(crate) struct KeptCandidates {
    each: Vec<(CandidateId, Kept)>,
    /// Where each of them stands.
    places: CandidateMap<u32>,
    /// Pinned notes, and which of them are in; some may be in one by one too.
    notes: Option<(Rc<PinSlots>, SlotSet)>,
    /// A trail, and how many of its steps are in.
    trail: Option<(Rc<Trail>, usize)>,
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

    /// Lets in notes by their slots; some may be in already.
    pub(super) fn keep_notes(&mut self, pins: Rc<PinSlots>, slots: SlotSet) {
        self.notes = Some((pins, slots));
    }

    /// The notes that are in by their slots alone.
    fn notes(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        let notes =
            self.notes.iter().flat_map(|(pins, slots)| slots.iter().map(|slot| pins[slot.to_usize()]));
        notes.filter(|id| self.places.get(*id).is_none())
    }

    fn has_note(&self, id: CandidateId) -> bool {
        let slot = |pins: &PinSlots| pins.get_index_of(&id).map(|slot| Slot::new(slot as u32));
        self.notes.as_ref().is_some_and(|(pins, slots)| slot(pins).is_some_and(|slot| slots.has(slot)))
    }

    /// Lets in the steps of a trail up to this one; some may be in already.
    pub(super) fn walk_to(&mut self, trail: Rc<Trail>, steps: usize) {
        self.trail = Some((trail, steps));
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

    /// How many there are; a note that is in by its slot too counts twice.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
            + self.notes.as_ref().map_or(0, |(_, slots)| slots.len())
            + self.trail().map_or(0, |(_, steps)| steps)
    }

    pub(crate) fn has(&self, id: CandidateId) -> bool {
        self.places.get(id).is_some() || self.is_on_the_trail(id) || self.has_note(id)
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
        let one = one.or_else(|| self.is_on_the_trail(id).then_some(WALKED));
        one.or_else(|| self.has_note(id).then_some(PINNED))
    }

    fn is_on_the_trail(&self, id: CandidateId) -> bool {
        self.trail.as_ref().is_some_and(|(trail, steps)| trail.place(id).is_some_and(|place| place < *steps))
    }

    /// What came in one by one, as it came in, then notes by their slots, and then what a trail let in. Mostly from the newest
    /// to the oldest.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each().chain(self.notes()).chain(self.trail_ids())
    }

    /// The messages and exchanges that are in, and what else came in one by one.
    pub(super) fn without_notes(&self) -> impl Iterator<Item = CandidateId> {
        self.each().chain(self.trail_ids())
    }

    fn trail_ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.trail().into_iter().flat_map(|(trail, steps)| trail.ids(steps))
    }

    /// What is in here and not there.
    pub(crate) fn without(&self, other: &Self) -> Vec<CandidateId> {
        // Two budgets that follow each other mostly begin with the same: only what comes after that is looked for.
        let same = self.each().zip(other.each()).take_while(|(here, there)| here == there).count();
        let walked = self.trail().map(|(trail, steps)| {
            let common = other.trail().filter(|(there, _)| Rc::ptr_eq(trail, there));
            trail.ids(steps).skip(common.map_or(0, |(_, steps)| steps))
        });
        let nothing = SlotSet::default();
        // Other candidates of the request may have other pins.
        let notes = self.notes.iter().flat_map(|(pins, slots)| {
            let same = other
                .notes
                .as_ref()
                .filter(|(there, _)| Rc::ptr_eq(pins, there) || pins.iter().eq(there.iter()));
            let there = same.map_or(&nothing, |(_, slots)| slots);
            slots.without(there).map(|slot| pins[slot.to_usize()]).collect::<Vec<_>>()
        });
        let notes = notes.filter(|id| self.places.get(*id).is_none());
        let ids = self.each().skip(same).chain(notes).chain(walked.into_iter().flatten());
        ids.filter(|id| !other.has(*id)).collect()
    }
}
