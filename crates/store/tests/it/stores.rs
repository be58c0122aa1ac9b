//! Sessions in SQLite and in PostgreSQL: each test that is not about one of them runs on both.

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
