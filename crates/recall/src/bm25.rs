//! Okapi BM25 (Robertson and others 1994) in whole numbers, so that every machine ranks alike.
//!
//! - Input: the numbers of texts and words, and how often a word is in a text.
//! - Output: the score of the word for the text, in fixed point.

use crate::logarithm::{FRACTION, log2};

/// The number of counts and the number of lengths whose frequencies are kept.
const COUNTS: u32 = 16;
const LENGTHS: u32 = 640;

/// The statistics of a collection of texts.
pub(crate) struct Bm25 {
    texts: u64,
    words: u64,
    /// The weight of the length of a text (b), in per mille.
    length_weight: u64,
    /// Frequencies by length and count, plus 1; 0 is not computed yet. A division for each word of each text
    /// would take most of the time of a query.
    known: Vec<u32>,
}

impl Bm25 {
    pub(crate) fn new(texts: u64, words: u64, length_weight: u64) -> Self {
        Self { texts, words, length_weight, known: vec![0; (COUNTS * LENGTHS) as usize] }
    }

    /// Returns the logarithm of 1 + (N - n + 0.5) / (n + 0.5), to the base 2. The base changes no order.
    pub(crate) fn rarity(&self, containing: u64) -> u64 {
        log2(2 * self.texts + 2, 2 * containing + 1)
    }

    /// Returns the score of a word of this rarity that is `count` times in a text of `length` words.
    pub(crate) fn score(&mut self, rarity: u64, count: u32, length: u32) -> u64 {
        (rarity * self.frequency(count, length)) >> FRACTION
    }

    fn frequency(&mut self, count: u32, length: u32) -> u64 {
        if count >= COUNTS || length >= LENGTHS {
            return self.exact_frequency(count, length);
        }
        let at = (length * COUNTS + count) as usize;
        if self.known[at] == 0 {
            self.known[at] = self.exact_frequency(count, length) as u32 + 1;
        }
        u64::from(self.known[at] - 1)
    }

    /// Returns f (k + 1) / (f + k (1 - b + b length / average)) with k = 1.2.
    fn exact_frequency(&self, count: u32, length: u32) -> u64 {
        let (count, words) = (u128::from(count), u128::from(self.words));
        let relative_length = u128::from(length) * u128::from(self.texts);
        let b = u128::from(self.length_weight);
        let divisor = 10_000 * count * words + 12 * ((1_000 - b) * words + b * relative_length);
        (((22_000 * count * words) << FRACTION) / divisor.max(1)) as u64
    }
}
