//! Counts and messages compared with other crates: `cargo test -p context-window-benches`.
#![allow(
    clippy::disallowed_methods,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a bench"
)]

mod acp;
mod counting;
mod templates;
