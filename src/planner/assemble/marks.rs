//! Places of cache breakpoints: the ends of the parts that the next prompt repeats.
//!
//! - Input: the stable ends of a draft, and the cache rules of the model.
//! - Output: the marks in the messages of the provider's form.
//! - Rules: O1, S10.

use super::{PlanContext, laid_out::Draft};
use crate::message::Mark;

/// The number of positions that a provider looks back for the cache of an earlier request. Anthropic looks
/// back 20; this is less, because the marks take positions themselves.
const LOOKBACK: usize = 18;

/// Returns the stable ends with enough tokens before them for the model's cache.
///
/// Adds a mark if the live turn is so long that the next request would not find the last one.
pub(super) fn long_enough(draft: &Draft, context: &PlanContext<'_>) -> Vec<Mark> {
    let least = context.model.cache.and_then(|cache| cache.min_tokens).unwrap_or_default();
    let messages = &draft.prompt.messages;
    let tools: i128 = context.overhead.iter().map(|line| i128::from(line.tokens)).sum();
    let long = |mark: &Mark| {
        let rows = draft.first_rows.get(mark.message + 1).copied().unwrap_or(draft.rows.len());
        let tokens: u64 = draft.rows[..rows].iter().map(|row| row.token_estimate.tokens).sum();
        i128::from(tokens) + tools >= i128::from(least)
    };
    let mut marks: Vec<Mark> = draft.stable.iter().filter(|mark| long(mark)).copied().collect();
    // The new mark is `LOOKBACK` messages before the last one, within reach of the next request.
    if let [.., before, last] = marks[..]
        && last.message - before.message > LOOKBACK
    {
        let between = last.message - LOOKBACK;
        let part = messages[between].parts().len().saturating_sub(1);
        marks.insert(marks.len() - 1, Mark { message: between, part });
    }
    marks
}

/// Moves marks to the places of their messages in the provider's form. `ends` contains the last part of each
/// message before, and `places` the place of that part now.
pub(super) fn placed(marks: &[Mark], ends: &[usize], places: &[Mark]) -> Vec<Mark> {
    let now = |mark: &Mark| {
        let (had, end) = (ends[mark.message], places[mark.message]);
        Mark { part: end.part.saturating_sub(had - mark.part.min(had)), ..end }
    };
    let mut all: Vec<Mark> = marks.iter().map(now).collect();
    all.dedup();
    all
}
