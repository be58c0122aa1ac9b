//! The npm package `context-window`: the crate `context-window` with JavaScript types.
//!
//! JavaScript passes plain data and receives plain data, both as JSON. Managers, conversations and plans stay
//! on this side.

mod error;
mod json;
mod data;
mod wire;
mod counter;
mod request;
mod shared_log;
mod plan;
mod conversation;
mod compaction;
mod manager;
mod catalogue;
