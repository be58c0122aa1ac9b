//! A set of slots of a list, stored as runs.
//!
//! - Input: slots, one by one or as runs.
//! - Output: membership, and the difference of two sets.
//! - Rules: none.
//!
//! Most sets are one run from the first slot on, and a few short runs after it.

use crate::planner::candidates::Slot;
use std::ops::Range;

/// A set of slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SlotSet {
    /// The runs in ascending order, with gaps between them.
    runs: Vec<Range<u32>>,
}

impl SlotSet {
    pub(crate) const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.contains(slot.number())
    }

    fn contains(&self, slot: u32) -> bool {
        self.runs.get(self.first_run_ending_after(slot)).is_some_and(|run| run.start <= slot)
    }

    /// Returns the index of the first run that contains this slot, or later slots only.
    fn first_run_ending_after(&self, slot: u32) -> usize {
        // Runs ascend, so this is a binary search.
        self.runs.partition_point(|run| run.end <= slot)
    }

    /// Checks if all of these slots are in the set.
    pub(crate) fn covers(&self, slots: &Range<u32>) -> bool {
        let run = self.runs.get(self.first_run_ending_after(slots.start));
        slots.is_empty() || run.is_some_and(|run| run.start <= slots.start && slots.end <= run.end)
    }

    /// Returns the first run of these slots that is in the set.
    pub(crate) fn first_of(&self, slots: Range<u32>) -> Option<Range<u32>> {
        let run = self.runs.get(self.first_run_ending_after(slots.start))?;
        let (start, end) = (run.start.max(slots.start), run.end.min(slots.end));
        (start < end).then_some(start..end)
    }

    /// Adds a slot. Returns true if it was not in the set before.
    pub(crate) fn insert(&mut self, slot: Slot) -> bool {
        let at = slot.number();
        if self.contains(at) {
            return false;
        }
        self.insert_run(at..at + 1);
        true
    }

    /// Removes a slot.
    pub(crate) fn remove(&mut self, slot: Slot) {
        let at = slot.number();
        let place = self.first_run_ending_after(at);
        let Some(run) = self.runs.get(place).filter(|run| run.start <= at).cloned() else { return };
        let parts = [run.start..at, at + 1..run.end];
        self.runs.splice(place..=place, parts.into_iter().filter(|part| !part.is_empty()));
    }

    /// Adds a run of slots; some may be in the set already.
    pub(crate) fn insert_run(&mut self, slots: Range<u32>) {
        if slots.is_empty() {
            return;
        }
        // All runs that overlap or touch the new one are joined with it.
        let from = self.runs.partition_point(|run| run.end < slots.start);
        let to = from + self.runs[from..].partition_point(|run| run.start <= slots.end);
        let touched = &self.runs[from..to];
        let start = touched.first().map_or(slots.start, |run| run.start.min(slots.start));
        let end = touched.last().map_or(slots.end, |run| run.end.max(slots.end));
        self.runs.splice(from..to, std::iter::once(start..end));
    }

    pub(crate) fn into_runs(self) -> Vec<Range<u32>> {
        self.runs
    }

    /// Returns the slots in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        self.runs.iter().flat_map(Clone::clone).map(Slot::new)
    }

    /// Returns the slots of this set that are not in the other one.
    pub(crate) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Slot> + 'a {
        // Both lists ascend, so runs of `other` that end before `at` are never visited again: linear in all
        // runs.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn slot_set_behaves_like_a_btree_set(
            here in prop::collection::vec((0u32..30, 0u32..6), 0..8),
            there in prop::collection::vec((0u32..30, 0u32..6), 0..8),
            gone in 0u32..40,
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
            let mut fewer = here.clone();
            fewer.remove(Slot::new(gone));
            let mut fewer_set = here_set.clone();
            fewer_set.remove(&gone);
            prop_assert!(fewer.iter().map(Slot::number).eq(fewer_set.iter().copied()));
            for from in 0..40 {
                let first = here.first_of(from..from + 5).map(|found| found.start);
                prop_assert_eq!(first, here_set.range(from..from + 5).next().copied());
                let three = from..from + 3;
                prop_assert_eq!(here.covers(&three), three.clone().all(|slot| here_set.contains(&slot)));
            }
        }
    }
}
