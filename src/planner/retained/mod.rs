//! Texts that stay where they were first sent: documents, state, late instructions and tools.
//!
//! - Input: the request, the texts that the log remembers as sent, and the last prompt.
//! - Output: the retained texts before each message, the new texts, and the texts that leave.
//! - Rules: S10, S11, S12.

mod cost;
mod late;
mod items;

pub(crate) use cost::retention_cost;
pub(crate) use items::{RetainedItems, enables_citations, has_documents};
pub(crate) use late::LateAdditions;
