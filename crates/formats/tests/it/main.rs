//! Files that users bring, read through the public API.
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

mod border;
mod dialects;
mod documents;
mod foreign;
mod law;
mod long_values;
mod pushed;
mod reading;
mod redacted;
mod stated;
mod transcripts;
