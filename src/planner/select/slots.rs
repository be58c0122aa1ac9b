//! Which slots of a list are in: mostly the first so many, and a few runs after them.

use crate::{
    config::RagFill,
    error::Error,
    planner::{
        candidates::{Sizes, Slot},
        observer::{Constraint, Observer},
    },
};
use std::ops::Range;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SlotSet {
    /// In ascending order, with slots that are out between them: mostly one that does not fit between two
    /// long runs.
    runs: Vec<Range<u32>>,
}

impl SlotSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.holds(slot.number())
    }

    fn holds(&self, slot: u32) -> bool {
        self.runs.get(self.first_ending_behind(slot)).is_some_and(|run| run.start <= slot)
    }

    /// Returns the place of the first run that has this slot, or slots after it.
    fn first_ending_behind(&self, slot: u32) -> usize {
        self.runs.partition_point(|run| run.end <= slot)
    }

    /// Checks if all of these slots are in.
    pub(super) fn covers(&self, slots: &Range<u32>) -> bool {
        let run = self.runs.get(self.first_ending_behind(slots.start));
        slots.is_empty() || run.is_some_and(|run| run.start <= slots.start && slots.end <= run.end)
    }

    /// Returns the first run of these slots that are in.
    pub(super) fn first_of(&self, slots: Range<u32>) -> Option<Range<u32>> {
        let run = self.runs.get(self.first_ending_behind(slots.start))?;
        let (start, end) = (run.start.max(slots.start), run.end.min(slots.end));
        (start < end).then_some(start..end)
    }

    /// Says whether it was not in before.
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let at = slot.number();
        if self.holds(at) {
            return false;
        }
        self.insert_run(at..at + 1);
        true
    }

    /// Lets in all of these slots; some may be in already.
    pub(super) fn insert_run(&mut self, slots: Range<u32>) {
        if slots.is_empty() {
            return;
        }
        // The runs that it touches become one with it.
        let from = self.runs.partition_point(|run| run.end < slots.start);
        let to = from + self.runs[from..].partition_point(|run| run.start <= slots.end);
        let touched = &self.runs[from..to];
        let start = touched.first().map_or(slots.start, |run| run.start.min(slots.start));
        let end = touched.last().map_or(slots.end, |run| run.end.max(slots.end));
        self.runs.splice(from..to, std::iter::once(start..end));
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
        let mut at = 0;
        while at < sizes.len() {
            let known = self.runs.get(self.first_ending_behind(at));
            let end = known.map_or(sizes.len(), |run| run.start.max(at));
            let (to, cost) = sizes.run(at, end, filled.left)?;
            if to > at {
                filled.left -= cost;
                filled.tokens += cost;
                filled.runs.push(at..to);
            }
            if to == end {
                at = known.map_or(end, |run| run.end);
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
            self.insert_run(run.clone());
        }
    }

    pub(super) fn into_runs(self) -> Vec<Range<u32>> {
        self.runs
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        self.runs.iter().flat_map(Clone::clone).map(Slot::new)
    }

    /// What is in here and not there.
    pub(crate) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Slot> + 'a {
        // Both lists ascend: runs there that end before `at` are never looked at again.
        let mut there = other.runs.iter().peekable();
        let mut parts = Vec::new();
        for run in &self.runs {
            let mut at = run.start;
            while at < run.end {
                while there.next_if(|known| known.end <= at).is_some() {}
                let (start, end) = there.peek().map_or((run.end, run.end), |known| (known.start, known.end));
                if at < start {
                    parts.push(at..start.min(run.end));
                }
                at = end.max(at);
            }
        }
        parts.into_iter().flatten().map(Slot::new)
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
    pub(super) left: u64,
    /// Ranges of slots that do not fit (except slots already included), with the tokens left at that point.
    pub(super) passed_over: Vec<(Range<u32>, u64)>,
    /// How many more tokens would have let one of them in, where that is known.
    pub(super) over: Option<u64>,
}

impl Filled {
    /// What is left only falls on the way, so the last of it is what binds.
    pub(super) fn tell(&self, observer: &impl Observer, offer: Constraint) {
        // A candidate that costs nothing fits into any rest.
        if self.tokens > 0 {
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
    use std::collections::BTreeSet;

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

        #[test]
        fn runs_are_a_set(
            here in prop::collection::vec((0u32..30, 0u32..6), 0..8),
            there in prop::collection::vec((0u32..30, 0u32..6), 0..8),
        ) {
            let build = |runs: &[(u32, u32)]| {
                let (mut slots, mut set) = (SlotSet::default(), BTreeSet::new());
                for (from, len) in runs {
                    slots.insert_run(*from..from + len);
                    set.extend(*from..from + len);
                }
                (slots, set)
            };
            let ((here, here_set), (there, there_set)) = (build(&here), build(&there));
            prop_assert!(here.iter().map(Slot::number).eq(here_set.iter().copied()));
            prop_assert_eq!(here.len(), here_set.len());
            prop_assert!((0..40).all(|slot| here.has(Slot::new(slot)) == here_set.contains(&slot)));
            prop_assert!(here.runs.windows(2).all(|two| two[0].end < two[1].start));
            let less: Vec<u32> = here.without(&there).map(Slot::number).collect();
            prop_assert_eq!(less, here_set.difference(&there_set).copied().collect::<Vec<_>>());
            for from in 0..40 {
                let first = here.first_of(from..from + 5).map(|found| found.start);
                prop_assert_eq!(first, here_set.range(from..from + 5).next().copied());
                let three = from..from + 3;
                prop_assert_eq!(here.covers(&three), three.clone().all(|slot| here_set.contains(&slot)));
            }
        }
    }
}
