//! Which places of a list are in: mostly the first so many, and a few after them.

use super::purse::{For, Room};
use crate::{
    candidates::{Scale, Shelf},
    config::Fill,
};
use std::{collections::BTreeSet, ops::Range};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// So many from the first are in.
    first: u32,
    /// And these, none of which is right after them.
    more: BTreeSet<u32>,
}

impl Places {
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.first as usize + self.more.len()
    }

    pub(crate) fn has(&self, place: u32) -> bool {
        place < self.first || self.more.contains(&place)
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
    fn insert_run(&mut self, from: u32, to: u32) {
        if from != self.first {
            self.more.extend(from..to);
            return;
        }
        self.first = to;
        while self.more.remove(&self.first) {
            self.first += 1;
        }
    }

    /// Lets in what fits a room, in order, and says which places that were and what they cost. Runs that fit are taken at
    /// once, and runs of what does not fit are skipped at once: for plans that are explained, where nobody asks why.
    pub(super) fn fill(&mut self, sizes: &Shelf, scale: &Scale<'_>, room: Room, fill: Fill) -> Filled {
        let (mut left, basis) = (room.tokens(For::Anything), room.basis(For::Anything));
        let mut filled = Filled::default();
        let mut at = self.first;
        while at < sizes.len() {
            let end = self.more.range(at..).next().copied().unwrap_or(sizes.len());
            let (to, tokens) = sizes.run(at, end, left);
            if to > at {
                left -= tokens;
                scale.trace(|trace| trace.fits(basis, left));
                self.insert_run(at, to);
                filled.tokens += tokens;
                filled.runs.push(at..to);
            }
            if to == end {
                at = end + 1;
                continue;
            }
            let over = |size: u64| {
                if size < u64::MAX {
                    scale.trace(|trace| trace.over(basis, size - left));
                }
            };
            if fill == Fill::Prefix {
                over(sizes.size(to));
                break;
            }
            let (next, skipped) = sizes.next(to, left);
            over(skipped);
            at = next.unwrap_or(sizes.len());
            // One that is in already is passed by.
            while self.has(at) {
                at += 1;
            }
        }
        filled
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

/// What came in.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) runs: Vec<Range<u32>>,
    pub(super) tokens: u64,
}
