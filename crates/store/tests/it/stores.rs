//! Sessions in SQLite and in PostgreSQL: each test that is not about one of them runs on both.

mod active;
pub mod appending;
mod damage;
#[cfg(unix)]
mod encrypted;
mod refused;
mod sessions;
#[cfg(unix)]
mod writers;
