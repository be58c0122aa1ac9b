//! The fill with documents by rank (rule S8) for many budgets, without a look at each document.
//!
//! Input: a tree with the token costs of the documents, the included slots, and a room in tokens. Output: the
//! slots that fit. Rule: documents (S8).

use super::tree::{Stretch, Tree};
use crate::{
    config::RagFill,
    planner::select::{Room, SlotSet, Walker},
};
use std::ops::Range;

/// The slots that fit into an offer of tokens.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Slots that were not included before and fit.
    pub(super) runs: Vec<Range<u32>>,
    /// Tokens of these slots.
    pub(super) tokens: u64,
    /// Tokens left of the offer.
    pub(super) left: u64,
    /// The smallest number of additional tokens that would include another slot, if known.
    pub(super) over: Option<u64>,
}

impl Filled {
    pub(super) fn new(tokens: u64) -> Self {
        Self { left: tokens, ..Self::default() }
    }

    /// Offers `tokens` to all slots that are not included, in order. The included slots do not change during
    /// the offer, so no slot is visited or paid for twice.
    pub(super) fn from_offer(included: &SlotSet, costs: &Tree<Stretch>, tokens: u64, fill: RagFill) -> Self {
        let mut filled = Self::new(tokens);
        let len = costs.len();
        let mut at = 0;
        while at < len {
            // Included slots form runs, and each is skipped as a whole. The work is logarithmic for each run,
            // and for each slot that does not fit.
            let run = included.first_of(at as u32..len as u32);
            let (end, behind) = run.map_or((len, len), |run| (run.start as usize, run.end as usize));
            let left = filled.left;
            let (to, fitting) = costs.search(at, end, |all| all.tokens <= left);
            filled.include(at as u32..to as u32, fitting.tokens);
            if to == end {
                at = behind;
                continue;
            }
            let left = filled.left;
            // The slot `to` does not fit. Backfill continues with the next slot that fits,
            // and prefix stops here.
            let (next, passed) = match fill {
                RagFill::Backfill => costs.search(to, len, |all| all.least > left),
                RagFill::Prefix => (len, costs.get(to)),
            };
            filled.pass_over(passed.least);
            at = next;
        }
        filled
    }

    /// Includes a run of slots that fit.
    pub(super) fn include(&mut self, slots: Range<u32>, tokens: u64) {
        if !slots.is_empty() {
            self.runs.push(slots);
            self.left -= tokens;
            self.tokens += tokens;
        }
    }

    /// Records the tokens of the smallest candidate that was passed over. A candidate larger than any budget
    /// has `u64::MAX` tokens, and is ignored because every budget excludes it.
    pub(super) fn pass_over(&mut self, tokens: u64) {
        let by = (tokens < u64::MAX).then(|| tokens.saturating_sub(self.left));
        self.over = self.over.into_iter().chain(by).min();
    }

    /// Reports the offer to the walker. The tokens left only fall during an offer, so the last value is the
    /// limit.
    pub(super) fn report(&self, walker: &impl Walker, offer: Room) {
        // A candidate without tokens fits into any remainder, so it limits nothing.
        if self.tokens > 0 {
            walker.fits(offer, self.left);
        }
        if let Some(by) = self.over {
            walker.too_large(offer, by);
        }
    }
}

impl SlotSet {
    /// Adds the slots that fit.
    pub(super) fn extend(&mut self, filled: &Filled) {
        for run in &filled.runs {
            self.insert_run(run.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::candidates::Slot;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Checks successive offers, as sections, free tokens and released reserves make them. Each slot is
        /// paid for once, and the included slots are those that a walk from the first slot on includes.
        #[test]
        fn fill_equals_a_step_by_step_walk(
            sizes in prop::collection::vec(prop_oneof![9 => 0u64..50, 1 => Just(u64::MAX)], 1..24),
            already in prop::collection::vec(0u32..24, 0..4),
            rooms in prop::collection::vec(0u64..120, 1..6),
            prefix in any::<bool>(),
        ) {
            let costs = Tree::new(sizes.iter().map(|size| Stretch::one(*size)));
            let mut slots = SlotSet::default();
            let mut walked = BTreeSet::new();
            for place in already.into_iter().filter(|place| (*place as usize) < sizes.len()) {
                prop_assert_eq!(slots.insert(Slot::new(place)), walked.insert(place));
            }
            for room in rooms {
                let fill = if prefix { RagFill::Prefix } else { RagFill::Backfill };
                let filled = Filled::from_offer(&slots, &costs, room, fill);
                let (mut left, mut paid, mut least) = (room, 0, None);
                let before = walked.clone();
                for place in (0..sizes.len() as u32).filter(|place| !before.contains(place)) {
                    let size = sizes[place as usize];
                    if size <= left {
                        (left, paid) = (left - size, paid + size);
                        walked.insert(place);
                        continue;
                    }
                    least = least.into_iter().chain((size < u64::MAX).then(|| size - left)).min();
                    if prefix {
                        break;
                    }
                }
                slots.extend(&filled);
                prop_assert_eq!((filled.tokens, filled.left), (paid, left));
                prop_assert!(slots.iter().map(Slot::number).eq(walked.iter().copied()));
                prop_assert_eq!(slots.len(), walked.len());
                // A slot that was included before and is larger than the tokens left may count as passed
                // over. Then the known distance to another decision is too small, but never too large.
                let bears = |by: Option<u64>| by.unwrap_or(u64::MAX);
                prop_assert!(bears(filled.over) <= bears(least), "{:?} {:?}", filled.over, least);
            }
        }
    }
}
