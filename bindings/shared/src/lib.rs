//! The parts of bindings that no language changes: errors by kind, requests that are kept, messages in the
//! formats of providers.

mod fault;
mod wire;
mod reply;
mod request;

pub use fault::{Fault, FaultKind};
pub use reply::read_report;
pub use request::KeptRequest;
pub use wire::{body_json, messages_of, placed_text, read_message, rendered, wire_format};
