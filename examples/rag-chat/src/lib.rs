//! The parts of `rag-chat`. Begin with [`chat::Chat`]: it shows an application of `context-window` without a
//! screen.

pub mod args;
pub mod documents;
pub mod private;
pub mod fingerprint;
pub mod chunks;
pub mod index;
pub mod answerer;
pub mod models;
pub mod event;
pub mod command;
pub mod chat;
pub mod once;
pub mod screen;
