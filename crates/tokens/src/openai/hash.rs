//! The hash function of the vocabulary tables. The build script writes the tables with it and the crate reads
//! them with it; both include this file.

/// The number of bytes that one step hashes.
pub(super) const STEP: usize = 16;

/// Returns up to 16 bytes as one little-endian number.
pub(super) fn word(bytes: &[u8]) -> u128 {
    let mut word = [0; STEP];
    word[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(word)
}

/// Returns the hash of a text of `length` bytes. `state` is the result of [`step`] over its whole steps;
/// `tail` is the word of the remaining bytes.
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

/// The maximum length in bytes of a short text, which is hashed as one 64-bit number.
pub(super) const SHORT: usize = 8;

/// Hashes a short text, given as a number.
#[inline]
pub(super) fn of_short(word: u64, length: usize) -> u64 {
    // The length is a part of the hash, so that trailing zero bytes change it.
    let mixed = (word ^ (length as u64) << 59 ^ length as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ mixed >> 29
}

/// Hashes a text of any length.
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    if bytes.len() <= SHORT {
        return of_short(word(bytes) as u64, bytes.len());
    }
    let (steps, tail) = bytes.as_chunks::<STEP>();
    let state = steps.iter().fold(0, |state, chunk| step(state, u128::from_le_bytes(*chunk)));
    finish(state, word(tail), bytes.len())
}

/// The number of slots of the filter, as a power of 2. A slot has two bits about the texts with its hash.
pub(super) const KNOWN_BITS: u32 = 22;

/// Returns the filter slot of a hash.
#[inline]
pub(super) fn known(hash: u64) -> usize {
    // The high bits of the hash select the slot in the token table, so the filter uses lower ones.
    (hash >> 14) as usize & ((1 << KNOWN_BITS) - 1)
}
