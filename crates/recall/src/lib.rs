//! Brings turns that left the window back when the live question needs them.
//!
//! ```
//! use context_window::{
//!     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
//! };
//! use context_window_recall::{
//!     Error, Hit, MessageRanking, Opened, RebuildReason, Recall, RecallIndex, RecallOptions,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("context-window-recall-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("talk.recall");
//! let mut log = Conversation::from([
//!     Message::user("My sister Ida moved to Trondheim last spring.").with_id("ida"),
//!     Message::assistant("Then you have a good reason to see the fjords."),
//! ]);
//! for day in 0..40 {
//!     log.push(Message::user(format!("Write the summary of day {day}.")));
//!     log.push(Message::assistant(format!("Day {day} was spent on the quarterly report, as planned.")));
//! }
//! log.push(Message::user("In which city does my sister live?"));
//!
//! let (mut recall, opened): (Recall, Opened) = Recall::open(&path, &log)?;
//! assert_eq!(opened, Opened::Rebuilt(RebuildReason::Missing));
//! let counter = TokenCounter::chars_per_4();
//! let manager = ContextWindowManager::new(Model::custom("m"), counter, Config::default())?;
//! let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(800));
//! let plan = manager.build_plan(&recall.for_request(request.clone()))?;
//! assert!(plan.included.iter().any(|row| row.id == "recall:ida"));
//! let saved: Result<(), Error> = recall.save(); // after the conversation
//! saved?;
//!
//! // A tool of the model, or a view.
//! let hits: Vec<Hit> = recall.search(&log, "Trondheim");
//! assert_eq!(hits[0].ids[0], "ida");
//!
//! // Your own ranking, such as one by embeddings.
//! let ranking = MessageRanking::new(["ida"]).with_weight(2);
//! let mut recall = recall.with_options(RecallOptions::new().with_max_hits(5));
//! let request = recall.for_request_with(request, &[ranking]);
//!
//! // The right to be forgotten.
//! recall.forget(&log, ["ida"]);
//! recall.save()?;
//! let index: &RecallIndex = recall.index();
//! assert!(recall.search(&log, "Trondheim").is_empty());
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! A [`Recall`] indexes the messages of a conversation by their words. For the live question of a request, it
//! finds passages: a message, a part of a long one, or several short turns. They are documents in the list
//! `recall`. The planner leaves out those whose messages are in the window, and gives the others at most
//! `rag.recall_share` of the budget.
//!
//! The ranking is BM25 in whole numbers, so every machine finds the same. The index file only saves the time
//! to build it: it can be deleted at any time.

mod error;
mod logarithm;
mod words;
mod bm25;
mod postings;
mod passage;
mod record;
mod index;
mod file;
mod query;
mod search;
mod options;
mod hit;
mod recall;
mod ranking;
mod arguments;
mod lines;
mod reading;
mod tool;

pub use error::Error;
pub use file::{Opened, RebuildReason};
pub use hit::Hit;
pub use index::RecallIndex;
#[doc(hidden)]
pub use logarithm::{FRACTION, log2};
pub use options::{MessageRanking, RecallOptions};
#[doc(hidden)]
pub use ranking::TextRanking;
pub use recall::Recall;
