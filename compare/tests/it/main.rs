//! Counts against those of other crates: `cargo test -p context-window-compare`.
#![allow(clippy::print_stderr, reason = "tests")]

mod counting;
mod templates;
