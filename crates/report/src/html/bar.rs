//! Bars: lengths in whole numbers, drawn without any style of their own.

use serde::Serialize;

/// How long a whole bar is, in its own units.
const WHOLE: u64 = 10_000;

/// A bar of segments that stand one behind the other.
#[derive(Debug, Default, Serialize)]
pub(super) struct Bar {
    segments: Vec<Segment>,
    /// Where the budget ends, if that is inside.
    mark: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Segment {
    class: &'static str,
    x: u64,
    width: u64,
}

impl Bar {
    /// A bar of these lengths where `whole` is its full length, with a mark at `mark`.
    pub(super) fn new(lengths: &[(&'static str, u64)], whole: u64, mark: u64) -> Self {
        let at = |tokens: u64| scaled(tokens, whole);
        let mut from = 0_u64;
        let segments = lengths.iter().filter(|(_, length)| *length > 0).map(|(class, length)| {
            let (x, end) = (at(from), at(from.saturating_add(*length)));
            from = from.saturating_add(*length);
            // What there is can be seen, however little it is.
            Segment { class, x, width: (end - x).max(WHOLE / 400) }
        });
        let segments = segments.collect();
        let mark = at(mark);
        Self { segments, mark: (mark > 0 && mark < WHOLE).then_some(mark) }
    }
}

fn scaled(tokens: u64, whole: u64) -> u64 {
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
