//! Tests of summaries against a scripted provider.
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

mod driver;
