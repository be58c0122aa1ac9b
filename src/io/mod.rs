//! Files: the log on disk, session files of many forms, what a retriever answered.

pub mod acp;
pub(crate) mod checksum;
mod stored_anchor;
mod record;
mod events;
pub(crate) mod journal;
pub(crate) mod session;
pub(crate) mod retrieval;

pub use events::LogEvent;
pub use journal::{Journal, TruncatedTail, save_whole};
pub use retrieval::FieldMap;
pub use session::{Session, SessionFile, SessionTexts};
