//! Bars with lengths in whole numbers, drawn without inline styles.

use serde::Serialize;

/// The length of a full bar, in its own units.
const WHOLE: u64 = 10_000;

/// A bar of consecutive segments.
#[derive(Debug, Default, Serialize)]
pub(super) struct Bar {
    segments: Vec<Segment>,
    /// The position of the budget's end, if it is inside the bar.
    mark: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Segment {
    class: &'static str,
    x: u64,
    width: u64,
}

impl Bar {
    /// Builds a bar from segments of a class and a length. `whole` is the full length of the bar, and `mark`
    /// the position of its mark.
    pub(super) fn new(lengths: &[(&'static str, u64)], whole: u64, mark: u64) -> Self {
        let at = |tokens: u64| scaled(tokens, whole);
        let mut from = 0_u64;
        let segments = lengths.iter().filter(|(_, length)| *length > 0).map(|(class, length)| {
            let (x, end) = (at(from), at(from.saturating_add(*length)));
            from = from.saturating_add(*length);
            // A segment with few tokens is still visible.
            Segment { class, x, width: (end - x).max(WHOLE / 400) }
        });
        let segments = segments.collect();
        let mark = at(mark);
        Self { segments, mark: (mark > 0 && mark < WHOLE).then_some(mark) }
    }
}

fn scaled(tokens: u64, whole: u64) -> u64 {
    // The product can exceed `u64`.
    let part = u128::from(tokens) * u128::from(WHOLE) / u128::from(whole.max(1));
    u64::try_from(part).unwrap_or(WHOLE).min(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_in_scale_and_never_outside() {
        let bar = Bar::new(&[("a", 25), ("b", 0), ("c", 50)], 100, 100);
        let seen: Vec<_> = bar.segments.iter().map(|one| (one.class, one.x, one.width)).collect();
        assert_eq!(seen, [("a", 0, 2_500), ("c", 2_500, 5_000)]);
        assert_eq!((bar.mark, Bar::new(&[], 100, 40).mark), (None, Some(4_000)));
        assert_eq!(scaled(u64::MAX, 1), WHOLE);
        assert_eq!(scaled(5, 0), WHOLE);
    }
}
