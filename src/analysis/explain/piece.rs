//! What is in at a run of budgets, and how two of them differ.

use super::sweep::Key;
use crate::planner::{
    candidates::{Pool, Unit},
    select::Places,
};
use std::collections::BTreeSet;

/// Budgets at which the same is in.
pub(super) struct Piece<'p> {
    pub(super) from: u64,
    pub(super) to: u64,
    /// What is in, documents apart, in order; and what the target demands of what is asked about.
    pub(super) units: Vec<Key>,
    /// By their places among those that compete in the pool.
    pub(super) documents: Places,
    pub(super) pool: &'p Pool<'p>,
}

impl<'p> Piece<'p> {
    /// A piece in which nothing is.
    pub(super) fn empty(pool: &'p Pool<'p>) -> Self {
        Self { from: 0, to: 0, units: Vec::new(), documents: Places::default(), pool }
    }

    /// What is in here and not there.
    pub(super) fn without(&self, other: &Piece<'p>) -> Vec<Key> {
        let mut keys: Vec<Key> = difference(&self.units, &other.units).collect();
        if std::ptr::eq(self.pool, other.pool) {
            keys.extend(self.documents.without(&other.documents).map(|place| document(self.pool, place)));
        } else {
            let others: BTreeSet<Key> = other.documents().collect();
            keys.extend(self.documents().filter(|key| !others.contains(key)));
        }
        keys
    }

    fn documents(&self) -> impl Iterator<Item = Key> + '_ {
        self.documents.iter().map(|place| document(self.pool, place))
    }
}

/// The document at a place among those that compete.
pub(super) fn document(pool: &Pool<'_>, place: u32) -> Key {
    Key::Item(Unit::Document(pool.documents()[pool.rank_at(place) as usize].at as u32))
}

/// What is in the first sorted list and not in the second.
fn difference<'a>(here: &'a [Key], there: &'a [Key]) -> impl Iterator<Item = Key> + 'a {
    let mut others = there.iter().peekable();
    here.iter().copied().filter(move |key| {
        while others.next_if(|other| *other < key).is_some() {}
        others.peek() != Some(&key)
    })
}
