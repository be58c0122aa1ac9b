//! What several tests share: the real data, the laws every plan keeps, and a second way to count a prompt.
#![allow(dead_code, reason = "features decide who uses what")]

pub mod corpus;
pub mod data;
pub mod generate;
pub mod laws;
pub mod recount;
mod skip;
pub mod texts;
pub mod tokenizers;

pub use skip::{running, skip};

/// The folder of the project.
pub fn root() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}
