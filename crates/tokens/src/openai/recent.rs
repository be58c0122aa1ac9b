//! Pieces that were counted a moment ago on this thread. Most pieces of a text are among them, and all of it may be
//! forgotten at any time: a piece that is not here is merged again.

use super::{
    Encoding, hash,
    vocabulary::{Scratch, Vocabulary},
};
use std::{cell::RefCell, ops::Range};

/// Longer pieces are not kept: 15 bytes and a byte for length and count are two words.
const LONGEST: usize = 15;
/// Places of a hash, in one line of the processor's cache: a piece pushes out the older of two.
const WAYS: usize = 2;
/// A power of two: 1 MB an encoding and thread, of which only what is used takes memory.
const PLACES: usize = 1 << 15;

/// A piece in its low 15 bytes; in its top byte the length and the count, 4 bits each. 0 is no piece.
type Entry = u128;

/// The low 124 bits: everything but the count.
const PIECE: u128 = !(0xf << 124);

pub(super) struct Recent {
    entries: Box<[[Entry; WAYS]]>,
    pub(super) scratch: Scratch,
}

thread_local! {
    static O200K: RefCell<Recent> = RefCell::new(Recent::new());
    static CL100K: RefCell<Recent> = RefCell::new(Recent::new());
}

/// Lends what this thread remembers of an encoding.
pub(super) fn with<R>(encoding: Encoding, work: impl FnOnce(&mut Recent) -> R) -> R {
    let recent = match encoding {
        Encoding::O200k => &O200K,
        Encoding::Cl100k => &CL100K,
    };
    recent.with(|recent| match recent.try_borrow_mut() {
        Ok(mut recent) => work(&mut recent),
        // Nothing calls itself here; were it to, it would remember nothing.
        Err(_) => work(&mut Recent { entries: Box::default(), scratch: Scratch::default() }),
    })
}

impl Recent {
    fn new() -> Self {
        Self { entries: vec![[0; WAYS]; PLACES].into_boxed_slice(), scratch: Scratch::default() }
    }

    /// The tokens of `text[piece]`.
    #[inline]
    pub(super) fn count(&mut self, text: &[u8], piece: Range<usize>, vocabulary: &Vocabulary) -> u64 {
        let length = piece.len();
        if length > LONGEST {
            return vocabulary.count(text, piece, &mut self.scratch);
        }
        let word = match text.get(piece.start..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << (8 * length)) - 1),
            None => hash::word(&text[piece.clone()]),
        };
        let key = word | (length as u128) << 120;
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
            // A piece of 15 bytes has 15 tokens at most.
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
