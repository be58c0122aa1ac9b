//! When each item is in, over all budgets of the model.

use super::{
    Interval, LISTED,
    sweep::{Hypothesis, Key, Piece},
};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};

/// What the sweeps found about each item that was asked about.
#[derive(Default)]
pub(super) struct Found {
    tracks: BTreeMap<Key, Track>,
}

/// When one item is in.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// The first budgets at which it is.
    pub(super) intervals: Vec<Interval>,
    pub(super) more: u64,
    pub(super) stays_from: Option<u64>,
    /// What is out when it first comes in, of what is in now.
    pub(super) leaves_then: Vec<Key>,
    /// The largest smaller budget at which it is out.
    pub(super) leaves_at: Option<u64>,
    since: Option<u64>,
}

impl Track {
    pub(super) fn enters_at(&self) -> Option<u64> {
        self.intervals.first().map(|interval| interval.from)
    }

    fn close(&mut self, to: Option<u64>) {
        let Some(from) = self.since.take() else { return };
        if self.intervals.len() < LISTED {
            self.intervals.push(Interval { from, to });
        } else {
            self.more += 1;
        }
        self.stays_from = to.is_none().then_some(from);
    }
}

impl Found {
    pub(super) fn of(&self, key: Key) -> Option<&Track> {
        self.tracks.get(&key)
    }

    /// Looks at every budget from the present one up, and from there down until everything that can leave has left.
    pub(super) fn search(
        hypothesis: &Hypothesis<'_>,
        budget: u64,
        asked: &BTreeSet<Key>,
    ) -> Result<Self, Error> {
        let mut found = Self { tracks: asked.iter().map(|key| (*key, Track::default())).collect() };
        let present = hypothesis.at(budget)?;
        let lower = present.from;
        found.upwards(hypothesis, budget, &present.keys)?;
        found.downwards(hypothesis, lower, &present.keys)?;
        Ok(found)
    }

    fn upwards(&mut self, hypothesis: &Hypothesis<'_>, budget: u64, present: &[Key]) -> Result<(), Error> {
        let mut before: Vec<Key> = Vec::new();
        let mut at = budget;
        loop {
            let Piece { keys, to, .. } = hypothesis.at(at)?;
            let mut gone = None;
            for key in difference(&keys, &before) {
                if let Some(track) = self.tracks.get_mut(&key) {
                    track.since = Some(at);
                    if track.intervals.is_empty() && at > budget {
                        let gone =
                            gone.get_or_insert_with(|| difference(present, &keys).collect::<Vec<Key>>());
                        track.leaves_then.clone_from(gone);
                    }
                }
            }
            for key in difference(&before, &keys) {
                if let Some(track) = self.tracks.get_mut(&key) {
                    track.close(Some(at - 1));
                }
            }
            if to >= hypothesis.most {
                break;
            }
            (before, at) = (keys, to + 1);
        }
        self.tracks.values_mut().for_each(|track| track.close(None));
        Ok(())
    }

    fn downwards(&mut self, hypothesis: &Hypothesis<'_>, from: u64, present: &[Key]) -> Result<(), Error> {
        let minimum = hypothesis.minimum();
        let leaves = |key: &Key| self.tracks.contains_key(key) && !minimum.contains(key);
        let mut waiting: Vec<Key> = present.iter().copied().filter(leaves).collect();
        let mut from = from;
        while from > 1 && !waiting.is_empty() {
            let piece = hypothesis.at(from - 1)?;
            waiting.retain(|key| {
                let is_in = piece.keys.binary_search(key).is_ok();
                if let (false, Some(track)) = (is_in, self.tracks.get_mut(key)) {
                    track.leaves_at = Some(from - 1);
                }
                is_in
            });
            from = piece.from;
        }
        Ok(())
    }
}

/// What is in the first sorted list and not in the second.
fn difference<'a>(these: &'a [Key], those: &'a [Key]) -> impl Iterator<Item = Key> + 'a {
    let mut those = those.iter().peekable();
    these.iter().copied().filter(move |key| {
        while those.next_if(|other| *other < key).is_some() {}
        those.peek() != Some(&key)
    })
}
