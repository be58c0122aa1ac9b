//! Logs and stores, used like in an application.
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

#[cfg(feature = "sqlite")]
mod endurance;
mod journal;
mod log_damage;
#[cfg(unix)]
mod names;
#[cfg(all(target_os = "linux", feature = "sqlite"))]
mod syncs;
#[cfg(feature = "sqlite")]
mod places;
#[cfg(feature = "sqlite")]
mod stores;
