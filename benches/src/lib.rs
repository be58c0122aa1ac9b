//! Benches of the planner, and counts and times of it beside those of other crates, which no other package
//! builds.
#![allow(clippy::print_stderr, reason = "benches print what they measure")]

pub use context_window_testing::*;
