//! Pieces that were counted a moment ago on this thread. Most pieces of a text are among them, and all of it may be
//! forgotten at any time: a piece that is not here is merged again.

use super::Encoding;
use std::{cell::RefCell, ops::Range};

/// Longer pieces are not kept: 15 bytes and a byte for length and count are two words.
const LONGEST: usize = 15;
/// A power of two: 256 kB an encoding and thread.
const ENTRIES: usize = 1 << 14;

/// A piece in its low 15 bytes; in its top byte the length and the count, 4 bits each. 0 is no piece.
type Entry = u128;

/// The low 124 bits: everything but the count.
const PIECE: u128 = !(0xf << 124);

pub(super) struct Recent {
    entries: Box<[Entry]>,
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
        Err(_) => work(&mut Recent { entries: Box::default() }),
    })
}

impl Recent {
    fn new() -> Self {
        Self { entries: vec![0; ENTRIES].into_boxed_slice() }
    }

    /// The tokens of `text[piece]`; `merge` is asked where that is not remembered.
    #[inline]
    pub(super) fn count(&mut self, text: &[u8], piece: Range<usize>, merge: impl FnOnce(&[u8]) -> u64) -> u64 {
        let length = piece.end - piece.start;
        if length > LONGEST {
            return merge(&text[piece]);
        }
        let bytes = match text.get(piece.start..piece.start + 16) {
            Some(bytes) => {
                let mut word = [0; 16];
                word.copy_from_slice(bytes);
                u128::from_le_bytes(word) & ((1 << (8 * length)) - 1)
            }
            None => {
                let mut word = [0; 16];
                word[..length].copy_from_slice(&text[piece.clone()]);
                u128::from_le_bytes(word)
            }
        };
        let key = bytes | (length as u128) << 120;
        let folded = (key as u64) ^ ((key >> 64) as u64).rotate_left(29);
        let place = (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ENTRIES.ilog2())) as usize;
        match self.entries.get_mut(place) {
            Some(entry) if *entry & PIECE == key => (*entry >> 124) as u64,
            Some(entry) => {
                let count = merge(&text[piece]);
                // A piece of 15 bytes has 15 tokens at most.
                *entry = key | u128::from(count) << 124;
                count
            }
            None => merge(&text[piece]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_was_counted() {
        let mut recent = Recent::new();
        let text: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 & 3).collect();
        let count = |piece: &[u8]| piece.iter().map(|byte| u64::from(*byte & 1)).sum::<u64>();
        let (mut asked, mut all) = (0, 0);
        for at in 0..text.len() - 20 {
            let piece = at..at + at % 16;
            let expected = count(&text[piece.clone()]);
            let found = recent.count(&text, piece, |piece| {
                asked += 1;
                count(piece)
            });
            all += 1;
            assert_eq!(found, expected);
        }
        assert!(asked < all, "nothing was remembered");
        assert!(asked > 1_000, "everything was found");
    }
}
