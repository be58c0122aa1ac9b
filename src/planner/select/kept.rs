//! What is in, documents apart.

use super::trail::Trail;
use crate::{item::Section, plan::reason::IncludedReason, planner::candidates::CandidateId};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::{ops::Index, rc::Rc};

/// A candidate that is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) section: Section,
    pub(crate) reason: IncludedReason,
}

/// What the walk through the conversation lets in.
const WALKED: Kept = Kept { section: Section::Conversation, reason: IncludedReason::Recent };

/// The candidates that are in: one by one, and as the first steps of a trail that selections for many budgets share.
#[derive(Debug, Default)]
pub(crate) struct KeptCandidates {
    each: IndexMap<CandidateId, Kept, FixedState>,
    trail: Option<(Rc<Trail>, usize)>,
}

impl KeptCandidates {
    /// Says whether it was not in before.
    pub(super) fn insert(&mut self, id: CandidateId, kept: Kept) -> bool {
        self.each.insert(id, kept).is_none()
    }

    /// Lets in what a walk found, none of which is in.
    pub(super) fn extend(&mut self, ids: impl ExactSizeIterator<Item = CandidateId>) {
        self.each.reserve(ids.len());
        self.each.extend(ids.map(|id| (id, WALKED)));
    }

    /// Lets in so many steps of a trail: those of the trail that are in already among them.
    pub(super) fn extend_along(&mut self, trail: Rc<Trail>, steps: usize) {
        self.trail = Some((trail, steps));
    }

    /// The trail whose first steps are in, and how many of them.
    pub(super) fn trail(&self) -> Option<(&Rc<Trail>, usize)> {
        self.trail.as_ref().map(|(trail, steps)| (trail, *steps))
    }

    /// Lets in one by one what is in as steps of a trail: from here on something else may come in between.
    pub(super) fn leave_the_trail(&mut self) {
        if let Some((trail, steps)) = self.trail.take() {
            self.extend(trail.ids(steps));
        }
    }

    /// Those that are in one by one, as they came in.
    pub(super) fn each(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each.keys().copied()
    }

    /// Those that are in as pins.
    pub(super) fn pinned(&self) -> impl Iterator<Item = CandidateId> {
        self.each.iter().filter(|(_, kept)| kept.reason == IncludedReason::Pinned).map(|(id, _)| *id)
    }

    pub(crate) fn len(&self) -> usize {
        self.each.len() + self.trail().map_or(0, |(_, steps)| steps)
    }

    pub(crate) fn has(&self, id: CandidateId) -> bool {
        self.each.contains_key(&id) || self.is_on_the_trail(id)
    }

    pub(crate) fn get(&self, id: CandidateId) -> Option<&Kept> {
        self.each.get(&id).or_else(|| self.is_on_the_trail(id).then_some(&WALKED))
    }

    fn is_on_the_trail(&self, id: CandidateId) -> bool {
        self.trail.as_ref().is_some_and(|(trail, steps)| trail.place(id).is_some_and(|place| place < *steps))
    }

    /// What came in one by one, as it came in, and then what a trail let in. Mostly from the newest to the oldest.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each().chain(self.trail().into_iter().flat_map(|(trail, steps)| trail.ids(steps)))
    }

    /// What is in here and not there.
    pub(crate) fn without(&self, other: &Self) -> Vec<CandidateId> {
        // Two budgets that follow each other mostly begin with the same: only what comes after that is looked for.
        let same = self.each.keys().zip(other.each.keys()).take_while(|(here, there)| here == there).count();
        let walked = self.trail().map(|(trail, steps)| {
            let common = other.trail().filter(|(there, _)| Rc::ptr_eq(trail, there));
            trail.ids(steps).skip(common.map_or(0, |(_, steps)| steps))
        });
        let ids = self.each().skip(same).chain(walked.into_iter().flatten());
        ids.filter(|id| !other.has(*id)).collect()
    }
}

impl Index<CandidateId> for KeptCandidates {
    type Output = Kept;

    /// What is known of a candidate that is in.
    fn index(&self, id: CandidateId) -> &Kept {
        match self.get(id) {
            Some(kept) => kept,
            None => unreachable!("{id:?} is in"),
        }
    }
}
