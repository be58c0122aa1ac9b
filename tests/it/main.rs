//! All tests from outside the crate in one binary, so that it is linked once. Each module has one subject.
//! Its name with `::` selects its tests: `cargo test --all-features --test it laws::`.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

use context_window_testing::{self as support, rules};

mod advice;
mod breakpoints;
#[cfg(feature = "openai")]
mod calibration;
mod citations;
mod compaction;
mod composition;
#[cfg(feature = "openai")]
mod config;
mod context_editing;
#[cfg(all(feature = "openai", feature = "hf"))]
mod costs;
#[cfg(all(feature = "openai", feature = "hf", feature = "chat-template"))]
mod counts_in_plans;
#[cfg(feature = "openai")]
mod cue_words;
mod data;
mod dependents;
mod diff;
#[cfg(feature = "openai")]
mod docs;
mod events;
mod explain;
#[cfg(feature = "openai")]
mod fixtures;
mod groups;
mod injection;
mod kinds;
mod late;
mod laws;
mod layout;
#[cfg(feature = "openai")]
mod media;
mod models;
mod native;
mod offloaded;
mod oracle;
mod pins;
mod prefix;
mod prose;
mod providers;
#[cfg(feature = "openai")]
mod real_compactions;
#[cfg(feature = "openai")]
mod replay;
mod rounds;
mod scale;
#[cfg(feature = "openai")]
mod schema;
mod sections;
mod selection;
mod sent_with;
mod standing_rules;
mod sticky;
mod template;
#[cfg(feature = "openai")]
mod think_tags;
mod thoughts;
mod unanswered;
mod variants;
mod validators;
