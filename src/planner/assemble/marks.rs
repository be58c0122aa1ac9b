//! Places of cache breakpoints: the ends of the parts that the next prompt begins with too.

use super::{PlanContext, included::Draft};
use crate::message::Mark;

/// The number of positions back in which a provider looks for an earlier request's cache, less some that a
/// mark itself takes (Anthropic: 20).
const LOOKBACK: usize = 18;

/// The stable ends that are long enough for the model's cache, and one between where the live turn is so long
/// that the last of them would not be found from the next request.
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
    if let [.., before, last] = marks[..]
        && last.message - before.message > LOOKBACK
    {
        let between = last.message - LOOKBACK;
        let part = messages[between].parts().len().saturating_sub(1);
        marks.insert(marks.len() - 1, Mark { message: between, part });
    }
    marks
}

/// Marks moved to where their messages are in the provider's form: `ends` is the last part that each message
/// had, `places` where that part is now.
pub(super) fn placed(marks: &[Mark], ends: &[usize], places: &[Mark]) -> Vec<Mark> {
    let now = |mark: &Mark| {
        let (had, end) = (ends[mark.message], places[mark.message]);
        Mark { part: end.part.saturating_sub(had - mark.part.min(had)), ..end }
    };
    let mut all: Vec<Mark> = marks.iter().map(now).collect();
    all.dedup();
    all
}
