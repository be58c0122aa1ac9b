//! Included candidates.
//!
//! Input: candidates as the rules let them in, each with its section, reason and tokens. Output: membership,
//! order and the tokens that each section pays. Rules: nothing that is included is excluded again.

use super::{Kept, OneBudget, SlotSet, Walker};
use crate::{
    item::Section,
    plan::reason::IncludedReason,
    planner::candidates::{CandidateId, CandidateIndex, CandidateMap, Slot},
};

/// The candidates that are included, and the tokens that they take.
pub(crate) struct Included<W: Walker = OneBudget> {
    /// In the order in which they were included.
    each: Vec<(CandidateId, Kept)>,
    /// The place of each among them.
    places: CandidateMap<u32>,
    /// Documents, by their slots among those that compete.
    pub(crate) documents: SlotSet,
    /// Tokens by section.
    used: [u64; 3],
    /// Items that the walker included in a form of its own; some may be among `each` too.
    pub(crate) shared: W::Shared,
}

impl<W: Walker> Included<W> {
    pub(super) fn new(index: &CandidateIndex<'_>) -> Self {
        Self { places: CandidateMap::for_candidates(index), ..Self::empty() }
    }

    /// Builds one for no candidates of a conversation.
    pub(crate) fn empty() -> Self {
        Self {
            each: Vec::new(),
            places: CandidateMap::default(),
            documents: SlotSet::default(),
            used: [0; 3],
            shared: W::Shared::default(),
        }
    }

    /// Converts to the form of another walker, whose shared form holds nothing yet.
    pub(crate) fn for_walker<V: Walker>(self) -> Included<V> {
        let Self { each, places, documents, used, .. } = self;
        Included { each, places, documents, used, shared: V::Shared::default() }
    }

    /// Includes a candidate, and pays for it if it was not included before.
    pub(super) fn keep(&mut self, id: CandidateId, kept: Kept, tokens: u64) {
        if self.insert(id, kept) {
            self.pay(kept.section, tokens);
        }
    }

    /// Includes what a walk found, none of which is included yet.
    pub(super) fn keep_walked(&mut self, new: &[(CandidateId, u64)]) {
        self.insert_walked(new.iter().map(|(id, _)| *id));
        self.pay(Section::Conversation, new.iter().fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens)));
    }

    pub(super) fn keep_document(&mut self, slot: Slot, tokens: u64) {
        if self.documents.insert(slot) {
            self.pay(Section::Rag, tokens);
        }
    }

    pub(crate) fn pay(&mut self, section: Section, tokens: u64) {
        let used = &mut self.used[section as usize];
        *used = used.saturating_add(tokens);
    }

    /// Includes a candidate without paying for it. Returns true if it was not among the single ones before.
    pub(crate) fn insert(&mut self, id: CandidateId, kept: Kept) -> bool {
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

    /// Includes what a walk found without paying for it.
    pub(crate) fn insert_walked(&mut self, ids: impl ExactSizeIterator<Item = CandidateId>) {
        self.each.reserve(ids.len());
        for id in ids {
            self.insert(id, Kept::WALKED);
        }
    }

    /// Returns the tokens that a section pays.
    pub(crate) fn used_by(&self, section: Section) -> u64 {
        self.used[section as usize]
    }

    /// Returns the tokens of everything that is included, without what surrounds it.
    pub(crate) fn used(&self) -> i128 {
        self.used.iter().map(|used| i128::from(*used)).sum()
    }

    /// Counts the candidates, documents among them; one in both forms counts twice.
    pub(super) fn count(&self) -> usize {
        self.len() + self.documents.len() + W::count(&self.shared)
    }

    /// Counts the candidates that were included one by one, documents apart.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    /// Returns the candidates that were included one by one, documents apart, in that order: mostly from the
    /// newest to the oldest.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each.iter().map(|(id, _)| *id)
    }

    /// Returns the candidates that were included as pins.
    pub(super) fn pinned(&self) -> impl Iterator<Item = CandidateId> {
        self.each.iter().filter(|(_, kept)| kept.reason == IncludedReason::Pinned).map(|(id, _)| *id)
    }

    /// Checks if a candidate other than a document was included one by one.
    pub(crate) fn has_single(&self, id: CandidateId) -> bool {
        self.places.get(id).is_some()
    }

    /// Checks if a candidate other than a document is included.
    pub(crate) fn has(&self, id: CandidateId) -> bool {
        self.has_single(id) || W::find(&self.shared, id).is_some()
    }

    /// Returns the section and reason of a candidate. Returns `None` if it is not included.
    pub(crate) fn find(&self, id: CandidateId) -> Option<Kept> {
        let single = self.places.get(id).map(|place| self.each[place as usize].1);
        single.or_else(|| W::find(&self.shared, id))
    }

    /// Returns the section and reason of a candidate that is included.
    pub(crate) fn get(&self, id: CandidateId) -> Kept {
        match self.find(id) {
            Some(kept) => kept,
            None => unreachable!("{id:?} is in"),
        }
    }
}
