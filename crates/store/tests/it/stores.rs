//! Sessions in SQLite and PostgreSQL. Each test runs on both, unless it is about one of them.

mod active;
pub mod appending;
mod damage;
#[cfg(all(unix, feature = "postgres"))]
mod encrypted;
#[cfg(all(unix, feature = "postgres"))]
mod lost_answers;
mod items;
mod refused;
mod sessions;
#[cfg(unix)]
mod writers;
