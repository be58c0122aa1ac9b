//! A cache of the counts of recent short pieces, one per thread and encoding. It finds most pieces of a text.
//! Any entry may be evicted at any time: a missing piece is merged again.

use super::{
    Encoding, hash,
    vocabulary::{Scratch, Vocabulary},
};
use std::{cell::RefCell, ops::Range};

/// The maximum length in bytes of a cached piece: 15 bytes and one byte for length and count fill an entry.
const LONGEST: usize = 15;
/// The number of entries per hash. Both share a cache line of the processor; a new piece evicts the older
/// one.
const WAYS: usize = 2;
/// The number of hash buckets, a power of two: 1 MB per encoding and thread. The system allocates only used
/// pages.
const PLACES: usize = 1 << 15;

/// An entry of the cache: the piece in the low 15 bytes, then its length and its count in 4 bits each. 0
/// means empty.
type Entry = u128;

/// The low 124 bits of an entry: everything except the count.
const PIECE: u128 = !(0xf << 124);

pub(super) struct Recent {
    entries: Box<[[Entry; WAYS]]>,
    pub(super) scratch: Scratch,
}

thread_local! {
    static O200K: RefCell<Recent> = RefCell::new(Recent::new());
    static CL100K: RefCell<Recent> = RefCell::new(Recent::new());
}

/// Calls `work` with this thread's cache for an encoding.
pub(super) fn with<R>(encoding: Encoding, work: impl FnOnce(&mut Recent) -> R) -> R {
    let recent = match encoding {
        Encoding::O200k => &O200K,
        Encoding::Cl100k => &CL100K,
    };
    recent.with(|recent| match recent.try_borrow_mut() {
        Ok(mut recent) => work(&mut recent),
        // Counting never calls itself, so the cache is always free. If it were not, an empty cache would do.
        Err(_) => work(&mut Recent { entries: Box::default(), scratch: Scratch::default() }),
    })
}

impl Recent {
    fn new() -> Self {
        Self { entries: vec![[0; WAYS]; PLACES].into_boxed_slice(), scratch: Scratch::default() }
    }

    /// Counts the tokens of `text[piece]`.
    #[inline]
    pub(super) fn count(&mut self, text: &[u8], piece: Range<usize>, vocabulary: &Vocabulary) -> u64 {
        let length = piece.len();
        if length > LONGEST {
            return vocabulary.count(text, piece, &mut self.scratch);
        }
        // Reads 16 bytes at once if the text has them, and masks off the bytes after the piece.
        let word = match text.get(piece.start..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * length)) - 1),
            None => hash::word(&text[piece.clone()]),
        };
        let key = word | (length as u128) << 120;
        // A short hash covers 64 bits: the upper half is folded in. The shift is not a multiple of 8, so that
        // equal bytes of the two halves do not cancel each other.
        let hash = hash::of_short(word as u64 ^ (word >> 57) as u64, length);
        let place = (hash >> (64 - PLACES.ilog2())) as usize;
        let [newer, older] = self.entries.get(place).copied().unwrap_or_default();
        if newer & PIECE == key {
            return (newer >> 124) as u64;
        }
        let known = older & PIECE == key;
        let count =
            if known { (older >> 124) as u64 } else { vocabulary.count(text, piece, &mut self.scratch) };
        if let Some(entries) = self.entries.get_mut(place) {
            // A piece of 15 bytes has at most 15 tokens, so the count fits into 4 bits. The new entry goes
            // first.
            *entries = [key | u128::from(count) << 124, newer];
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_count_equals_fresh_count() {
        let text: Vec<u8> =
            (0..100_000u32).map(|n| b"etaoin s"[(n.wrapping_mul(2_654_435_761) >> 29) as usize]).collect();
        let (mut recent, mut forgetful) =
            (Recent::new(), Recent { entries: Box::default(), scratch: Scratch::default() });
        let vocabulary = Encoding::O200k.vocabulary();
        for at in 0..text.len() - 20 {
            let piece = at..at + 1 + at % 15;
            let expected = forgetful.count(&text, piece.clone(), vocabulary);
            for _ in 0..2 {
                assert_eq!(recent.count(&text, piece.clone(), vocabulary), expected);
            }
        }
        let filled = recent.entries.iter().flatten().filter(|entry| **entry != 0).count();
        assert!(filled > 500, "{filled} pieces are remembered");
    }
}
