//! Token counts: exact ones by the `OpenAI` encodings or any Hugging Face `tokenizer.json`, estimates by
//! characters, and counts by your own function.
//!
//! ```
//! use context_window_tokens::{Certainty, TokenCount, TokenCounter};
//!
//! # fn main() -> Result<(), context_window_tokens::Error> {
//! let counter = TokenCounter::chars_per_4();
//! let count: TokenCount = counter.count("How long do refunds take?")?;
//! assert_eq!((count.tokens, count.certainty), (7, Certainty::Estimate));
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! A [`TokenCounter`] counts plain text; each [`TokenCount`] carries its certainty. Counting can stop early
//! at a limit ([`TokenCounter::count_up_to`]). A counter can cache the counts of recurring texts
//! ([`TokenCounter::with_cache`]).
//!
//! # Features
//!
//! - `openai`: the encodings `o200k_base` and `cl100k_base`, embedded.
//! - `compact`: the same in 2 MB of the program in place of 21 MB. The first use of each takes about 50 ms.
//! - `loadable`: the same from files that the program loads (`TokenCounter::load_encoding`).
//! - `encodings`: the code of the encodings without their tables, which `openai` and `loadable` need.
//! - `hf`: any Hugging Face `tokenizer.json`.

#![cfg_attr(docsrs, feature(doc_cfg))]

// The modules are listed in layer order, lowest first. A test reads this list and checks the imports.
mod abridged;
mod certainty;
mod bounds;
mod error;
mod cache;
mod estimate;
#[cfg(feature = "hf")]
mod huggingface;
#[cfg(feature = "encodings")]
mod openai;
mod counter;

pub use abridged::abridged;
pub use cache::DocumentText;
pub use certainty::{Certainty, TokenCount};
pub use counter::TokenCounter;
pub use error::Error;
