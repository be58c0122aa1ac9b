//! Hashes of texts, for comparisons within one process.

use foldhash::quality::RandomState;
use std::{hash::BuildHasher, sync::LazyLock};

/// Returns a randomly seeded hash of a text. The seed is per process, because documents come from outside and
/// could be crafted to collide.
pub(crate) fn text_hash(text: &str) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    SEED.hash_one(text)
}
