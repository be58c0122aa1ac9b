//! The candidates that are included at a range of budgets, and the difference between two ranges.

use super::{key::Key, many_budgets::ManyBudgets};
use crate::planner::{
    candidates::{Candidates, Slot},
    select::{Included, SlotSet},
};
use std::collections::BTreeSet;

/// A range of budgets, in tokens, at which the same candidates are included.
pub(super) struct BudgetRange<'p> {
    /// The smallest budget.
    pub(super) from: u64,
    /// The largest budget.
    pub(super) to: u64,
    /// The included candidates, without documents.
    pub(super) kept: Included<ManyBudgets>,
    /// The keys of texts that stay where they were sent, and of the requested placeholder messages, in
    /// ascending order.
    pub(super) others: Vec<Key>,
    pub(super) documents: Documents<'p>,
}

/// The included documents.
pub(super) enum Documents<'p> {
    /// Documents by their slots among the competing documents.
    Slots(SlotSet, &'p Candidates<'p>),
    /// Documents by their keys, if each budget has its own candidates.
    Named(BTreeSet<Key>),
}

impl<'p> BudgetRange<'p> {
    /// Builds a range that includes nothing.
    pub(super) fn empty(candidates: &'p Candidates<'p>) -> Self {
        let documents = Documents::Slots(SlotSet::default(), candidates);
        Self { from: 0, to: 0, kept: Included::empty(), others: Vec::new(), documents }
    }

    /// Converts every document to its key, including documents that stay where they were sent.
    pub(super) fn named<'other>(self) -> BudgetRange<'other> {
        let mut documents: BTreeSet<Key> = self.documents().collect();
        let (stay, others) = self.others.into_iter().partition(|key| matches!(key, Key::Document(_)));
        documents.extend::<Vec<Key>>(stay);
        let documents = Documents::Named(documents);
        BudgetRange { from: self.from, to: self.to, kept: self.kept, others, documents }
    }

    /// Returns the keys that this range includes and the other does not.
    pub(super) fn without(&self, other: &BudgetRange<'p>) -> Vec<Key> {
        let items = self.kept.without(&other.kept).into_iter();
        let mut keys: Vec<Key> = items.map(Key::Item).collect();
        keys.sort_unstable();
        keys.extend(difference(&self.others, &other.others));
        // Slots have a meaning only within one list of candidates. There, the difference takes no look at
        // single documents; otherwise keys are compared.
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

/// Returns the key of the competing document at a slot.
pub(super) fn document(candidates: &Candidates<'_>, slot: Slot) -> Key {
    let index = candidates.index();
    Key::Document(index.document(index.rank_at(slot)).at)
}

/// Returns the keys of the first list that are not in the second. Both lists must be sorted.
fn difference<'a>(here: &'a [Key], there: &'a [Key]) -> impl Iterator<Item = Key> + 'a {
    let mut others = there.iter().peekable();
    here.iter().copied().filter(move |key| {
        while others.next_if(|other| *other < key).is_some() {}
        others.peek() != Some(&key)
    })
}
