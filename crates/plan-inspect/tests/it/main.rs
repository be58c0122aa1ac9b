//! The tool as its users call it: forms of input, formats, exit codes, errors, screens.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

use context_window_testing as support;

mod cli;
mod hostile;
#[cfg(feature = "html")]
mod html;
mod intervals;
mod session_out;
mod terminal;
