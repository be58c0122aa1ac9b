//! The included candidates at a range of budgets, and the differences of two ranges.

use super::{key::Key, many_budgets::ManyBudgets};
use crate::planner::{
    candidates::{Candidates, Slot},
    select::{Included, SlotSet},
};
use std::collections::BTreeSet;

/// Budgets at which the same candidates are included; tokens.
pub(super) struct BudgetRange<'p> {
    /// The smallest of them.
    pub(super) from: u64,
    /// The largest of them.
    pub(super) to: u64,
    /// The included candidates, documents apart.
    pub(super) kept: Included<ManyBudgets>,
    /// In order, the texts that stay where they were sent, and the placeholder messages that are asked about.
    pub(super) others: Vec<Key>,
    pub(super) documents: Documents<'p>,
}

/// The included documents.
pub(super) enum Documents<'p> {
    /// By their slots among those that compete.
    Slots(SlotSet, &'p Candidates<'p>),
    /// By their keys: if each budget has candidates of its own.
    Named(BTreeSet<Key>),
}

impl<'p> BudgetRange<'p> {
    /// Builds a range of no budgets.
    pub(super) fn empty(candidates: &'p Candidates<'p>) -> Self {
        let documents = Documents::Slots(SlotSet::default(), candidates);
        Self { from: 0, to: 0, kept: Included::empty(), others: Vec::new(), documents }
    }

    /// Converts every document to its key: also those that stay where they were sent.
    pub(super) fn named<'other>(self) -> BudgetRange<'other> {
        let mut documents: BTreeSet<Key> = self.documents().collect();
        let (stay, others) = self.others.into_iter().partition(|key| matches!(key, Key::Document(_)));
        documents.extend::<Vec<Key>>(stay);
        let documents = Documents::Named(documents);
        BudgetRange { from: self.from, to: self.to, kept: self.kept, others, documents }
    }

    /// Returns the keys that are included here and not there.
    pub(super) fn without(&self, other: &BudgetRange<'p>) -> Vec<Key> {
        let items = self.kept.without(&other.kept).into_iter();
        let mut keys: Vec<Key> = items.map(Key::Item).collect();
        keys.sort_unstable();
        keys.extend(difference(&self.others, &other.others));
        match (&self.documents, &other.documents) {
            (Documents::Slots(here, candidates), Documents::Slots(there, others))
                if std::ptr::eq(*candidates, *others) =>
            {
                keys.extend(here.without(there).map(|slot| document(candidates, slot)));
            }
            (Documents::Named(here), Documents::Named(there)) => keys.extend(here.difference(there)),
            _ => {
                let others: BTreeSet<Key> = other.documents().collect();
                keys.extend(self.documents().filter(|key| !others.contains(key)));
            }
        }
        keys
    }

    fn documents(&self) -> impl Iterator<Item = Key> + '_ {
        let (slots, named) = match &self.documents {
            Documents::Slots(slots, candidates) => (Some((slots, candidates)), None),
            Documents::Named(keys) => (None, Some(keys)),
        };
        let slots = slots
            .into_iter()
            .flat_map(|(slots, candidates)| slots.iter().map(move |slot| document(candidates, slot)));
        slots.chain(named.into_iter().flatten().copied())
    }
}

/// Returns the key of the document at a slot among those that compete.
pub(super) fn document(candidates: &Candidates<'_>, slot: Slot) -> Key {
    let index = candidates.index();
    Key::Document(index.document(index.rank_at(slot)).at)
}

/// Returns the keys of the first sorted list that are not in the second.
fn difference<'a>(here: &'a [Key], there: &'a [Key]) -> impl Iterator<Item = Key> + 'a {
    let mut others = there.iter().peekable();
    here.iter().copied().filter(move |key| {
        while others.next_if(|other| *other < key).is_some() {}
        others.peek() != Some(&key)
    })
}
