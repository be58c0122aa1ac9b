//! Included candidates, and the tokens that each section pays for them.
//!
//! - Input: candidates as the rules include them, each with its section, reason and tokens.
//! - Output: membership, order, and the sum of each section.
//! - Rules: none of its own.
//!
//! Invariant: a candidate that is included is never excluded again, except documents that the conversation
//! comes to contain (S9).

use super::{Inclusion, OneBudget, SlotSet, Walker};
use crate::{
    item::Section,
    plan::reason::IncludedReason,
    planner::candidates::{CandidateId, CandidateIndex, CandidateMap, Slot},
};

/// The included candidates, and the tokens that they take.
pub(crate) struct Included<W: Walker = OneBudget> {
    /// Single candidates in the order in which they were included.
    each: Vec<(CandidateId, Inclusion)>,
    /// The index of each candidate in `each`.
    places: CandidateMap<u32>,
    /// Documents, by their slots among the competing ones.
    pub(crate) documents: SlotSet,
    /// Tokens by section.
    used: [u64; 3],
    /// Items that the walker included in a form of its own. Some of them may be in `each` too.
    pub(crate) shared: W::Shared,
}

impl<W: Walker> Included<W> {
    pub(super) fn new(index: &CandidateIndex<'_>) -> Self {
        Self { places: CandidateMap::for_candidates(index), ..Self::empty() }
    }

    /// Creates an empty set for no particular conversation.
    pub(crate) fn empty() -> Self {
        Self {
            each: Vec::new(),
            places: CandidateMap::default(),
            documents: SlotSet::default(),
            used: [0; 3],
            shared: W::Shared::default(),
        }
    }

    /// Converts to the form of another walker, whose shared form is empty.
    pub(crate) fn for_walker<V: Walker>(self) -> Included<V> {
        let Self { each, places, documents, used, .. } = self;
        Included { each, places, documents, used, shared: V::Shared::default() }
    }

    /// Includes a candidate. Adds its tokens to its section if it was not included before.
    pub(super) fn keep(&mut self, id: CandidateId, inclusion: Inclusion, tokens: u64) {
        if self.insert(id, inclusion) {
            self.pay(inclusion.section, tokens);
        }
    }

    /// Includes the candidates that a walk found. None of them may be included yet.
    pub(super) fn keep_walked(&mut self, new: &[(CandidateId, u64)]) {
        self.insert_walked(new.iter().map(|(id, _)| *id));
        self.pay(Section::Conversation, new.iter().fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens)));
    }

    /// Includes a document. Adds its tokens if it was not included before.
    pub(super) fn keep_document(&mut self, slot: Slot, tokens: u64) {
        if self.documents.insert(slot) {
            self.pay(Section::Rag, tokens);
        }
    }

    /// Excludes documents again, which took `tokens` tokens.
    pub(super) fn leave(&mut self, slots: impl Iterator<Item = Slot>, tokens: u64) {
        for slot in slots {
            self.documents.remove(slot);
        }
        let used = &mut self.used[Section::Rag as usize];
        *used = used.saturating_sub(tokens);
    }

    /// Adds tokens to the sum of a section.
    pub(crate) fn pay(&mut self, section: Section, tokens: u64) {
        let used = &mut self.used[section as usize];
        *used = used.saturating_add(tokens);
    }

    /// Includes a candidate without adding its tokens. Returns true if it is new in `each`.
    pub(crate) fn insert(&mut self, id: CandidateId, inclusion: Inclusion) -> bool {
        let place = self.each.len() as u32;
        // One lookup in the common case of a new candidate; only a known one is written back.
        match self.places.insert(id, place) {
            None => self.each.push((id, inclusion)),
            Some(before) => {
                self.places.insert(id, before);
                self.each[before as usize].1 = inclusion;
            }
        }
        self.each.len() as u32 > place
    }

    /// Includes the candidates that a walk found, without adding their tokens.
    pub(crate) fn insert_walked(&mut self, ids: impl ExactSizeIterator<Item = CandidateId>) {
        self.each.reserve(ids.len());
        for id in ids {
            self.insert(id, Inclusion::WALKED);
        }
    }

    /// Returns the tokens that a section pays.
    pub(crate) fn used_by(&self, section: Section) -> u64 {
        self.used[section as usize]
    }

    /// Returns the tokens of everything that is included, without the wrapper around documents.
    pub(crate) fn used(&self) -> i128 {
        self.used.iter().map(|used| i128::from(*used)).sum()
    }

    /// Counts the included candidates with documents. A candidate in both forms counts twice.
    pub(super) fn count(&self) -> usize {
        self.len() + self.documents.len() + W::count(&self.shared)
    }

    /// Returns the number of candidates that were included one by one, without documents.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    /// Returns the candidates that were included one by one, without documents, in the order of inclusion.
    /// Most of them run from the newest to the oldest.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = CandidateId> {
        self.each.iter().map(|(id, _)| *id)
    }

    /// Returns the candidates that were included as pins.
    pub(super) fn pinned(&self) -> impl Iterator<Item = CandidateId> {
        self.each
            .iter()
            .filter(|(_, inclusion)| inclusion.reason == IncludedReason::Pinned)
            .map(|(id, _)| *id)
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
    pub(crate) fn find(&self, id: CandidateId) -> Option<Inclusion> {
        let single = self.places.get(id).map(|place| self.each[place as usize].1);
        single.or_else(|| W::find(&self.shared, id))
    }

    /// Returns the section and reason of an included candidate.
    ///
    /// # Panics
    ///
    /// Panics if the candidate is not included.
    pub(crate) fn get(&self, id: CandidateId) -> Inclusion {
        match self.find(id) {
            Some(inclusion) => inclusion,
            None => unreachable!("{id:?} is in"),
        }
    }
}
