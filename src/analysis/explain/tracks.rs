//! The budgets at which each item is included, over all budgets of the model.

use super::{Interval, LISTED, budget_range::BudgetRange, key::Key, sweep::Sweep};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};

/// The results of the sweeps for each requested item.
#[derive(Default)]
pub(super) struct BudgetTracks {
    tracks: BTreeMap<Key, Track>,
}

/// The budgets at which one item is included, in tokens.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// The first ranges of budgets at which it is included.
    pub(super) intervals: Vec<Interval>,
    pub(super) more: u64,
    pub(super) stays_from: Option<u64>,
    /// Items of the present plan that are excluded at the budget at which it first enters.
    pub(super) leaves_then: Vec<Key>,
    /// The largest smaller budget at which it is excluded.
    pub(super) leaves_at: Option<u64>,
    since: Option<u64>,
}

impl Track {
    pub(super) fn enters_at(&self) -> Option<u64> {
        self.intervals.first().map(|interval| interval.from)
    }

    fn close(&mut self, to: Option<u64>) {
        let Some(from) = self.since.take() else { return };
        // Further intervals are only counted, so that an answer stays short.
        if self.intervals.len() < LISTED {
            self.intervals.push(Interval { from, to });
        } else {
            self.more += 1;
        }
        self.stays_from = to.is_none().then_some(from);
    }
}

impl BudgetTracks {
    pub(super) fn find(&self, key: Key) -> Option<&Track> {
        self.tracks.get(&key)
    }

    /// Sweeps over every budget from the present one up, and from there down until every item that can leave
    /// has left. `present` holds the keys of the present plan.
    pub(super) fn search(
        sweep: &Sweep<'_>,
        budget: u64,
        asked: &BTreeSet<Key>,
        present: &BTreeSet<Key>,
    ) -> Result<Self, Error> {
        let mut found = Self { tracks: asked.iter().map(|key| (*key, Track::default())).collect() };
        if asked.is_empty() {
            return Ok(found);
        }
        let now = sweep.below(budget)?;
        let all: BTreeSet<Key> = now.without(&sweep.nothing()).into_iter().collect();
        let more: Vec<Key> = present.iter().copied().filter(|key| !all.contains(key)).collect();
        found.note_only_at_present(budget, &more);
        found.upwards(sweep, budget, &now, &more)?;
        found.downwards(sweep, now, &all)?;
        Ok(found)
    }

    /// Records items that the plan includes and the sweep does not. This happens if results are clipped,
    /// where the sweep counts only the minimum (counterfactual budgets, rule E1).
    fn note_only_at_present(&mut self, budget: u64, more: &[Key]) {
        for key in more {
            if let Some(track) = self.tracks.get_mut(key) {
                track.since = Some(budget);
                track.close(Some(budget));
                track.leaves_at = budget.checked_sub(1).filter(|less| *less > 0);
            }
        }
    }

    fn upwards(
        &mut self,
        sweep: &Sweep<'_>,
        budget: u64,
        present: &BudgetRange<'_>,
        more: &[Key],
    ) -> Result<(), Error> {
        let mut before = sweep.nothing();
        let mut at = budget;
        loop {
            let range = sweep.above(at)?;
            let mut gone = None;
            for key in range.without(&before) {
                if let Some(track) = self.tracks.get_mut(&key) {
                    track.since = Some(at);
                    // Only the first entry above the present budget is described. The excluded items are
                    // found once for all items that enter there.
                    if track.intervals.is_empty() && at > budget {
                        let gone = gone.get_or_insert_with(|| gone_by(&range, present, more, sweep));
                        track.leaves_then.clone_from(gone);
                    }
                }
            }
            for key in before.without(&range) {
                if let Some(track) = self.tracks.get_mut(&key) {
                    track.close(Some(at - 1));
                }
            }
            if range.to >= sweep.most {
                break;
            }
            at = range.to + 1;
            before = range;
        }
        // Items that are still included at the largest budget get an interval without an end.
        self.tracks.values_mut().for_each(|track| track.close(None));
        Ok(())
    }

    fn downwards<'p>(
        &mut self,
        sweep: &Sweep<'p>,
        present: BudgetRange<'p>,
        all: &BTreeSet<Key>,
    ) -> Result<(), Error> {
        // The minimum never leaves, so the search does not wait for it.
        let leaves = |key: &Key| !sweep.minimum().contains(key) && all.contains(key);
        let mut waiting: BTreeSet<Key> = self.tracks.keys().copied().filter(leaves).collect();
        let mut above = present;
        while above.from > 1 && !waiting.is_empty() {
            let at = above.from - 1;
            let range = sweep.below(at)?;
            for key in above.without(&range) {
                if let (true, Some(track)) = (waiting.remove(&key), self.tracks.get_mut(&key)) {
                    track.leaves_at = Some(at);
                }
            }
            above = range;
        }
        Ok(())
    }
}

/// Returns the keys that the present plan includes and a range does not.
fn gone_by(range: &BudgetRange<'_>, present: &BudgetRange<'_>, more: &[Key], sweep: &Sweep<'_>) -> Vec<Key> {
    let mut gone = present.without(range);
    if !more.is_empty() {
        let held: BTreeSet<Key> = range.without(&sweep.nothing()).into_iter().collect();
        gone.extend(more.iter().copied().filter(|key| !held.contains(key)));
    }
    gone
}
