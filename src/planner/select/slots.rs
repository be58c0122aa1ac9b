//! Which slots of a list are in: mostly the first so many, and a few after them.

use crate::{
    config::RagFill,
    error::Error,
    planner::{
        candidates::{Sizes, Slot},
        observer::{Constraint, Observer},
    },
};
use std::{collections::BTreeSet, ops::Range};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SlotSet {
    /// So many from the first are in.
    first: u32,
    /// And these, none of which is right after them.
    more: BTreeSet<u32>,
}

impl SlotSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.first as usize + self.more.len()
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.holds(slot.number())
    }

    fn holds(&self, slot: u32) -> bool {
        slot < self.first || self.more.contains(&slot)
    }

    /// Says whether it was not in before.
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let at = slot.number();
        if self.holds(at) {
            return false;
        }
        self.insert_run(at, at + 1);
        true
    }

    /// All from one slot up to another, none of which is in.
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

    /// What fits into so many tokens beside what is in, in order. What is in does not change on the way, so that nothing is met, and
    /// paid for, a second time.
    pub(super) fn offer_all(
        &self,
        sizes: &Sizes<'_, '_>,
        tokens: u64,
        fill: RagFill,
    ) -> Result<Filled, Error> {
        let mut filled = Filled { left: tokens, ..Filled::default() };
        let mut at = self.first;
        while at < sizes.len() {
            let end = self.more.range(at..).next().copied().unwrap_or(sizes.len());
            let (to, cost) = sizes.run(at, end, filled.left)?;
            if to > at {
                filled.left -= cost;
                filled.tokens += cost;
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
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        (0..self.first).chain(self.more.iter().copied()).map(Slot::new)
    }

    /// What is in here and not there.
    pub(crate) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Slot> + 'a {
        let first = (other.first.min(self.first)..self.first).filter(|slot| !other.more.contains(slot));
        first.chain(self.more.iter().copied().filter(|slot| !other.holds(*slot))).map(Slot::new)
    }
}

/// What fits into an offer.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Slots that were not in and fit.
    pub(super) runs: Vec<Range<u32>>,
    /// What they come to.
    pub(super) tokens: u64,
    /// What is left of the offer; tokens.
    left: u64,
    /// Ranges of slots that do not fit (except slots already included), with the tokens left at that point.
    pub(super) passed_over: Vec<(Range<u32>, u64)>,
    /// How many more tokens would have let one of them in, where that is known.
    over: Option<u64>,
}

impl Filled {
    /// What is left only falls on the way, so the last of it is what binds.
    pub(super) fn tell(&self, observer: &impl Observer, offer: Constraint) {
        if !self.runs.is_empty() {
            observer.fits(offer, self.left);
        }
        if let Some(by) = self.over {
            observer.too_large(offer, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::candidates::SizeIndex;
    use proptest::prelude::*;

    proptest! {
        /// One offer after the other, as sections, leftover and released reserves offer them: each slot is paid for once,
        /// and what comes in is what a walk from the first slot on lets in.
        #[test]
        fn filling_up_is_a_walk(
            sizes in prop::collection::vec(prop_oneof![9 => 0u64..50, 1 => Just(u64::MAX)], 1..24),
            already in prop::collection::vec(0u32..24, 0..4),
            rooms in prop::collection::vec(0u64..120, 1..6),
            prefix in any::<bool>(),
        ) {
            let index = SizeIndex::new(&sizes);
            let mut slots = SlotSet::default();
            let mut walked = BTreeSet::new();
            for place in already.into_iter().filter(|place| (*place as usize) < sizes.len()) {
                prop_assert_eq!(slots.insert(Slot::new(place)), walked.insert(place));
            }
            for room in rooms {
                let fill = if prefix { RagFill::Prefix } else { RagFill::Backfill };
                let filled = slots.offer_all(&Sizes::LaidOut(&index), room, fill).unwrap();
                let (mut left, mut paid, mut least) = (room, 0, None);
                let before = walked.clone();
                let out = (0..index.len()).filter(|place| !before.contains(place));
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
                slots.extend(&filled);
                prop_assert_eq!((filled.tokens, filled.left), (paid, left));
                prop_assert_eq!(slots.iter().map(Slot::number).collect::<Vec<_>>(), walked.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(slots.len(), walked.len());
                // What is in already and larger than what is left may be counted as passed over: then less is known of how
                // far the decision bears, and never too much.
                let bears = |by: Option<u64>| by.unwrap_or(u64::MAX);
                prop_assert!(bears(filled.over) <= bears(least), "{:?} {:?}", filled.over, least);
            }
        }
    }
}
