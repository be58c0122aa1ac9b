//! Counts compared with those of the tokenizers themselves.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

#[allow(unused_imports, reason = "features decide which tests use it")]
use context_window_testing as support;

#[cfg(all(feature = "openai", feature = "hf"))]
mod counting;
