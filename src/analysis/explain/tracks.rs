//! The budgets at which each item is included, over all budgets of the model.

use super::{Interval, LISTED, budget_range::BudgetRange, key::Key, sweep::Sweep};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};

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

/// Sweeps over every budget from the present one up, and from there down until every item that can leave
/// has left. `present` holds the keys of the present plan. Returns the budgets of each requested item.
pub(super) fn search(
    sweep: &Sweep<'_>,
    budget: u64,
    requested: &BTreeSet<Key>,
    present: &BTreeSet<Key>,
) -> Result<BTreeMap<Key, Track>, Error> {
    let mut tracks = requested.iter().map(|key| (*key, Track::default())).collect();
    if requested.is_empty() {
        return Ok(tracks);
    }
    let now = sweep.below(budget)?;
    let all: BTreeSet<Key> = now.without(&sweep.empty_range()).into_iter().collect();
    let more: Vec<Key> = present.iter().copied().filter(|key| !all.contains(key)).collect();
    record_present_only(&mut tracks, budget, &more);
    search_upwards(&mut tracks, sweep, budget, &now, &more)?;
    search_downwards(&mut tracks, sweep, now, &all)?;
    Ok(tracks)
}

/// Records items that the plan includes and the sweep does not. This happens if results are clipped,
/// where the sweep counts only the minimum (counterfactual budgets, rule E1).
fn record_present_only(tracks: &mut BTreeMap<Key, Track>, budget: u64, more: &[Key]) {
    for key in more {
        if let Some(track) = tracks.get_mut(key) {
            track.since = Some(budget);
            track.close(Some(budget));
            track.leaves_at = budget.checked_sub(1).filter(|less| *less > 0);
        }
    }
}

fn search_upwards(
    tracks: &mut BTreeMap<Key, Track>,
    sweep: &Sweep<'_>,
    budget: u64,
    present: &BudgetRange<'_>,
    more: &[Key],
) -> Result<(), Error> {
    let mut before = sweep.empty_range();
    let mut at = budget;
    loop {
        let range = sweep.above(at)?;
        let mut left_keys = None;
        for key in range.without(&before) {
            if let Some(track) = tracks.get_mut(&key) {
                track.since = Some(at);
                // Only the first entry above the present budget is described. The excluded items are
                // found once for all items that enter there.
                if track.intervals.is_empty() && at > budget {
                    let left_keys =
                        left_keys.get_or_insert_with(|| find_left_keys(&range, present, more, sweep));
                    track.leaves_then.clone_from(left_keys);
                }
            }
        }
        for key in before.without(&range) {
            if let Some(track) = tracks.get_mut(&key) {
                track.close(Some(at - 1));
            }
        }
        if range.to >= sweep.largest_budget {
            break;
        }
        at = range.to + 1;
        before = range;
    }
    // Items that are still included at the largest budget get an interval without an end.
    for track in tracks.values_mut() {
        track.close(None);
    }
    Ok(())
}

fn search_downwards<'p>(
    tracks: &mut BTreeMap<Key, Track>,
    sweep: &Sweep<'p>,
    present: BudgetRange<'p>,
    all: &BTreeSet<Key>,
) -> Result<(), Error> {
    // The minimum never leaves, so the search does not wait for it.
    let leaves = |key: &Key| !sweep.minimum().contains(key) && all.contains(key);
    let mut waiting: BTreeSet<Key> = tracks.keys().copied().filter(leaves).collect();
    let mut above = present;
    while above.from > 1 && !waiting.is_empty() {
        let at = above.from - 1;
        let range = sweep.below(at)?;
        for key in above.without(&range) {
            if let (true, Some(track)) = (waiting.remove(&key), tracks.get_mut(&key)) {
                track.leaves_at = Some(at);
            }
        }
        above = range;
    }
    Ok(())
}

/// Returns the keys that the present plan includes and a range does not.
fn find_left_keys(
    range: &BudgetRange<'_>,
    present: &BudgetRange<'_>,
    more: &[Key],
    sweep: &Sweep<'_>,
) -> Vec<Key> {
    let mut left_keys = present.without(range);
    if !more.is_empty() {
        let included: BTreeSet<Key> = range.without(&sweep.empty_range()).into_iter().collect();
        left_keys.extend(more.iter().copied().filter(|key| !included.contains(key)));
    }
    left_keys
}
