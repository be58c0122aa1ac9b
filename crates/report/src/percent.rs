//! Parts of a whole in per cent, as whole numbers. A part that rounds to 0 but is not 0 is `<1 %`.

use context_window::{
    text::plain::{grouped, percentages as percentages_of},
    usage::ContextUsage,
};

/// Returns a part of a whole in per cent, rounded down like usage levels (percentages, rule V2). A part above
/// 0 that rounds to 0 is `<1 %`, and only the whole is 100.
#[must_use]
pub fn percent(part: impl Into<u128>, whole: impl Into<u128>) -> String {
    let (part, whole) = (part.into(), whole.into());
    match part.saturating_mul(100).checked_div(whole) {
        Some(0) if part > 0 => "<1 %".into(),
        percent => format!("{} %", grouped(u64::try_from(percent.unwrap_or_default()).unwrap_or(u64::MAX))),
    }
}

/// Returns the tokens of the full conversation in per cent of its limit.
#[must_use]
#[doc(hidden)]
pub fn usage_percent(usage: &ContextUsage) -> String {
    percent(usage.conversation_tokens.tokens, usage.limit)
}

/// Returns the parts of a whole in per cent, by the largest remainders. They sum to 100 if the parts make up
/// the whole. A part above 0 that rounds to 0 is `<1 %` and counts as 0.
#[must_use]
pub fn percentages(parts: &[u64], whole: u64) -> Vec<String> {
    let divided = percentages_of(parts, whole).into_iter().zip(parts);
    let label = |(percent, part): (u64, &u64)| match percent {
        0 if *part > 0 => "<1 %".into(),
        percent => format!("{percent} %"),
    };
    divided.map(label).collect()
}

/// Returns the share of one item of a prompt in per cent. It is rounded like [`percentages`], so an item that
/// is the only one of its kind has the same figure as the kind.
#[must_use]
pub fn share(tokens: u64, whole: u64) -> String {
    percentages(&[tokens], whole).concat()
}
