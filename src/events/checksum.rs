//! The checksum of a log entry, in a file and in a store.

/// Returns the first 16 hex digits of a hash over the entry's number and text. The number is included so that
/// reordered entries are detected.
#[must_use]
pub fn checksum(sequence: u64, text: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(&sequence.to_le_bytes()).update(text.as_bytes());
    hash.finalize().to_hex()[..16].into()
}
