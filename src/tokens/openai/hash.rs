//! The hash that the vocabularies' tables are made with, at build time, and read with. Both include this file.

/// Up to 16 bytes as one number, the first byte lowest.
pub(super) fn word(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(word)
}

/// Of a text of at most 16 bytes, from its one word.
#[inline]
pub(super) fn of_word(word: u128, length: usize) -> u64 {
    step(length as u64, word)
}

/// Of any text.
pub(super) fn of(bytes: &[u8]) -> u64 {
    bytes.chunks(16).fold(bytes.len() as u64, |hash, chunk| step(hash, word(chunk)))
}

/// How many bits tell what a token may begin with; 2 to this many.
pub(super) const BEGINNING_BITS: u32 = 22;

/// The bit of those that belongs to a hash.
#[inline]
pub(super) fn beginning(hash: u64) -> usize {
    (hash >> 14) as usize & ((1 << BEGINNING_BITS) - 1)
}

#[inline]
fn step(hash: u64, word: u128) -> u64 {
    let low = (word as u64 ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let high = ((word >> 64) as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed = low ^ high.rotate_left(32);
    (mixed ^ mixed >> 29).wrapping_mul(0xff51_afd7_ed55_8ccd)
}
