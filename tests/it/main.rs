//! Every test that sees the crate from outside, in one binary: it is linked once. A module a subject; a name before `::`
//! runs one of them: `cargo test --all-features --test it laws::`.
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod rules;
mod support;

mod breakpoints;
#[cfg(feature = "openai")]
mod calibration;
#[cfg(all(feature = "inspect", feature = "openai"))]
mod cli;
mod compaction;
mod composition;
#[cfg(feature = "openai")]
mod config;
mod context_editing;
#[cfg(all(feature = "openai", feature = "hf"))]
mod costs;
#[cfg(all(feature = "openai", feature = "hf"))]
mod counting;
#[cfg(all(feature = "openai", feature = "hf", feature = "chat-template"))]
mod counts_in_plans;
#[cfg(feature = "openai")]
mod data;
mod diff;
#[cfg(feature = "openai")]
mod docs;
#[cfg(all(feature = "genai", feature = "openai"))]
mod driver;
#[cfg(feature = "openai")]
mod endurance;
mod events;
mod explain;
#[cfg(feature = "openai")]
mod fixtures;
#[cfg(all(feature = "inspect", feature = "openai"))]
mod hostile;
#[cfg(all(feature = "html", feature = "openai"))]
mod html;
mod injection;
#[cfg(all(feature = "inspect", feature = "openai"))]
mod intervals;
mod journal;
mod kinds;
mod late;
mod laws;
mod layout;
mod models;
mod oracle;
mod pins;
mod prefix;
mod providers;
mod pushed;
#[cfg(feature = "openai")]
mod real_compactions;
mod reading;
#[cfg(feature = "openai")]
mod replay;
mod scale;
#[cfg(feature = "openai")]
mod schema;
mod sections;
mod sent_with;
mod session_out;
mod sticky;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod stores;
mod surface;
#[cfg(feature = "inspect")]
mod terminal;
#[cfg(feature = "openai")]
mod thoughts;
mod transcripts;
mod validators;
#[cfg(all(feature = "widgets", feature = "openai"))]
mod widgets;
