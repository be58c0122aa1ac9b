//! What this crate is compared with stands here and nowhere else, so that its own tests build none of it. The texts are
//! those of its tests.
#![allow(dead_code, clippy::print_stderr, reason = "each test and each bench uses its own part of this")]

#[path = "../../tests/it/support/corpus.rs"]
pub mod corpus;
#[path = "../../tests/it/support/data.rs"]
pub mod data;
#[path = "../../tests/it/support/skip.rs"]
mod skip;
#[path = "../../tests/it/support/texts.rs"]
pub mod texts;
#[path = "../../tests/it/support/tokenizers.rs"]
pub mod tokenizers;

pub use skip::{running, skip};

/// The folder of the project.
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
