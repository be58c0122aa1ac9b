//! Hashes of texts that are compared within one process.

use foldhash::quality::RandomState;
use std::{hash::BuildHasher, sync::LazyLock};

/// Returns a hash of a text that nobody outside of the process can foresee: documents come from outside.
pub(crate) fn text_hash(text: &str) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    SEED.hash_one(text)
}
