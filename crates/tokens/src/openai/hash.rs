//! The hash that the vocabularies' tables are made with, at build time, and read with. Both include this file.

/// Bytes that are hashed at a time.
pub(super) const STEP: usize = 16;

/// Up to 16 bytes as one number, the first byte lowest.
pub(super) fn word(bytes: &[u8]) -> u128 {
    let mut word = [0; STEP];
    word[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(word)
}

/// The hash of a text of `length` bytes: `state` is what [`step`] made of its whole steps, `tail` the word of the rest.
#[inline]
pub(super) fn finish(state: u64, tail: u128, length: usize) -> u64 {
    let hash = step(state ^ length as u64, tail);
    hash ^ hash >> 32
}

#[inline]
pub(super) fn step(state: u64, word: u128) -> u64 {
    let low = (word as u64 ^ state).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let high = ((word >> 64) as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed = low ^ high.rotate_left(32);
    (mixed ^ mixed >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Texts of no more bytes than this are hashed as one number of 64 bits.
pub(super) const SHORT: usize = 8;

/// Of a short text.
#[inline]
pub(super) fn of_short(word: u64, length: usize) -> u64 {
    let mixed = (word ^ (length as u64) << 59 ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ mixed >> 29
}

/// Of any text.
pub(super) fn of(bytes: &[u8]) -> u64 {
    if bytes.len() <= SHORT {
        return of_short(word(bytes) as u64, bytes.len());
    }
    let (steps, tail) = bytes.as_chunks::<STEP>();
    let state = steps.iter().fold(0, |state, chunk| step(state, u128::from_le_bytes(*chunk)));
    finish(state, word(tail), bytes.len())
}

/// The number of slots, as a power of 2: two bits each for what is known of a hash.
pub(super) const KNOWN_BITS: u32 = 22;

/// The slot of a hash among those.
#[inline]
pub(super) fn known(hash: u64) -> usize {
    (hash >> 14) as usize & ((1 << KNOWN_BITS) - 1)
}
