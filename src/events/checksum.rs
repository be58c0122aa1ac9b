//! The checksum of an entry of a log, in a file and in a store.

/// The first 16 digits of a hash over number and text.
#[must_use]
pub fn checksum(sequence: u64, text: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(&sequence.to_le_bytes()).update(text.as_bytes());
    hash.finalize().to_hex()[..16].into()
}
