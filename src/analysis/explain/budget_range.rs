//! What is in at a range of budgets, and how two ranges differ.

use super::key::Key;
use crate::planner::{
    candidates::{Candidates, Slot},
    select::{KeptCandidates, SlotSet},
};
use std::collections::BTreeSet;

/// Budgets at which the same is in; tokens.
pub(super) struct BudgetRange<'p> {
    /// The smallest of them.
    pub(super) from: u64,
    /// The largest of them.
    pub(super) to: u64,
    /// What is in, documents apart.
    pub(super) kept: KeptCandidates,
    /// In order, what stands where it was sent, and what the provider requires of what is asked about.
    pub(super) others: Vec<Key>,
    /// The documents that are in, by their slots among those that compete in `candidates`.
    pub(super) documents: SlotSet,
    pub(super) candidates: &'p Candidates<'p>,
}

impl<'p> BudgetRange<'p> {
    /// No budgets, with nothing in.
    pub(super) fn empty(candidates: &'p Candidates<'p>) -> Self {
        let (kept, others, documents) = Default::default();
        Self { from: 0, to: 0, kept, others, documents, candidates }
    }

    /// What is in here and not there.
    pub(super) fn without(&self, other: &BudgetRange<'p>) -> Vec<Key> {
        let items = self.kept.without(&other.kept).into_iter();
        let mut keys: Vec<Key> = items.map(Key::Item).collect();
        keys.sort_unstable();
        keys.extend(difference(&self.others, &other.others));
        if std::ptr::eq(self.candidates, other.candidates) {
            let documents = self.documents.without(&other.documents);
            keys.extend(documents.map(|slot| document(self.candidates, slot)));
        } else {
            let others: BTreeSet<Key> = other.documents().collect();
            keys.extend(self.documents().filter(|key| !others.contains(key)));
        }
        keys
    }

    fn documents(&self) -> impl Iterator<Item = Key> + '_ {
        self.documents.iter().map(|slot| document(self.candidates, slot))
    }
}

/// The document at a slot among those that compete.
pub(super) fn document(candidates: &Candidates<'_>, slot: Slot) -> Key {
    let index = candidates.index();
    Key::Document(index.document(index.rank_at(slot)).at)
}

/// What is in the first sorted list and not in the second.
fn difference<'a>(here: &'a [Key], there: &'a [Key]) -> impl Iterator<Item = Key> + 'a {
    let mut others = there.iter().peekable();
    here.iter().copied().filter(move |key| {
        while others.next_if(|other| *other < key).is_some() {}
        others.peek() != Some(&key)
    })
}
