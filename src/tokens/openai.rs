//! The `OpenAI` encodings, embedded: counting through `bpe-openai`, whose worst case is linear.

use super::bounds::Bounds;
use bpe_openai::Tokenizer;

/// No token of either encoding is longer (128 spaces), so a text of more bytes than 128 a token is over any limit
/// without being read.
const LONGEST_TOKEN: u64 = 128;

/// Neither encoding normalises, and each has a token for every byte.
pub(super) const BOUNDS: Bounds =
    Bounds { longest: Some(LONGEST_TOKEN), composes: false, per_byte: Some(1) };

/// `bpe-openai` stops inside a piece that is over the limit, and its source leaves the proof of the last 10 tokens
/// open; a little more room makes its "over" certain.
const SLACK: u64 = 32;

#[derive(Clone, Copy)]
pub(super) enum Encoding {
    O200k,
    Cl100k,
}

impl Encoding {
    fn tokenizer(self) -> &'static Tokenizer {
        match self {
            Self::O200k => bpe_openai::o200k_base(),
            Self::Cl100k => bpe_openai::cl100k_base(),
        }
    }

    pub(super) fn count(self, text: &str) -> u64 {
        self.tokenizer().count(text) as u64
    }

    /// `None` when there are more than `limit` tokens; a count above `limit` may come back too.
    pub(super) fn count_to(self, text: &str, limit: u64) -> Option<u64> {
        if text.len() as u64 <= limit {
            return Some(self.count(text));
        }
        let tokenizer = self.tokenizer();
        let stop = usize::try_from(limit.saturating_add(SLACK)).unwrap_or(usize::MAX);
        let count = tokenizer.count_till_limit(&tokenizer.normalize(text), stop);
        count.map(|n| n as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TokenCounter, tokens::Weight};

    #[test]
    fn counts_are_the_published_ones() {
        // Token counts as the cookbook's examples give them for these encodings.
        assert_eq!(Encoding::O200k.count("tiktoken is great!"), 6);
        assert_eq!(Encoding::Cl100k.count("tiktoken is great!"), 6);
        assert_eq!(Encoding::Cl100k.count("antidisestablishmentarianism"), 6);
    }

    #[test]
    fn control_tokens_in_text_are_text() {
        for encoding in [Encoding::O200k, Encoding::Cl100k] {
            assert!(encoding.count("<|endoftext|>") > 3);
        }
    }

    #[test]
    fn counting_to_a_limit_agrees_with_counting() {
        let texts = ["a b c d e f g", &" ".repeat(300), &"é日".repeat(90), "x"];
        for counter in [TokenCounter::o200k_base(), TokenCounter::cl100k_base()] {
            for text in texts {
                let n = counter.count(text).unwrap().n;
                for limit in 0..n + 40 {
                    let expected = if n <= limit { Weight::Exactly(n) } else { Weight::Over };
                    assert_eq!(counter.count_to(text, limit).unwrap(), expected, "{text} {limit}");
                }
            }
        }
    }
}
