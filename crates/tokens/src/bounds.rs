//! Token limits that follow from the byte length of a text, before any tokenization (byte bounds, rule N5).
//! `docs/reference/counting.md` lists them.

/// Bounds of one vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The maximum number of bytes that one token covers, or `None` if it is not known.
    pub(super) longest: Option<u64>,
    /// True if a normalizer composes characters first. Then only some bytes are certain to reach the
    /// vocabulary.
    pub(super) composes: bool,
    /// The maximum number of tokens that one byte produces, or `None` if it is not known.
    pub(super) per_byte: Option<u64>,
}

/// The maximum number of bytes of a text per byte of its composed form. A composed character has at least 1
/// byte. It decomposes into at most 4 characters of at most 4 bytes each.
const COMPOSED: u64 = 16;

impl Bounds {
    /// Returns true if the byte length alone proves that the text has more than `limit` tokens.
    pub(super) fn surely_over(self, text: &str, limit: u64) -> bool {
        let Some(longest) = self.longest else { return false };
        let covered = limit.saturating_mul(longest);
        let bytes = text.len() as u64;
        self.covers(limit).is_some_and(|most| bytes > most)
            || self.composes && bytes > covered && plain_bytes(text, covered) > covered
    }

    /// Returns the maximum number of bytes of a text that `tokens` tokens can cover, or `None` if it is not
    /// known.
    pub(super) fn covers(self, tokens: u64) -> Option<u64> {
        let composed = if self.composes { COMPOSED } else { 1 };
        Some(self.longest?.saturating_mul(tokens).saturating_mul(composed))
    }

    /// Returns the maximum number of tokens of a text of `bytes` bytes, or `None` if it is not known.
    pub(super) fn most(self, bytes: u64) -> Option<u64> {
        Some(self.per_byte?.saturating_mul(bytes))
    }
}

/// Counts the bytes that every normal form keeps: ASCII characters with no combining character after them.
/// Stops once the count exceeds `enough`.
fn plain_bytes(text: &str, enough: u64) -> u64 {
    let mut sum = 0;
    let bytes = text.as_bytes();
    // Blocks of 4,096 bytes: within a block the loop has no branch, so the compiler can vectorize it.
    for start in (0..bytes.len()).step_by(4096) {
        let end = (start + 4096).min(bytes.len());
        // The last byte of the text has no successor; a space is ASCII and never combines.
        let next = bytes[start + 1..].iter().chain(std::iter::once(&b' '));
        sum +=
            bytes[start..end].iter().zip(next).filter(|(a, b)| a.is_ascii() && b.is_ascii()).count() as u64;
        if sum > enough {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_limit_is_returned_only_if_proven() {
        let bounds = Bounds { longest: Some(4), composes: false, per_byte: Some(1) };
        assert!(!bounds.surely_over("abcdefgh", 2) && bounds.surely_over("abcdefghi", 2));
        assert!(!bounds.surely_over("", 0) && bounds.surely_over("a", 0));
        assert!(!bounds.surely_over("abc", u64::MAX));
        assert_eq!(bounds.most(7), Some(7));
        assert!(!Bounds::default().surely_over("a", 0) && Bounds::default().most(1).is_none());
    }

    #[test]
    fn normal_form_keeps_plain_ascii() {
        let bounds = Bounds { longest: Some(4), composes: true, per_byte: Some(3) };
        assert!(bounds.surely_over("abcdefghi", 2));
        // An accent may combine with the letter before it.
        assert!(!bounds.surely_over("abcdefgh\u{301}", 2));
        let marks = "\u{1100}\u{1161}\u{11a8}".repeat(100);
        assert!(!bounds.surely_over(&marks, 20) && bounds.surely_over(&marks, 14));
        assert!(
            bounds.surely_over(&"a".repeat(10_000), 2_499) && !bounds.surely_over(&"a".repeat(10_000), 2_500)
        );
    }
}
