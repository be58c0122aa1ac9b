//! Parts of a whole in per cent: whole numbers, `<1 %` of what is there and rounds to nothing.

use context_window::{
    text::plain::{grouped, percentages as percentages_of},
    usage::ContextUsage,
};

/// One part of a whole in per cent, to the nearest: `<1 %` of any part that rounds to nothing, and 100 of the whole only. Above
/// the whole it is rounded down.
#[must_use]
pub fn percent(part: impl Into<u128>, whole: impl Into<u128>) -> String {
    let (part, whole) = (part.into(), whole.into());
    let percent = match part.saturating_mul(100).checked_div(whole).unwrap_or_default() {
        down @ 99.. => down,
        _ => part.saturating_mul(100).saturating_add(whole / 2).checked_div(whole).unwrap_or_default(),
    };
    if percent == 0 && part > 0 && whole > 0 { "<1 %".into() } else { format!("{percent} %") }
}

/// The full conversation in per cent of its limit, rounded down as levels are: `<1 %` of any that rounds to nothing.
#[must_use]
#[doc(hidden)]
pub fn usage_percent(usage: &ContextUsage) -> String {
    match usage.percent {
        0 if usage.conversation_tokens.n > 0 => "<1 %".into(),
        percent => format!("{} %", grouped(percent)),
    }
}

/// Parts of a whole in per cent, by the largest remainders: they sum to 100 where the parts are all of it. A part that rounds to
/// nothing is `<1 %`, and counts as 0.
#[must_use]
pub fn percentages(parts: &[u64], whole: u64) -> Vec<String> {
    let divided = percentages_of(parts, whole).into_iter().zip(parts);
    let label = |(percent, part): (u64, &u64)| match percent {
        0 if *part > 0 => "<1 %".into(),
        percent => format!("{percent} %"),
    };
    divided.map(label).collect()
}
