//! Estimates of token counts from the number of characters: rough and fast.

use super::bounds::Bounds;

/// A ratio of characters (Unicode scalar values) per token, in tenths, so that 3.5 is an integer.
pub(super) struct CharsPerToken {
    tenths: u64,
    pub(super) per_message: Option<u64>,
}

pub(super) const FOUR: CharsPerToken = CharsPerToken { tenths: 40, per_message: None };

pub(super) const THREE_AND_A_HALF: CharsPerToken = CharsPerToken { tenths: 35, per_message: Some(10) };

impl CharsPerToken {
    pub(super) fn count(&self, text: &str) -> u64 {
        (text.chars().count() as u64 * 10).div_ceil(self.tenths)
    }

    /// Returns the byte bounds that follow from 1 to 4 bytes per character.
    pub(super) fn bounds(&self) -> Bounds {
        let longest = (self.tenths * 4).div_ceil(10);
        Bounds { longest: Some(longest), composes: false, per_byte: Some(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_scalar_values_and_rounded_up() {
        assert_eq!(FOUR.count(""), 0);
        assert_eq!(FOUR.count("abcd"), 1);
        assert_eq!(FOUR.count("日本語の文"), 2);
        assert_eq!(THREE_AND_A_HALF.count("abcdefg"), 2);
        assert_eq!(THREE_AND_A_HALF.count("abcdefgh"), 3);
    }
}
