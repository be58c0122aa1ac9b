//! Counts and messages against those of other crates: `cargo test -p context-window-compare`.
#![allow(clippy::print_stderr, reason = "tests")]

mod acp;
mod counting;
mod templates;
