//! Benchmarks of the planner, with counts and times compared to other crates, which no other package builds.
#![allow(clippy::print_stderr, reason = "benches print what they measure")]

mod random_texts;

pub use context_window_testing::*;
pub use random_texts::RandomTexts;
