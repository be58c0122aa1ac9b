//! A vocabulary as a static table in the program: nothing is parsed, and only the pages in use are read from
//! disk. `table.rs` writes the table, so this file must agree with it: in the build script or, with the
//! feature `compact`, at the first use.
//!
//! Numbers have 32 bits, little-endian. The table has these parts:
//!
//! - a header of 16 numbers: the number of tokens, the bits of a slot number, and 14 zeros
//!   that align the records to a cache line;
//! - a record for each token: the start of its bytes (24 bits) and their number (8 bits), the two tokens that
//!   it is merged from, and the longest shorter token that it begins with;
//! - a filter with two bits per hash: a token begins with such a text, and such a text is a token;
//! - the slots, 128 bits each: a hash table of tokens, with their first 12 bytes, their length (8 bits), and
//!   their id plus one (0 is an empty slot);
//! - the bytes of all tokens.

use super::hash;
use std::ops::Range;

/// The id that means no token.
const NONE: u32 = u32::MAX;

/// The number of bytes of a token that its slot contains.
const INLINE: usize = 12;

/// The maximum length of a token in bytes.
const LONGEST: usize = super::LONGEST_TOKEN as usize;

#[derive(Debug, Clone, Copy)]
pub(super) struct Vocabulary {
    tokens: &'static [u8],
    known: &'static [u8],
    slots: &'static [u8],
    bytes: &'static [u8],
    slot_bits: u32,
}

/// Returns a mask of the low `bytes` bytes of a word.
#[inline]
fn low(bytes: usize) -> u128 {
    (1 << (8 * bytes)) - 1
}

/// Returns the 16 bytes from a position on, or `None` if fewer remain.
#[inline]
fn word_at(text: &[u8], from: usize) -> Option<u128> {
    text.get(from..)?.first_chunk().map(|chunk| u128::from_le_bytes(*chunk))
}

/// A lookup key for a text.
#[derive(Debug, Clone, Copy, Default)]
struct Key {
    hash: u64,
    /// The first bytes of the text, at most 16.
    first: u128,
    /// The length of the text in bytes.
    length: usize,
}

impl Key {
    /// Builds the key of `length` bytes from `from` on.
    #[inline]
    fn new(text: &[u8], from: usize, length: usize) -> Self {
        if length <= hash::MAX_SHORT_BYTES {
            let word = short_word(text, from, length);
            return Self { hash: hash::hash_short(word, length), first: u128::from(word), length };
        }
        let first = first_word(text, from, length);
        let hash = match length {
            ..hash::STEP => hash::finish(0, first, length),
            _ => hash::hash_bytes(&text[from..from + length]),
        };
        Self { hash, first, length }
    }
}

/// Returns the bytes of a short text as a number.
#[inline]
fn short_word(text: &[u8], from: usize, length: usize) -> u64 {
    match text.get(from..).and_then(|rest| rest.first_chunk()) {
        // The mask of the shift count matters only for length 0, which no caller passes.
        Some(chunk) => u64::from_le_bytes(*chunk) & (u64::MAX >> ((64 - 8 * length) & 63)),
        None => hash::word(&text[from..from + length]) as u64,
    }
}

/// Returns the first of `length` bytes from a position on, at most 16.
#[inline]
fn first_word(text: &[u8], from: usize, length: usize) -> u128 {
    match word_at(text, from) {
        Some(word) if length < hash::STEP => word & low(length),
        Some(word) => word,
        None => hash::word(&text[from..from + length]),
    }
}

/// The buffers of a merge: the tokens so far, the dead ends, and the cached pairs.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    path: Vec<u32>,
    dead: Vec<u64>,
    pairs: PairCache,
}

impl Vocabulary {
    pub(super) const fn new(table: &'static [u8]) -> Self {
        const fn number(table: &[u8], place: usize) -> usize {
            let [a, b, c, d] = [table[place], table[place + 1], table[place + 2], table[place + 3]];
            u32::from_le_bytes([a, b, c, d]) as usize
        }
        let (tokens, slot_bits) = (number(table, 0), number(table, 4));
        let (records, rest) = table.split_at(64).1.split_at(16 * tokens);
        let (known, rest) = rest.split_at(1 << (hash::FILTER_BITS - 2));
        let (slots, bytes) = rest.split_at(16 << slot_bits);
        Self { tokens: records, known, slots, bytes, slot_bits: slot_bits as u32 }
    }

    /// Reads one byte of every page, so that the system loads the table.
    pub(super) fn load_pages(&self) {
        /// The size of a page in bytes, or a divisor of it.
        const PAGE: usize = 4_096;
        let parts = [self.known, self.slots, self.bytes, self.tokens];
        let sum = parts.iter().flat_map(|part| part.iter().step_by(PAGE)).fold(0, |sum, byte| sum ^ byte);
        // The compiler would remove reads whose result is unused.
        std::hint::black_box(sum);
    }

    /// Counts the tokens of a piece: one if it is a token, otherwise the tokens after merging.
    pub(super) fn count(&self, text: &[u8], piece: Range<usize>, scratch: &mut Scratch) -> u64 {
        match self.find(text, piece.start, piece.len()) {
            Some(_) => 1,
            None => self.merge(text, piece, scratch),
        }
    }

    /// Returns the length in bytes of the first `tokens` tokens of the piece that was merged last.
    pub(super) fn bytes_of_first(&self, tokens: u64, scratch: &Scratch) -> usize {
        let first = scratch.path.iter().take(usize::try_from(tokens).unwrap_or(usize::MAX));
        first.map(|token| self.token(*token).length()).sum()
    }

    /// Returns the token that consists of the `length` bytes from `from` on, or `None` if there is none.
    #[inline]
    fn find(&self, text: &[u8], from: usize, length: usize) -> Option<u32> {
        let key = Key::new(text, from, length);
        (length <= LONGEST).then(|| self.find_by_key(key, text, from)).flatten()
    }

    #[inline]
    fn find_by_key(&self, key: Key, text: &[u8], from: usize) -> Option<u32> {
        let Key { hash, first, length } = key;
        let wanted = first & low(INLINE) | (length as u128) << (8 * INLINE);
        let mask = (1 << self.slot_bits) - 1;
        let mut place = (hash >> (64 - self.slot_bits)) as usize;
        // Linear probing. At least half of the slots are empty, so the loop ends.
        loop {
            let slot = word_at(self.slots, place * 16).filter(|slot| *slot != 0)?;
            if slot & low(INLINE + 1) == wanted {
                let id = (slot >> (8 * (INLINE + 1))) as u32 - 1;
                // The slot contains the whole token up to 12 bytes; a longer one is compared with the bytes
                // of the table.
                if length <= INLINE || self.bytes_of(id) == &text[from..from + length] {
                    return Some(id);
                }
            }
            place = (place + 1) & mask;
        }
    }

    fn bytes_of(&self, id: u32) -> &'static [u8] {
        let token = self.token(id);
        &self.bytes[token.start()..token.start() + token.length()]
    }

    #[inline]
    fn token(&self, id: u32) -> Token {
        Token(word_at(self.tokens, 16 * id as usize).unwrap_or_default())
    }

    /// Looks a hash up in the filter. Returns true for "a token may begin with such a text" and for "such a
    /// text may be a token". False positives occur; false negatives do not.
    #[inline]
    fn filter_bits(&self, hash: u64) -> (bool, bool) {
        let place = hash::filter_slot(hash);
        let bits = self.known.get(place / 4).map_or(3, |byte| byte >> (place % 4 * 2));
        (bits & 1 == 1, bits & 2 == 2)
    }

    /// Returns the longest token at a position of the text. Merging the bytes of any token yields that token;
    /// `build.rs` checks this.
    fn longest(&self, text: &[u8], from: usize, end: usize) -> Option<u32> {
        let (mut state, mut step) = (0, from);
        let first = first_word(text, from, hash::STEP.min(end - from));
        // A ring of the candidates, the longest last. If all 8 are false positives, the slow search below
        // runs.
        let mut maybe = [Key::default(); 8];
        let mut count = 0;
        // The hash is extended by 16 bytes at a time, so one pass over the lengths is linear.
        for length in 1..=LONGEST.min(end - from) {
            if from + length == step + hash::STEP {
                state = hash::step(state, first_word(text, step, hash::STEP));
                step += hash::STEP;
            }
            let key = if length <= hash::MAX_SHORT_BYTES {
                Key::new(text, from, length)
            } else {
                let tail = first_word(text, step, from + length - step);
                let first = if length < hash::STEP { tail } else { first };
                Key { hash: hash::finish(state, tail, length), first, length }
            };
            // Every single byte is a token and begins longer ones, so the filter is skipped.
            let (begins, is_one) = if length == 1 { (true, true) } else { self.filter_bits(key.hash) };
            if !begins {
                break;
            }
            if is_one {
                maybe[count % 8] = key;
                count += 1;
            }
        }
        let found = |key: Key| self.find_by_key(key, text, from);
        let newest = (count.saturating_sub(8)..count).rev().find_map(|at| found(maybe[at % 8]));
        newest.or_else(|| {
            (1..LONGEST.min(end - from)).rev().find_map(|length| found(Key::new(text, from, length)))
        })
    }

    /// Merges a piece and returns the number of its tokens, which remain in `scratch`. Each prefix of a text
    /// has exactly one valid tokenization. The search therefore goes from the left and tries the longest
    /// token first. A position from which no token continues is marked as dead and never tried again, so the
    /// time is linear in the piece.
    pub(super) fn merge(&self, text: &[u8], piece: Range<usize>, scratch: &mut Scratch) -> u64 {
        let Scratch { path, dead, pairs } = scratch;
        path.clear();
        dead.clear();
        dead.resize(piece.len() / 64 + 1, 0);
        let bit = |at: usize| ((at - piece.start) / 64, 1u64 << ((at - piece.start) % 64));
        let mut from = piece.start;
        let mut next = self.longest(text, from, piece.end);
        loop {
            let last = path.last().copied();
            while let Some(token) = next {
                let (word, mask) = bit(from + self.token(token).length());
                if dead[word] & mask == 0
                    && last.is_none_or(|last| self.can_be_adjacent(text, from, last, token, pairs))
                {
                    break;
                }
                next = self.token(token).shorter();
            }
            if let Some(token) = next {
                path.push(token);
                from += self.token(token).length();
                if from >= piece.end {
                    return path.len() as u64;
                }
                next = self.longest(text, from, piece.end);
            } else {
                let (word, mask) = bit(from);
                dead[word] |= mask;
                // Every text can be merged, so the path is never empty here.
                let Some(last) = path.pop() else { return piece.len() as u64 };
                from -= self.token(last).length();
                // Backtracks: the next shorter token at the same position may continue.
                next = self.token(last).shorter();
            }
        }
    }

    /// Returns true if two tokens can be adjacent, with their border at `border`. They cannot if a merge
    /// across the border comes before a merge that built one of them. The check goes backwards: it splits the
    /// token that was merged last, until two bytes remain.
    fn can_be_adjacent(
        &self,
        text: &[u8],
        border: usize,
        left: u32,
        right: u32,
        pairs: &mut PairCache,
    ) -> bool {
        pairs.get_or_check(left, right, || self.check_adjacent(text, border, left, right))
    }

    /// Checks a pair without the cache, in time linear in the number of merges of both tokens.
    fn check_adjacent(&self, text: &[u8], border: usize, mut left: u32, mut right: u32) -> bool {
        // A merge with this id or a later one comes too late to join the two parts. Ids are merge ranks.
        let mut too_late = NONE;
        let (mut before, mut after) = (self.token(left), self.token(right));
        loop {
            let from = border - before.length();
            let key = Key::new(text, from, before.length() + after.length());
            if self.filter_bits(key.hash).1
                && self.find_by_key(key, text, from).is_some_and(|joined| joined < too_late)
            {
                return false;
            }
            if before.length() == 1 && after.length() == 1 {
                return true;
            }
            // Of two merges into the same token, the left one comes first, so at equal ids the right one is
            // undone.
            if left > right {
                too_late = left;
                left = before.right();
                before = self.token(left);
            } else {
                too_late = right + 1;
                right = after.left();
                after = self.token(right);
            }
        }
    }
}

/// The record of a token in the table.
#[derive(Clone, Copy)]
struct Token(u128);

impl Token {
    /// Returns the start of the token's bytes in the table.
    #[inline]
    fn start(self) -> usize {
        self.0 as usize & 0xff_ffff
    }

    /// Returns the length of the token in bytes.
    #[inline]
    fn length(self) -> usize {
        self.0 as usize >> 24 & 0xff
    }

    /// Returns the first of the two tokens that it is merged from.
    #[inline]
    fn left(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the second of the two tokens that it is merged from.
    #[inline]
    fn right(self) -> u32 {
        (self.0 >> 64) as u32
    }

    /// Returns the longest shorter token that it begins with, or `None` for a single byte.
    #[inline]
    fn shorter(self) -> Option<u32> {
        Some((self.0 >> 96) as u32).filter(|shorter| *shorter != NONE)
    }
}

/// A cache of recent results of the pair check. A missing pair is checked again.
#[derive(Debug)]
struct PairCache(Box<[u64]>);

impl PairCache {
    /// The number of entries, a power of two: 64 kB per thread and encoding.
    const ENTRIES: usize = 1 << 13;

    fn get_or_check(&mut self, left: u32, right: u32, ask: impl FnOnce() -> bool) -> bool {
        // The pair never is 0, the value of an empty entry. The lowest bit is the answer.
        let pair = (u64::from(left) << 32 | u64::from(right) << 2) + 2;
        let place = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::ENTRIES.ilog2())) as usize;
        match self.0.get_mut(place) {
            Some(entry) if *entry & !1 == pair => *entry & 1 == 1,
            Some(entry) => {
                let answer = ask();
                *entry = pair | u64::from(answer);
                answer
            }
            None => ask(),
        }
    }
}

impl Default for PairCache {
    fn default() -> Self {
        Self(vec![0; Self::ENTRIES].into_boxed_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Encoding;
    use super::*;

    #[test]
    fn every_token_is_found_as_one_token() {
        for (encoding, tokens) in
            [(Encoding::O200k, tiktoken_rs::o200k_base()), (Encoding::Cl100k, tiktoken_rs::cl100k_base())]
        {
            let tokens = tokens.unwrap();
            let vocabulary = encoding.vocabulary();
            let mut longest = 0;
            // The ids end at the first one that no ordinary token has.
            let texts = (0..).map_while(|id| Some((id, tokens.decode_bytes(&[id]).ok()?)));
            let texts: Vec<(u32, Vec<u8>)> =
                texts.take_while(|(_, token)| !token.starts_with(b"<|endoftext|>")).collect();
            assert!(texts.len() > 99_000, "{}", texts.len());
            for (id, token) in texts {
                let token = &token[..];
                longest = longest.max(token.len());
                assert_eq!(vocabulary.find(token, 0, token.len()), Some(id));
                assert_eq!(vocabulary.count(token, 0..token.len(), &mut Scratch::default()), 1);
            }
            assert_eq!(longest, LONGEST);
            assert_eq!(vocabulary.find(b"no such token", 0, 13), None);
        }
    }

    /// Merges the adjacent pair of the lowest rank, the leftmost first, until no pair forms a token. This is
    /// the definition of byte-pair encoding, in quadratic time.
    fn merged_by_brute_force(encoding: Encoding, piece: &[u8]) -> u64 {
        let vocabulary = encoding.vocabulary();
        let mut ends: Vec<usize> = (0..=piece.len()).collect();
        loop {
            let pairs = ends.windows(3).enumerate();
            let ranks = pairs
                .filter_map(|(at, pair)| Some((vocabulary.find(piece, pair[0], pair[2] - pair[0])?, at)));
            let Some((_, at)) = ranks.min() else { return ends.len() as u64 - 1 };
            ends.remove(at + 1);
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
            if std::env::var_os("FULL").is_some() { 200_000 } else { 2_000 }
        ))]
        #[test]
        fn merging_equals_brute_force_merging(
            piece in proptest::prop_oneof![
                proptest::collection::vec(proptest::prelude::any::<u8>(), 1..60),
                proptest::collection::vec(proptest::sample::select(b"aeinrst .\n ".to_vec()), 1..400),
                proptest::collection::vec(proptest::sample::select(vec![0xd0, 0xb0, 0xb8, 0xe4, 0xb8, 0xad]), 1..200),
                proptest::collection::vec(proptest::sample::select(b"a ".to_vec()), 1..600),
            ],
        ) {
            for encoding in [Encoding::O200k, Encoding::Cl100k] {
                let n = encoding.vocabulary().merge(&piece, 0..piece.len(), &mut Scratch::default());
                proptest::prop_assert_eq!(n, merged_by_brute_force(encoding, &piece));
            }
        }
    }
}
