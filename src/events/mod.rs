//! A conversation as data: its messages and events, one entry at a time, for an application's own store.

#[doc(hidden)]
pub mod checksum;
#[doc(hidden)]
pub mod stored_anchor;
#[doc(hidden)]
pub mod record;
mod log_event;

pub use log_event::LogEvent;
