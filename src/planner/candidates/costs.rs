//! Token counts of candidates, on demand.
//!
//! - Input: candidates, a counter, and one rendering of tool results.
//! - Output: the tokens of each candidate, counted no further than a decision needs.
//! - Rules: N5, S7.
//!
//! The fields are private: whoever holds a [`Costs`] can query counts, but not texts.

use super::{CandidateId, CandidateMap, Candidates};
use crate::{
    error::Error,
    message::Message,
    plan::reason::ExcludedReason,
    planner::{eligibility::Eligibility, rendering::ToolResultRendering, repair},
    provider::weight::Weight,
    provider::{conform::TurnPosition, meter::Meter},
};
use std::{borrow::Cow, cell::RefCell};

/// Counts the candidates of one request, each up to the requested limit and never twice.
pub(crate) struct Costs<'a> {
    candidates: &'a Candidates<'a>,
    meter: &'a Meter,
    rendering: ToolResultRendering,
    /// The weight of each candidate, and the limit up to which it was counted.
    known: RefCell<CandidateMap<(Weight, u64)>>,
    /// The largest number of tokens that any count is compared with among many budgets; `None` for one
    /// budget. Candidates are counted up to this number, once for all budgets.
    many_budgets: Option<u64>,
}

impl<'a> Costs<'a> {
    /// Creates the costs for one budget, with tool results in one rendering (rule S7).
    pub(crate) fn new(
        candidates: &'a Candidates<'a>,
        meter: &'a Meter,
        rendering: ToolResultRendering,
    ) -> Self {
        Self {
            candidates,
            meter,
            rendering,
            known: RefCell::new(CandidateMap::for_candidates(candidates.index())),
            many_budgets: None,
        }
    }

    /// Returns the same costs for many budgets, none of which leaves more than `largest_budget` tokens.
    pub(crate) fn for_many_budgets(self, most: Option<u64>) -> Self {
        Self { many_budgets: most, ..self }
    }

    /// Returns the number of candidates that were counted.
    pub(crate) fn weighed(&self) -> usize {
        self.known.borrow().len()
    }

    /// Returns the largest number of tokens that any cost is compared with. Returns `None` for one budget.
    pub(crate) fn largest_budget(&self) -> Option<u64> {
        self.many_budgets
    }

    /// Returns the rendering of tool results that is counted.
    pub(crate) fn rendering(&self) -> &ToolResultRendering {
        &self.rendering
    }

    pub(super) fn meter(&self) -> &'a Meter {
        self.meter
    }

    pub(super) fn candidates(&self) -> &'a Candidates<'a> {
        self.candidates
    }

    /// Checks if no item of the conversation is archived or has a TTL.
    pub(crate) fn nothing_leaves(&self) -> bool {
        self.candidates.nothing_leaves()
    }

    /// Returns the reason to exclude a candidate before it is counted. Returns `None` if it may be included.
    pub(crate) fn ineligible(&self, id: CandidateId) -> Result<Option<ExcludedReason>, Error> {
        Ok(match self.candidates.eligibility(id)? {
            Eligibility::Out(reason) => Some(reason),
            Eligibility::Eligible | Eligibility::Asks(_) => None,
        })
    }

    /// Counts a candidate, up to `limit` tokens.
    pub(crate) fn weigh(&self, id: CandidateId, limit: u64) -> Result<Weight, Error> {
        #[cfg(test)]
        WEIGHED.with(|weighed| weighed.set(weighed.get() + 1));
        match self.known.borrow().get(id) {
            Some((Weight::Exactly(n), _)) => {
                return Ok(if n <= limit { Weight::Exactly(n) } else { Weight::Over });
            }
            // A count that stopped at a lower limit cannot answer, so it is repeated.
            Some((Weight::Over, counted_to)) if counted_to >= limit => return Ok(Weight::Over),
            _ => {}
        }
        let weight = self.count(id, limit)?;
        self.known.borrow_mut().insert(id, (weight, limit));
        Ok(weight)
    }

    /// Counts a candidate in full, in tokens.
    pub(crate) fn whole(&self, id: CandidateId) -> Result<u64, Error> {
        Ok(self.weigh(id, u64::MAX)?.in_full())
    }

    /// Counts a candidate, up to `limit` tokens, without looking at known counts.
    fn count(&self, id: CandidateId, limit: u64) -> Result<Weight, Error> {
        let (candidates, meter) = (self.candidates, self.meter);
        match id {
            CandidateId::System(at) => meter.message(&candidates.system(at).1, TurnPosition::Preamble, limit),
            CandidateId::State(at) => meter.message(&candidates.state(at).1, TurnPosition::Live, limit),
            CandidateId::Focus => match candidates.focus() {
                Some((_, focus)) => meter.message(focus, TurnPosition::Preamble, limit),
                None => Ok(Weight::Exactly(0)),
            },
            CandidateId::Note(at) => {
                meter.message(&candidates.log.note_entries().get(at).message, TurnPosition::Preamble, limit)
            }
            CandidateId::Summary(at) => meter.message(candidates.summary(at).2, TurnPosition::Past, limit),
            CandidateId::Document(rank) => {
                let hash = candidates.index().document(rank).hash;
                meter.document(candidates.document(rank), hash, limit)
            }
            CandidateId::UserMessage(_) => self.sum(id, &[], limit),
            CandidateId::Exchange(at) => {
                let placeholders =
                    repair::synthetic_results(candidates.log, candidates.log.turns().exchange(at));
                self.sum(id, &placeholders, limit)
            }
        }
    }

    /// Counts the messages of a candidate with the texts retained before it and its placeholder results.
    fn sum(&self, id: CandidateId, placeholders: &[Message], limit: u64) -> Result<Weight, Error> {
        let mut sum = 0;
        let turn_position = self.candidates.turn_position(id);
        let members =
            self.candidates.members(id).into_iter().map(|at| self.candidates.rendered(at, &self.rendering));
        // Retained texts count with the candidate that they precede: both are included or excluded together.
        let released = self.rendering.released_before;
        let place = self.candidates.place_of(id);
        let before =
            place.map(|at| self.candidates.retained().messages_before(at, released)).unwrap_or_default();
        let before = before.into_iter().map(Cow::Owned);
        for message in before.chain(members).chain(placeholders.iter().map(Cow::Borrowed)) {
            match self.meter.message(&message, turn_position, limit - sum)? {
                Weight::Exactly(n) => sum += n,
                Weight::Over => return Ok(Weight::Over),
            }
        }
        Ok(Weight::Exactly(sum))
    }

    /// Returns the sum of those candidates that can be sent, in tokens. Returns `None` if one of them is
    /// larger than every budget.
    pub(crate) fn together(&self, ids: impl IntoIterator<Item = CandidateId>) -> Result<Option<u64>, Error> {
        let most = self.many_budgets.unwrap_or(u64::MAX);
        let mut sum = 0u64;
        for id in ids {
            if self.ineligible(id)?.is_some() {
                continue;
            }
            let Weight::Exactly(n) = self.weigh(id, most)? else { return Ok(None) };
            sum = sum.saturating_add(n);
        }
        Ok(Some(sum))
    }
}

#[cfg(test)]
thread_local! {
    /// The number of times that a candidate was counted or looked up.
    pub(crate) static WEIGHED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
