//! The documents that are in, by their places among those that compete: mostly the first so many, and a few after them.

use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Documents {
    /// So many from the first are in.
    first: u32,
    /// And these, none of which is right after them.
    more: BTreeSet<u32>,
}

impl Documents {
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.first as usize + self.more.len()
    }

    pub(crate) fn has(&self, place: u32) -> bool {
        place < self.first || self.more.contains(&place)
    }

    /// How many are in from the first on.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// The first one from a place on that is in and not among the first.
    pub(crate) fn next(&self, place: u32) -> Option<u32> {
        self.more.range(place..).next().copied()
    }

    /// Says whether it was not in before.
    pub(crate) fn insert(&mut self, place: u32) -> bool {
        if self.has(place) {
            return false;
        }
        self.insert_run(place, place + 1);
        true
    }

    /// All from one place up to another, none of which is in.
    pub(crate) fn insert_run(&mut self, from: u32, to: u32) {
        if from != self.first {
            self.more.extend(from..to);
            return;
        }
        self.first = to;
        while self.more.remove(&self.first) {
            self.first += 1;
        }
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.first).chain(self.more.iter().copied())
    }

    /// What is in here and not there.
    pub(crate) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u32> + 'a {
        let first = (other.first.min(self.first)..self.first).filter(|place| !other.more.contains(place));
        first.chain(self.more.iter().copied().filter(|place| !other.has(*place)))
    }
}
