//! Storage for conversations: a log in one file, SQLite for one machine, PostgreSQL for several.
//!
//! A store holds many sessions. A session is the sequence of entries of one conversation. A writer appends at
//! the end and states its revision, the number of entries that it knows of. If another writer appended first,
//! [`SessionStore::save`] merges the entries of both if it can. Otherwise nothing is written, and the error
//! has both numbers (sessions of a store, rules J4 to J6).
//!
//! ```
//! # #[cfg(feature = "sqlite")] {
//! use context_window::Message;
//! use context_window_store::{Conflict, SessionCheck, SessionStore, SessionSummary};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("context-window-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let address = format!("sqlite:{}", folder.join("sessions.db").display());
//! # let address = address.as_str();
//! // "sqlite:sessions.db", or "postgres://user:password@host/database"
//! let mut store = SessionStore::open(address)?;
//! let (mut log, revision) = store.load_or_new("ada")?;
//! log.push(Message::user("How long do refunds take?"));
//! let revision = store.save("ada", &mut log, revision)?; // on disk when this returns
//! assert_eq!(store.load("ada")?, (log.clone(), revision));
//!
//! // A writer that is behind is told who is ahead.
//! let error = store.save("ada", &mut log, 0).unwrap_err();
//! let conflict: Option<&Conflict> = error.conflict();
//! assert!(conflict.is_some_and(|conflict| conflict.found == revision));
//! let summary: Option<SessionSummary> = store.summary("ada")?;
//! let check: SessionCheck = store.check("ada")?;
//! assert!(summary.is_some_and(|summary| summary.messages == 1) && check.faults.is_empty());
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok(())
//! # }
//! # main().unwrap();
//! # }
//! ```
//!
//! A log in one file:
//!
//! ```
//! use context_window::Message;
//! use context_window_store::{Journal, LogDamage, LogState, LostLine, TruncatedTail, check_log};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("context-window-log-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("talk.log");
//! let (mut journal, mut log) = Journal::open(&path)?;
//! let unfinished: Option<&TruncatedTail> = journal.truncated_tail();
//! assert!(unfinished.is_none());
//! log.push(Message::user("Hello"));
//! journal.save(&log)?; // on disk when this returns
//! drop(journal);
//!
//! let state: LogState = check_log(&path)?;
//! let damage: Option<LogDamage> = state.damage;
//! let lost: Vec<LostLine> = damage.map(|damage| damage.lost).unwrap_or_default();
//! assert_eq!((state.messages, lost.len()), (1, 0));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    allow(dead_code, reason = "without a database no store opens, and its error names the feature")
)]

mod conflict;
mod error;
mod named_file;
mod whole_file;
mod record_line;
mod log_reader;
mod journal;
mod repair;
mod address;
mod outline;
mod entry;
mod summary;
mod schema;
mod backend;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "postgres-tls")]
mod tls;
#[cfg(feature = "postgres")]
mod postgres;
mod commuting;
mod reading;
mod check;
mod session_store;
mod item_list;

pub use check::SessionCheck;
pub use conflict::Conflict;
pub use error::{Error, ErrorKind};
pub use journal::Journal;
pub use log_reader::TruncatedTail;
#[doc(hidden)]
pub use repair::{LogDamage, LogState, LostLine, check_log, cut_log};
pub use session_store::SessionStore;
pub use summary::{ListOptions, SessionSummary};
#[doc(hidden)]
pub use whole_file::{create_part, save_whole, save_whole_public, sync_folder};
