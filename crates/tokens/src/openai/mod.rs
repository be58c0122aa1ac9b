//! The `OpenAI` encodings, embedded or loaded. A text is split into pieces. A piece that is a token counts as
//! one; any other piece is merged in linear time. The counts of recent short pieces are cached.

use super::bounds::Bounds;

mod classes;
mod hash;
#[cfg(any(feature = "compact", all(feature = "loadable", not(feature = "openai"))))]
mod table;
mod pieces;
mod vocabulary;
mod recent;

use pieces::{Pattern, Pieces};
use std::sync::Once;
use vocabulary::Vocabulary;

/// The length in bytes of the longest token of both encodings (128 spaces). A text of more than 128 bytes per
/// token exceeds any limit without being read.
const LONGEST_TOKEN: u64 = 128;

/// The byte bounds of both encodings: neither normalizes, and each has a token for every byte.
pub(super) const BOUNDS: Bounds = Bounds { longest: Some(LONGEST_TOKEN), composes: false, per_byte: Some(1) };

/// Vocabularies that the program contains as tables.
#[cfg(all(feature = "openai", not(feature = "compact")))]
mod embedded {
    use super::{Encoding, Vocabulary};

    /// A table that is aligned to a cache line of the processor.
    #[repr(align(64))]
    struct Aligned<T: ?Sized>(T);

    static O200K: Vocabulary = {
        static TABLE: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.table")));
        Vocabulary::new(&TABLE.0)
    };
    static CL100K: Vocabulary = {
        static TABLE: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.table")));
        Vocabulary::new(&TABLE.0)
    };

    #[expect(clippy::unnecessary_wraps, reason = "a vocabulary that is loaded may be missing")]
    pub(super) fn vocabulary(encoding: Encoding) -> Option<&'static Vocabulary> {
        Some(match encoding {
            Encoding::O200k => &O200K,
            Encoding::Cl100k => &CL100K,
        })
    }
}

/// Vocabularies that the program contains as merges. The first use of each builds its table.
#[cfg(feature = "compact")]
mod embedded {
    use super::{Encoding, Vocabulary, expand};
    use std::sync::LazyLock;

    static O200K: LazyLock<Vocabulary> =
        LazyLock::new(|| expand(include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.merges"))));
    static CL100K: LazyLock<Vocabulary> =
        LazyLock::new(|| expand(include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.merges"))));

    #[expect(clippy::unnecessary_wraps, reason = "a vocabulary that is loaded may be missing")]
    pub(super) fn vocabulary(encoding: Encoding) -> Option<&'static Vocabulary> {
        Some(match encoding {
            Encoding::O200k => &O200K,
            Encoding::Cl100k => &CL100K,
        })
    }
}

/// Vocabularies that the program loads from files.
#[cfg(not(feature = "openai"))]
mod embedded {
    use super::{Encoding, Vocabulary};
    use std::sync::OnceLock;

    static LOADED: [OnceLock<Vocabulary>; 2] = [const { OnceLock::new() }; 2];

    pub(super) fn vocabulary(encoding: Encoding) -> Option<&'static Vocabulary> {
        LOADED[encoding as usize].get()
    }

    #[cfg(feature = "loadable")]
    pub(super) fn install(encoding: Encoding, merges: &[u8]) {
        LOADED[encoding as usize].get_or_init(|| super::expand(merges));
    }
}

/// Builds the table of a vocabulary from its merges, which are those of the build script.
#[cfg(any(feature = "compact", all(feature = "loadable", not(feature = "openai"))))]
fn expand(merges: &[u8]) -> Vocabulary {
    /// The size of a cache line of the processor, to which the table is aligned.
    const LINE: usize = 64;
    let merges = table::Merges::new(merges);
    let size = merges.table_size();
    // The process keeps the table until its end.
    let memory = vec![0; size + LINE].leak();
    let start = memory.as_ptr().align_offset(LINE).min(LINE);
    let table = &mut memory[start..start + size];
    merges.write_table(table);
    Vocabulary::new(table)
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Encoding {
    O200k,
    Cl100k,
}

#[cfg(feature = "loadable")]
impl Encoding {
    pub(super) const NAMES: [&str; 2] = [Self::O200k.name(), Self::Cl100k.name()];

    /// Returns the encoding with a name. Returns `None` if there is none.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::O200k, Self::Cl100k].into_iter().find(|encoding| encoding.name() == name)
    }

    /// Loads the vocabulary from the merges of the build script. Returns false for any other bytes, because
    /// tables of wrong merges could not be read.
    pub(super) fn install(self, merges: &[u8]) -> bool {
        let expected = match self {
            Self::O200k => include_bytes!(concat!(env!("OUT_DIR"), "/o200k_base.hash")),
            Self::Cl100k => include_bytes!(concat!(env!("OUT_DIR"), "/cl100k_base.hash")),
        };
        let is_the_file = blake3::hash(merges).as_bytes() == expected;
        #[cfg(not(feature = "openai"))]
        if is_the_file {
            embedded::install(self, merges);
        }
        is_the_file
    }
}

impl Encoding {
    fn pattern(self) -> Pattern {
        match self {
            Self::O200k => Pattern::O200k,
            Self::Cl100k => Pattern::Cl100k,
        }
    }

    /// Returns the vocabulary. A counter exists only once it is there.
    fn vocabulary(self) -> &'static Vocabulary {
        embedded::vocabulary(self).expect("a counter of an encoding that is loaded")
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
        }
    }

    /// Returns true if texts can be counted.
    pub(super) fn is_ready(self) -> bool {
        embedded::vocabulary(self).is_some()
    }

    /// Loads the table into memory, once per process, so that the first plan does not wait for page faults.
    pub(super) fn load(self) {
        static LOADED: [Once; 2] = [const { Once::new() }; 2];
        LOADED[self as usize].call_once(|| self.vocabulary().load_pages());
    }

    pub(super) fn count(self, text: &str) -> u64 {
        self.count_to(text, u64::MAX).unwrap_or(u64::MAX)
    }

    /// Counts the tokens up to a limit. Returns `None` as soon as there are more than `limit` tokens.
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

    /// Returns the length in bytes of a prefix with at most `limit` tokens, and its token count. The prefix
    /// consists of whole pieces and the first tokens of the next piece, cut back to a character boundary.
    pub(super) fn beginning(self, text: &str, limit: u64) -> (usize, u64) {
        // No more bytes than these can be covered by `limit` tokens, so the rest is never read.
        let most = usize::try_from(limit.saturating_mul(LONGEST_TOKEN)).unwrap_or(usize::MAX);
        let text = &text[..text.floor_char_boundary(most)];
        let vocabulary = self.vocabulary();
        let mut pieces = Pieces::new(text, self.pattern());
        let (mut sum, mut from) = (0, 0);
        recent::with(self, |recent| {
            while let Some(end) = pieces.next_end() {
                // A piece longer than any token cannot be a token itself. It is merged once, for the count
                // and for the cut.
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
                    // The first `room` tokens of a piece are also the result of merging just their bytes.
                    let bytes = vocabulary.bytes_of_first(room, &recent.scratch);
                    let mut cut = text.floor_char_boundary(from + bytes);
                    if cut == from + bytes {
                        return (cut, limit);
                    }
                    // A shorter part of a piece usually has fewer tokens, but not always, so every cut is
                    // counted.
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
        // The expected counts come from the examples in the cookbook of `OpenAI`.
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
