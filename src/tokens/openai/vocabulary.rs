//! A vocabulary as a table in the program: nothing is loaded, and only what is looked at is read from disk. Written by
//! `build.rs`, which this file has to agree with.
//!
//! Numbers are 32 bits, little-endian: how many tokens; the bits of a slot's number; where each token's bytes start, and
//! where the last ends; for each token the two it is merged from; the longest shorter token it begins with; bits by hash
//! for everything that a token begins with; the slots, ids by hash. Then the bytes of all tokens.

use super::hash;
use std::ops::Range;

/// No token.
const NONE: u32 = u32::MAX;

/// No token is longer.
const LONGEST: usize = super::LONGEST_TOKEN as usize;

#[derive(Debug, Clone, Copy)]
pub(super) struct Vocabulary {
    starts: &'static [u8],
    splits: &'static [u8],
    shorter: &'static [u8],
    begins: &'static [u8],
    slots: &'static [u8],
    bytes: &'static [u8],
    slot_bits: u32,
}

/// The number at a place of a list.
#[inline]
fn at(list: &[u8], place: usize) -> u32 {
    match list.get(place * 4..place * 4 + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => NONE,
    }
}

/// The hash of `length` bytes from `from` on.
#[inline]
fn hash_of(text: &[u8], from: usize, length: usize) -> u64 {
    match text.get(from..from + 16) {
        Some(bytes) if length < 16 => hash::of_word(hash::word(bytes) & ((1 << (8 * length)) - 1), length),
        _ => hash::of(&text[from..from + length]),
    }
}

/// What merging needs beside the text.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    path: Vec<u32>,
    dead: Vec<u64>,
}

impl Vocabulary {
    pub(super) const fn new(table: &'static [u8]) -> Self {
        const fn number(table: &[u8], place: usize) -> usize {
            let [a, b, c, d] = [table[place], table[place + 1], table[place + 2], table[place + 3]];
            u32::from_le_bytes([a, b, c, d]) as usize
        }
        let (tokens, slot_bits) = (number(table, 0), number(table, 4));
        let (starts, rest) = table.split_at(8).1.split_at(4 * (tokens + 1));
        let (splits, rest) = rest.split_at(8 * tokens);
        let (shorter, rest) = rest.split_at(4 * tokens);
        let (begins, rest) = rest.split_at(1 << (hash::BEGINNING_BITS - 3));
        let (slots, bytes) = rest.split_at(4 << slot_bits);
        Self { starts, splits, shorter, begins, slots, bytes, slot_bits: slot_bits as u32 }
    }

    /// The tokens of a piece: one if it is a token, or what merging its bytes leaves.
    pub(super) fn count(&self, text: &[u8], piece: Range<usize>, scratch: &mut Scratch) -> u64 {
        match self.find(text, piece.start, piece.len()) {
            Some(_) => 1,
            None => self.merge(text, piece, scratch),
        }
    }

    /// The token that `length` bytes from `from` on are, if they are one.
    #[inline]
    fn find(&self, text: &[u8], from: usize, length: usize) -> Option<u32> {
        if length > LONGEST {
            return None;
        }
        self.find_hashed(hash_of(text, from, length), &text[from..from + length])
    }

    #[inline]
    fn find_hashed(&self, hash: u64, bytes: &[u8]) -> Option<u32> {
        let mask = (1 << self.slot_bits) - 1;
        let mut place = (hash >> (64 - self.slot_bits)) as usize;
        loop {
            let slot = at(self.slots, place);
            if slot == 0 {
                return None;
            }
            let id = (slot & 0x3_ffff) - 1;
            if slot >> 18 == hash as u32 & 0x3fff && self.bytes_of(id) == bytes {
                return Some(id);
            }
            place = (place + 1) & mask;
        }
    }

    /// Whether some token may begin with what has this hash; where it says no, none does.
    #[inline]
    fn may_begin(&self, hash: u64) -> bool {
        let bit = hash::beginning(hash);
        self.begins.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    fn bytes_of(&self, id: u32) -> &'static [u8] {
        &self.bytes[at(self.starts, id as usize) as usize..at(self.starts, id as usize + 1) as usize]
    }

    fn length(&self, id: u32) -> usize {
        (at(self.starts, id as usize + 1) - at(self.starts, id as usize)) as usize
    }

    /// The longest token that the text has at a position and that merging can make.
    fn longest(&self, text: &[u8], from: usize, end: usize) -> Option<u32> {
        let mut longest = None;
        for length in 1..=LONGEST.min(end - from) {
            let hash = hash_of(text, from, length);
            if !self.may_begin(hash) {
                break;
            }
            let found = self.find_hashed(hash, &text[from..from + length]);
            longest = found.filter(|found| self.is_made(*found)).or(longest);
        }
        longest
    }

    /// Whether merging the token's own bytes makes it.
    fn is_made(&self, id: u32) -> bool {
        at(self.splits, 2 * id as usize) != NONE || self.length(id) == 1
    }

    /// The tokens that merging leaves of a piece. A beginning of a text has one way only to be merged, so the way is
    /// looked for from the left, longest token first; an end from which no token goes on is never tried again. That
    /// makes it linear in the piece.
    fn merge(&self, text: &[u8], piece: Range<usize>, scratch: &mut Scratch) -> u64 {
        let Scratch { path, dead } = scratch;
        path.clear();
        dead.clear();
        dead.resize(piece.len() / 64 + 1, 0);
        let bit = |at: usize| ((at - piece.start) / 64, 1u64 << ((at - piece.start) % 64));
        let mut from = piece.start;
        let mut next = self.longest(text, from, piece.end);
        loop {
            let goes_on = |token: u32, dead: &[u64]| {
                let (word, mask) = bit(from + self.length(token));
                dead[word] & mask == 0 && path.last().is_none_or(|last| self.may_meet(text, from, *last, token))
            };
            while let Some(token) = next.filter(|token| !goes_on(*token, dead)) {
                next = Some(at(self.shorter, token as usize)).filter(|shorter| *shorter != NONE);
            }
            if let Some(token) = next {
                path.push(token);
                from += self.length(token);
                if from >= piece.end {
                    return path.len() as u64;
                }
                next = self.longest(text, from, piece.end);
            } else {
                let (word, mask) = bit(from);
                dead[word] |= mask;
                // Every text can be merged, so there is always something to take back.
                let Some(last) = path.pop() else { return piece.len() as u64 };
                from -= self.length(last);
                next = Some(at(self.shorter, last as usize)).filter(|shorter| *shorter != NONE);
            }
        }
    }

    /// Whether two tokens can stand side by side, the border at `border`: whether no merge across it came before one of
    /// those that made them. Looked at backwards: what was merged last is taken apart, until two bytes are left.
    fn may_meet(&self, text: &[u8], border: usize, mut left: u32, mut right: u32) -> bool {
        // Merges from this one on came too late to join the two.
        let mut too_late = NONE;
        let (mut before, mut after) = (self.length(left), self.length(right));
        loop {
            let both = border - before..border + after;
            let hash = hash_of(text, both.start, both.len());
            // What is longer than any token has the hash of none that begins one, or is found to be none.
            if self.may_begin(hash) && self.find_hashed(hash, &text[both]).is_some_and(|joined| joined < too_late) {
                return false;
            }
            if before == 1 && after == 1 {
                return true;
            }
            // Of two merges into the same token the left one comes first.
            if left > right {
                too_late = left;
                left = at(self.splits, 2 * left as usize + 1);
                before = self.length(left);
            } else {
                too_late = right + 1;
                right = at(self.splits, 2 * right as usize);
                after = self.length(right);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Encoding;
    use super::*;

    #[test]
    fn every_token_is_found_and_is_one() {
        for (encoding, bpe) in
            [(Encoding::O200k, bpe_openai::o200k_base()), (Encoding::Cl100k, bpe_openai::cl100k_base())]
        {
            let vocabulary = encoding.vocabulary();
            let mut longest = 0;
            for id in 0..bpe.bpe.num_tokens() as u32 {
                let token = bpe.bpe.token_bytes(id);
                longest = longest.max(token.len());
                assert_eq!(vocabulary.find(token, 0, token.len()), Some(id));
                assert_eq!(vocabulary.count(token, 0..token.len(), &mut Scratch::default()), 1);
            }
            assert_eq!(longest, LONGEST);
            assert_eq!(vocabulary.find(b"no such token", 0, 13), None);
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
            if std::env::var_os("FULL").is_some() { 200_000 } else { 2_000 }
        ))]
        #[test]
        fn merging_leaves_what_the_other_crate_leaves(
            piece in proptest::prop_oneof![
                proptest::collection::vec(proptest::prelude::any::<u8>(), 1..60),
                proptest::collection::vec(proptest::sample::select(b"aeinrst .\n ".to_vec()), 1..400),
                proptest::collection::vec(proptest::sample::select(vec![0xd0, 0xb0, 0xb8, 0xe4, 0xb8, 0xad]), 1..200),
                proptest::collection::vec(proptest::sample::select(b"a ".to_vec()), 1..600),
            ],
        ) {
            for (encoding, bpe) in
                [(Encoding::O200k, bpe_openai::o200k_base()), (Encoding::Cl100k, bpe_openai::cl100k_base())]
            {
                let n = encoding.vocabulary().merge(&piece, 0..piece.len(), &mut Scratch::default());
                proptest::prop_assert_eq!(n, bpe.bpe.count(&piece) as u64);
            }
        }
    }
}
