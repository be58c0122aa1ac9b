//! Generators, laws, texts and real data that the tests and benches of several crates share.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs,
    reason = "for tests"
)]

pub mod corpus;
pub mod data;
pub mod generate;
pub mod laws;
pub mod recount;
mod skip;
#[cfg(feature = "stores")]
pub mod stores;
pub mod texts;
pub mod tmux;
pub mod tokenizers;

pub use skip::{running, skip};

/// Returns the folder of the project.
pub fn root() -> &'static std::path::Path {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(std::path::Path::parent).expect("a folder of the project")
}
