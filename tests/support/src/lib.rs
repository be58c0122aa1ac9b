//! Generators, properties, texts and real data that the tests and benches of several crates share.
#![allow(
    clippy::new_without_default,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs,
    reason = "for tests"
)]

pub mod body;
pub mod corpus;
pub mod data;
pub mod documents;
pub mod generate;
pub mod killed;
pub mod laws;
pub mod media;
pub mod page;
pub mod recount;
pub mod rules;
mod skip;
#[cfg(feature = "stores")]
pub mod stores;
pub mod texts;
pub mod tmux;
pub mod tokenizers;

pub use skip::{running, skip};

/// Makes the project's folder the current one, as in the documented commands. All tests use the same one, so
/// they do not conflict.
pub fn enter_root() {
    std::env::set_current_dir(root()).expect("the folder of the project");
}

/// Returns the folder of the project.
pub fn root() -> &'static std::path::Path {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().and_then(std::path::Path::parent).expect("a folder of the project")
}
