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
        let present = hypothesis.below(budget)?;
        found.upwards(hypothesis, budget, &present)?;
        found.downwards(hypothesis, &present)?;
        Ok(found)
    }

    fn upwards(&mut self, hypothesis: &Hypothesis<'_>, budget: u64, present: &Piece) -> Result<(), Error> {
        let mut before = Piece::default();
        let mut at = budget;
        loop {
            let piece = hypothesis.above(at)?;
            let mut gone = None;
            for key in hypothesis.without(&piece, &before) {
                if let Some(track) = self.tracks.get_mut(&key) {
                    track.since = Some(at);
                    if track.intervals.is_empty() && at > budget {
                        track
                            .leaves_then
                            .clone_from(gone.get_or_insert_with(|| hypothesis.without(present, &piece)));
                    }
                }
            }
            for key in hypothesis.without(&before, &piece) {
                if let Some(track) = self.tracks.get_mut(&key) {
                    track.close(Some(at - 1));
                }
            }
            if piece.to >= hypothesis.most {
                break;
            }
            at = piece.to + 1;
            before = piece;
        }
        self.tracks.values_mut().for_each(|track| track.close(None));
        Ok(())
    }

    fn downwards(&mut self, hypothesis: &Hypothesis<'_>, present: &Piece) -> Result<(), Error> {
        let minimum = hypothesis.minimum();
        let leaves = |key: &Key| !minimum.contains(key) && hypothesis.has(present, *key);
        let mut waiting: BTreeSet<Key> = self.tracks.keys().copied().filter(leaves).collect();
        let mut above = None;
        let mut from = present.from;
        while from > 1 && !waiting.is_empty() {
            let piece = hypothesis.below(from - 1)?;
            for key in hypothesis.without(above.as_ref().unwrap_or(present), &piece) {
                if let (true, Some(track)) = (waiting.remove(&key), self.tracks.get_mut(&key)) {
                    track.leaves_at = Some(from - 1);
                }
            }
            from = piece.from;
            above = Some(piece);
        }
        Ok(())
    }
}
