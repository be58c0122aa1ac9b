//! Which places of a list are in: mostly the first so many, and a few after them.

use crate::{
    config::RagFill,
    error::Error,
    planner::candidates::{Basis, Sizes, Trace},
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

    /// What fits a room beside what is in, in order. What is in does not change on the way, so that nothing is met, and
    /// paid for, a second time.
    pub(super) fn fill(&self, sizes: &Sizes<'_, '_>, room: u64, fill: RagFill) -> Result<Filled, Error> {
        let mut filled = Filled { left: room, ..Filled::default() };
        let mut at = self.first;
        while at < sizes.len() {
            let end = self.more.range(at..).next().copied().unwrap_or(sizes.len());
            let (to, tokens) = sizes.run(at, end, filled.left)?;
            if to > at {
                filled.left -= tokens;
                filled.tokens += tokens;
                filled.runs.push(at..to);
            }
            if to == end {
                at = end + 1;
                continue;
            }
            let (next, over) = match fill {
                RagFill::Backfill => sizes.next(to, filled.left)?,
                RagFill::Prefix => (None, sizes.over(to, filled.left)),
            };
            filled.over = filled.over.into_iter().chain(over).min();
            at = next.unwrap_or(sizes.len());
            filled.passed_over.push((to..at, filled.left));
        }
        Ok(filled)
    }

    /// Lets in what fitted.
    pub(super) fn extend(&mut self, filled: &Filled) {
        for run in &filled.runs {
            self.insert_run(run.start, run.end);
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

/// What fits a room.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Places that were not in and fit.
    pub(super) runs: Vec<Range<u32>>,
    /// What they come to.
    pub(super) tokens: u64,
    /// What is left of the room.
    left: u64,
    /// Places of which none fits, those among them apart that are in already, and what was left when they were met.
    pub(super) passed_over: Vec<(Range<u32>, u64)>,
    /// How much more room would have let one of them in, where that is known.
    over: Option<u64>,
}

impl Filled {
    /// Notes what these decisions rest on. What is left only falls on the way, so the last of it is what binds.
    pub(super) fn note(&self, trace: &mut Trace, basis: Basis) {
        if !self.runs.is_empty() {
            trace.fits(basis, self.left);
        }
        if let Some(by) = self.over {
            trace.over(basis, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::candidates::Shelf;
    use proptest::prelude::*;

    proptest! {
        /// One room after the other, as sections, leftover and released reserves offer them: each place is paid for once,
        /// and what comes in is what a walk from the first place on lets in.
        #[test]
        fn filling_up_is_a_walk(
            sizes in prop::collection::vec(prop_oneof![9 => 0u64..50, 1 => Just(u64::MAX)], 1..24),
            already in prop::collection::vec(0u32..24, 0..4),
            rooms in prop::collection::vec(0u64..120, 1..6),
            prefix in any::<bool>(),
        ) {
            let shelf = Shelf::new(&sizes);
            let mut places = Places::default();
            let mut walked = BTreeSet::new();
            for place in already.into_iter().filter(|place| (*place as usize) < sizes.len()) {
                prop_assert_eq!(places.insert(place), walked.insert(place));
            }
            for room in rooms {
                let fill = if prefix { RagFill::Prefix } else { RagFill::Backfill };
                let filled = places.fill(&Sizes::LaidOut(&shelf), room, fill).unwrap();
                let (mut left, mut paid, mut least) = (room, 0, None);
                let before = walked.clone();
                let out = (0..shelf.len()).filter(|place| !before.contains(place));
                for place in out {
                    let size = sizes[place as usize];
                    if size <= left {
                        (left, paid) = (left - size, paid + size);
                        walked.insert(place);
                        continue;
                    }
                    let met = filled.passed_over.iter().find(|(range, _)| range.contains(&place));
                    prop_assert_eq!(met.map(|(_, left)| *left), Some(left));
                    least = least.into_iter().chain((size < u64::MAX).then(|| size - left)).min();
                    if prefix {
                        break;
                    }
                }
                places.extend(&filled);
                prop_assert_eq!((filled.tokens, filled.left), (paid, left));
                prop_assert_eq!(places.iter().collect::<Vec<_>>(), walked.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(places.len(), walked.len());
                // What is in already and larger than what is left may be counted as passed over: then less is known of how
                // far the decision bears, and never too much.
                let bears = |by: Option<u64>| by.unwrap_or(u64::MAX);
                prop_assert!(bears(filled.over) <= bears(least), "{:?} {:?}", filled.over, least);
            }
        }
    }
}
