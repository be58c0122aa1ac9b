//! Shorter tool results, if they let a prompt fit.
//!
//! - Input: the costs of one rendering, and a budget.
//! - Output: a rendering with old results cleared, results of the open exchange clipped, or retained texts
//!   released.
//! - Rules: S7, S10, N5.

use super::{
    CandidateId, Candidates, Costs,
    results::{answered_exchange, stub},
};
use crate::{
    config::ToolResults,
    conversation::ExchangeIndex,
    error::Error,
    message::{Message, Role},
    planner::rendering::ToolResultRendering,
    provider::weight::Weight,
    provider::{conform::TurnPosition, wording},
};

/// Minimum number of bytes that a clipped result keeps. A shorter one carries no useful information.
const MIN_CLIPPED_BYTES: usize = 200;

impl Costs<'_> {
    /// Returns a rendering that clears all results but the newest `keep_results`. Returns `None` if that
    /// frees fewer than `clear_at_least` tokens inside the window that starts at `start`.
    ///
    /// The newest results are examined first, and at most `most` tokens of them, so that the effort follows
    /// the budget (rule N5). After each of them `compared` is called with the rest of `most`, which is
    /// negative if the sum exceeds it.
    pub(crate) fn cleared_further(
        &self,
        start: CandidateId,
        most: u64,
        compared: impl Fn(i128),
    ) -> Result<Option<ToolResultRendering>, Error> {
        let (candidates, results) = (self.candidates(), self.rendering());
        let options = &candidates.config.conversation;
        let first = candidates.members(start).first().copied().unwrap_or_default();
        if !candidates.index().clears_results() {
            return Ok(None);
        }
        let boundary = newest_boundary(candidates, options.keep_results, first);
        let (mut freed, mut weighed) = (0, 0);
        for position in (results.cleared_before.max(first)..boundary).rev() {
            let Some(stub) = stub(candidates, position) else { continue };
            if !self.is_in_the_window(position, start)? {
                continue;
            }
            // `freed` is below the target here, so the difference does not wrap.
            let (saved, cost) = self.saved(position, &stub, options.clear_at_least.max(1) - freed)?;
            freed += saved;
            weighed += cost;
            if freed >= options.clear_at_least.max(1) {
                return Ok(Some(ToolResultRendering {
                    cleared_before: boundary,
                    is_moved: true,
                    ..self.rendering().clone()
                }));
            }
            compared(i128::from(most) - i128::from(weighed));
            if weighed > most {
                break;
            }
        }
        Ok(None)
    }

    /// Checks if the exchange of a result can be sent, and is in a window that starts at `start`.
    fn is_in_the_window(&self, position: u32, start: CandidateId) -> Result<bool, Error> {
        let candidates = self.candidates();
        let Some(at) = answered_exchange(candidates, position) else { return Ok(false) };
        let id = CandidateId::Exchange(at);
        let inside = match start {
            CandidateId::Exchange(first) => at >= first,
            _ => candidates.index().turn_of(id) >= candidates.index().turn_of(start),
        };
        Ok(inside && self.ineligible(id)?.is_none())
    }

    /// Returns the tokens that a stub saves, and the counted tokens of the result. The saving is counted up
    /// to `wanted`.
    fn saved(&self, position: u32, stub: &Message, wanted: u64) -> Result<(u64, u64), Error> {
        let stub = self.meter().message(stub, TurnPosition::Past, u64::MAX)?.in_full();
        let limit = stub.saturating_add(wanted);
        Ok(
            match self.meter().message(
                &self.candidates().full_message(position),
                TurnPosition::Past,
                limit,
            )? {
                Weight::Exactly(tokens) => (tokens.saturating_sub(stub), tokens),
                Weight::Over => (wanted, limit),
            },
        )
    }

    /// Returns a rendering without the documents and state of earlier turns. Returns `None` if there are none
    /// (rule S10).
    pub(crate) fn releasing_earlier_turns(&self) -> Option<ToolResultRendering> {
        let candidates = self.candidates();
        candidates.retained().release_before(candidates.log.live_question()?, self.rendering())
    }

    /// Returns a rendering without any retained document or state. Returns `None` if there is none.
    pub(crate) fn releasing_everything(&self) -> Option<ToolResultRendering> {
        let candidates = self.candidates();
        let all = candidates.log.turns().messages();
        candidates
            .retained()
            .release_before(candidates.retained().unanswered().unwrap_or(all), self.rendering())
    }

    /// Returns a rendering that clips the results of the open exchange so that a minimum of `least` tokens
    /// fits into `total`.
    ///
    /// All results are clipped to the same length, the longest that fits. Returns `None` if there is no
    /// result to clip, or if even the shortest clips do not fit.
    pub(crate) fn clipped(&self, least: u64, total: u64) -> Result<Option<ToolResultRendering>, Error> {
        let Some(open) = self.clippable() else { return Ok(None) };
        // Only the open exchange becomes shorter, so it gets the rest of the total.
        let others = least.saturating_sub(self.whole(CandidateId::Exchange(open))?);
        let Some(room) = total.checked_sub(others) else { return Ok(None) };
        let results = self.results_of(open);
        let texts = results.iter().map(|at| self.candidates().log.message(*at));
        let longest = texts.map(|message| message.texts().map(str::len).sum()).max().unwrap_or_default();
        // Binary search for the longest clips that fit. Each step counts the open exchange once.
        let mut best = None;
        let (mut low, mut high) = (MIN_CLIPPED_BYTES, longest);
        while low <= high {
            let middle = usize::midpoint(low, high);
            let tried = self.clipped_to(&results, middle);
            let fits = |costs: Self| costs.weigh(CandidateId::Exchange(open), room);
            if !tried.clipped.is_empty() && fits(self.with(tried.clone()))? != Weight::Over {
                best = Some(tried);
                low = middle + 1;
            } else {
                // `middle` is at least `MIN_CLIPPED_BYTES`, so this does not wrap.
                high = middle - 1;
            }
        }
        Ok(best)
    }

    /// Returns the tokens of the minimum that the shortest clips would save. The minimum would fit a budget
    /// smaller by this amount.
    pub(crate) fn clips_could_save(&self) -> Result<u64, Error> {
        let Some(open) = self.clippable() else { return Ok(0) };
        let shortest = self.with(self.clipped_to(&self.results_of(open), MIN_CLIPPED_BYTES));
        let id = CandidateId::Exchange(open);
        Ok(self.whole(id)?.saturating_sub(shortest.whole(id)?))
    }

    /// Returns the exchange whose results may be clipped and are not clipped yet.
    fn clippable(&self) -> Option<ExchangeIndex> {
        let (candidates, results) = (self.candidates(), self.rendering());
        let clips =
            matches!(candidates.config.conversation.tool_results, ToolResults::Clip | ToolResults::Offload);
        let required = |open: &ExchangeIndex| {
            candidates.index().required_conversation.contains(&CandidateId::Exchange(*open))
        };
        candidates.open.filter(required).filter(|_| clips && results.clipped.is_empty())
    }

    /// Returns the positions of the results of an exchange.
    fn results_of(&self, exchange: ExchangeIndex) -> Vec<u32> {
        self.candidates().log.turns().exchange(exchange).answers.iter().flatten().copied().collect()
    }

    /// Returns this rendering with each of these results clipped to `bytes` bytes.
    fn clipped_to(&self, results: &[u32], bytes: usize) -> ToolResultRendering {
        let candidates = self.candidates();
        let clip = |at: &u32| {
            let (message, id) = (candidates.log.message(*at), candidates.log.message_id(*at));
            // A result that no form makes shorter is clipped like any other.
            let kept = candidates.offloaded_bytes(*at).filter(|_| candidates.offloaded(*at).is_some());
            let clipped = match kept {
                // It is that short already.
                Some(kept) if kept <= bytes as u64 => None,
                Some(_) => message.with_shorter_texts(|text| wording::offloaded_result(&id, text, bytes)),
                None => message.with_shorter_texts(|text| wording::clipped_result(&id, text, bytes)),
            };
            Some((*at, clipped?))
        };
        ToolResultRendering { clipped: results.iter().filter_map(clip).collect(), ..self.rendering().clone() }
    }

    /// Creates the costs of the same candidates for another rendering.
    fn with(&self, rendering: ToolResultRendering) -> Self {
        Self::new(self.candidates(), self.meter(), rendering)
    }
}

/// Returns the position of the oldest among the newest `keep` results, at most that of the open exchange.
/// Returns `first` if there are fewer results from there on.
fn newest_boundary(candidates: &Candidates<'_>, keep: u64, first: u32) -> u32 {
    let messages = candidates.log.turns().messages();
    let open = candidates.open.map_or(messages, |open| candidates.log.turns().exchange(open).at);
    let mut left = keep;
    let mut boundary = messages;
    for position in (first..messages).rev() {
        if left == 0 {
            return boundary.min(open).min(messages - 1);
        }
        if is_answer(candidates, position) {
            left -= 1;
            boundary = position;
        }
    }
    first
}

/// Checks if a message is a tool result of an exchange.
fn is_answer(candidates: &Candidates<'_>, position: u32) -> bool {
    candidates.log.message(position).role() == Role::Tool && answered_exchange(candidates, position).is_some()
}
