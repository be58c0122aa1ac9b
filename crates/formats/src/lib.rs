//! Readers for the files that people bring to `context-window`: session files, logged request bodies,
//! transcripts of coding agents, files of other tools, and the answers of retrievers.
//!
//! ```
//! use context_window::{Config, ContextWindowManager, Model, TokenCounter};
//! use context_window_formats::Session;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (model, counter) = (Model::custom("m"), TokenCounter::chars_per_4());
//! # let manager = ContextWindowManager::new(model, counter, Config::default())?;
//! let session = Session::from_json(r#"{"messages": [{"role": "user", "content": "Refunds?"}]}"#)?;
//! let plan = manager.build_plan(&session.request())?;
//! assert_eq!(plan.included.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! A [`SessionFile`] holds one session or many. A [`Session`] is a conversation with the inputs of its next
//! prompt. The format of a file is detected from its shape, or you set it with [`ReadOptions`]. A
//! [`FieldMap`] reads the documents of a retriever's answer. [`acp`] writes updates for clients of the Agent
//! Client Protocol.

pub mod acp;
mod date;
mod error;
mod format;
mod retrieval;
mod scan;
mod session;
mod foreign;
mod pushed;
mod file;

pub use error::{Error, ErrorKind};
pub use file::SessionFile;
pub use format::{FileFormat, ReadOptions};
pub use pushed::{push_json, tools_from_json};
pub use retrieval::FieldMap;
pub use session::{Session, SessionTexts, session_json};
