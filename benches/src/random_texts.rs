//! Pseudo-random texts, the same in each run.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::should_implement_trait,
    reason = "the numbers are small, and no decision depends on them"
)]

use std::ops::Range;

/// A generator of texts from invented words.
#[derive(Debug)]
pub struct RandomTexts {
    seed: u64,
    words: Vec<String>,
}

impl RandomTexts {
    /// Invents words, each with a number of letters in this range.
    #[must_use]
    pub fn new(words: usize, letters: Range<usize>) -> Self {
        let mut texts = Self { seed: 7, words: Vec::with_capacity(words) };
        for _ in 0..words {
            let length = letters.start + texts.next() % letters.len();
            let word = (0..length).map(|_| char::from(b'a' + (texts.next() % 26) as u8)).collect();
            texts.words.push(word);
        }
        texts
    }

    fn next(&mut self) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) as usize
    }

    /// Returns a text in which each word is as frequent as any other.
    pub fn text(&mut self, words: usize) -> String {
        let words: Vec<usize> = (0..words).map(|_| self.next() % self.words.len()).collect();
        self.joined(&words)
    }

    /// Returns a text whose words have the frequencies of a language: the n-th is n times as rare as the
    /// first (Zipf).
    pub fn natural_text(&mut self, words: usize) -> String {
        let most = self.words.len();
        let words: Vec<usize> = (0..words)
            .map(|_| {
                // The inverse of the distribution's sum: logarithmic in the rank.
                let share = self.next() as f64 / (1u64 << 31) as f64;
                ((most as f64).powf(share) as usize - 1).min(most - 1)
            })
            .collect();
        self.joined(&words)
    }

    fn joined(&self, words: &[usize]) -> String {
        words.iter().map(|at| self.words[*at].as_str()).collect::<Vec<_>>().join(" ")
    }
}
