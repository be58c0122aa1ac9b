//! The `OpenAI` encodings, embedded. A text falls into pieces; a piece that is a token is one, any other is merged, in
//! time linear in its length; short pieces that were counted a moment ago are remembered.

use super::bounds::Bounds;

mod classes;
mod hash;
mod pieces;
mod vocabulary;
mod recent;

use pieces::{Pattern, Pieces};
use std::sync::Once;
use vocabulary::Vocabulary;

/// No token of either encoding is longer (128 spaces), so a text of more bytes than 128 a token is over any limit
/// without being read.
const LONGEST_TOKEN: u64 = 128;

/// Neither encoding normalises, and each has a token for every byte.
pub(super) const BOUNDS: Bounds = Bounds { longest: Some(LONGEST_TOKEN), composes: false, per_byte: Some(1) };

/// A table that begins where a line of the processor's cache does.
#[repr(align(64))]
struct Aligned<T: ?Sized>(T);

static O200K: Vocabulary = {
    static TABLE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.table")));
    Vocabulary::new(&TABLE.0)
};
static CL100K: Vocabulary = {
    static TABLE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.table")));
    Vocabulary::new(&TABLE.0)
};

#[derive(Debug, Clone, Copy)]
pub(super) enum Encoding {
    O200k,
    Cl100k,
}

impl Encoding {
    fn pattern(self) -> Pattern {
        match self {
            Self::O200k => Pattern::O200k,
            Self::Cl100k => Pattern::Cl100k,
        }
    }

    fn vocabulary(self) -> &'static Vocabulary {
        match self {
            Self::O200k => &O200K,
            Self::Cl100k => &CL100K,
        }
    }

    /// Has the system bring the table into memory, once a process, so that no first plan waits for it page by page.
    pub(super) fn load(self) {
        static LOADED: [Once; 2] = [const { Once::new() }; 2];
        LOADED[self as usize].call_once(|| self.vocabulary().touch());
    }

    pub(super) fn count(self, text: &str) -> u64 {
        self.count_to(text, u64::MAX).unwrap_or(u64::MAX)
    }

    /// `None` when there are more than `limit` tokens: pieces are counted until there are.
    pub(super) fn count_to(self, text: &str, limit: u64) -> Option<u64> {
        let mut pieces = Pieces::new(text, self.pattern());
        let vocabulary = self.vocabulary();
        let (mut sum, mut from) = (0, 0);
        recent::with(self, |recent| {
            while let Some(end) = pieces.next_end() {
                sum += recent.count(text.as_bytes(), from..end, vocabulary);
                if sum > limit {
                    return None;
                }
                from = end;
            }
            Some(sum)
        })
    }

    /// A beginning of the text of no more than `limit` tokens, and how many it has: whole pieces, and of the first one
    /// that does not fit its first tokens, back to the end of a character.
    pub(super) fn beginning(self, text: &str, limit: u64) -> (usize, u64) {
        let most = usize::try_from(limit.saturating_mul(LONGEST_TOKEN)).unwrap_or(usize::MAX);
        let text = &text[..text.floor_char_boundary(most)];
        let vocabulary = self.vocabulary();
        let mut pieces = Pieces::new(text, self.pattern());
        let (mut sum, mut from) = (0, 0);
        recent::with(self, |recent| {
            while let Some(end) = pieces.next_end() {
                // What is longer than any token is merged once, for its count and for the cut.
                let long = (end - from) as u64 > LONGEST_TOKEN;
                let tokens = if long {
                    vocabulary.merge(text.as_bytes(), from..end, &mut recent.scratch)
                } else {
                    recent.count(text.as_bytes(), from..end, vocabulary)
                };
                if sum + tokens > limit {
                    let room = limit - sum;
                    if !long {
                        vocabulary.merge(text.as_bytes(), from..end, &mut recent.scratch);
                    }
                    // The first tokens of a piece are what merging so many of its bytes leaves.
                    let bytes = vocabulary.bytes_of_first(room, &recent.scratch);
                    let mut cut = text.floor_char_boundary(from + bytes);
                    if cut == from + bytes {
                        return (cut, limit);
                    }
                    // Less of a piece is mostly fewer tokens, and not always.
                    while cut > from {
                        let tokens = recent.count(text.as_bytes(), from..cut, vocabulary);
                        if tokens <= room {
                            return (cut, sum + tokens);
                        }
                        cut = text.floor_char_boundary(cut - 1);
                    }
                    return (from, sum);
                }
                sum += tokens;
                from = end;
            }
            (from, sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_equal_the_published_ones() {
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
}
