//! Parts of a whole in per cent: whole numbers, `<1 %` of what is there and rounds to nothing.

use context_window::{
    text::plain::{grouped, percentages as percentages_of},
    usage::ContextUsage,
};

/// Returns one part of a whole in per cent, rounded down as levels are (rule V2): `<1 %` of any part that
/// rounds to nothing, and 100 of the whole only.
#[must_use]
pub fn percent(part: impl Into<u128>, whole: impl Into<u128>) -> String {
    let (part, whole) = (part.into(), whole.into());
    match part.saturating_mul(100).checked_div(whole) {
        Some(0) if part > 0 => "<1 %".into(),
        percent => format!("{} %", grouped(u64::try_from(percent.unwrap_or_default()).unwrap_or(u64::MAX))),
    }
}

/// Returns the full conversation in per cent of its limit.
#[must_use]
#[doc(hidden)]
pub fn usage_percent(usage: &ContextUsage) -> String {
    percent(usage.conversation_tokens.tokens, usage.limit)
}

/// Returns the parts of a whole in per cent, by the largest remainders: they sum to 100 where the parts are
/// all of it. A part that rounds to nothing is `<1 %`, and counts as 0.
#[must_use]
pub fn percentages(parts: &[u64], whole: u64) -> Vec<String> {
    let divided = percentages_of(parts, whole).into_iter().zip(parts);
    let label = |(percent, part): (u64, &u64)| match percent {
        0 if *part > 0 => "<1 %".into(),
        percent => format!("{percent} %"),
    };
    divided.map(label).collect()
}

/// Returns the share of one item of a prompt in per cent, as its kind has it ([`percentages`]): an item that
/// is all of its kind has the figure of that kind.
#[must_use]
pub fn share(tokens: u64, whole: u64) -> String {
    percentages(&[tokens], whole).concat()
}
