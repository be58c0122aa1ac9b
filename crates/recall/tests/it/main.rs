//! Tests of the crate as an application uses it.
#![allow(clippy::pedantic, clippy::unwrap_used, missing_docs, reason = "tests")]

mod file;
mod killed;
mod laws;
mod scripts;
mod talk;
mod tool;
