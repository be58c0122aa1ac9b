//! Decides what goes into a language model's prompt, within an exact token budget, and says why.
//!
//! ```
//! use context_window::{ContextWindowManager, Conversation, Message, PinnedItem, PlanRequest, RagItem, RequestLimits};
//!
//! # fn main() -> Result<(), context_window::Error> {
//! # #[cfg(feature = "openai")] {
//! let manager = ContextWindowManager::for_model("gpt-4o")?;
//! let mut log = Conversation::from([
//!     Message::system("Answer from the documents."),
//!     Message::user("Do you sell kettles?"),
//!     Message::assistant("Yes, two of them: the Wren and the Finch."),
//!     Message::user("How long do refunds take?"),
//! ]);
//! log.pin(PinnedItem::new("tone", "The customer likes short answers."));
//!
//! let documents = [
//!     RagItem::new("refunds", 0.92, "Refunds take 5 days."),
//!     RagItem::new("hours", 0.10, "We are open from 9 to 18, and on Saturdays from 9 to 13."),
//! ];
//! let request = PlanRequest::new(&log).with_rag(documents).with_limits(RequestLimits::prompt_budget(90));
//! let plan = manager.build_plan(&request)?;
//!
//! let ids: Vec<&str> = plan.included.iter().map(|item| item.id.as_str()).collect();
//! assert_eq!(ids, ["m0", "tone", "m1", "m2", "refunds", "m3"]);
//! assert_eq!(plan.excluded[0].id.as_str(), "hours");
//! assert_eq!(plan.excluded[0].reason.to_string(), "too large; 4 tokens left");
//! assert_eq!(plan.estimated_tokens_total.tokens, 86);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! A [`ContextWindowManager`] is bound to one model, one counter and one configuration. A [`Conversation`] is the
//! append-only log of messages, pins and lifetimes. A [`PlanRequest`] borrows the log and brings what belongs to one
//! prompt: documents, tools, volatile state, limits. [`ContextWindowManager::build_plan`] reads all of them and returns a
//! [`ContextPlan`]: every candidate in exactly one of `included` and `excluded`, each with its reason and its tokens.
//!
//! The stages run in this order, and each uses only the results of those before it:
//!
//! 1. candidates: what is required, pinned, retrieved; what has expired; what a broken history needs
//! 2. budget: the shares, what each section could use
//! 3. select: required, pinned, conversation, documents, then once more with what is left over
//! 4. assemble: rows and messages in prompt order
//! 5. conform: messages that the provider accepts
//! 6. ledger: every token, what is out and why
//!
//! The smallest use is four lines:
//!
//! ```
//! # use context_window::*;
//! # fn send(_: &impl serde::Serialize) {}
//! # fn main() -> Result<(), Error> {
//! # #[cfg(feature = "openai")] {
//! # let question = "How long do refunds take?";
//! # let hits = vec![(0.91, "refunds".to_string(), "Refunds take 5 days.".to_string())];
//! let manager = ContextWindowManager::for_model("gpt-4o")?;
//! let log = Conversation::from([Message::system("Answer from the documents."), Message::user(question)]);
//! let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(hits))?;
//! send(&render::openai(&plan));
//! # assert_eq!(plan.included.len(), 3);
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! A prompt that begins as the last one did is cheaper: [`Conversation::push_reply`] remembers where its window
//! started, which documents it held and which tool results were cleared, and the next plan goes on from there. A
//! stateless server that keeps no [`Conversation`] stores [`ContextPlan::anchor`] and passes it to
//! [`PlanRequest::with_previous`].
//!
//! A model without a public tokenizer is counted by another one, and every number says so. Hand the provider's report to
//! [`Conversation::push_reply`]: the next plan knows the [`TokenCalibration`](usage::TokenCalibration) and keeps its
//! budget in the provider's tokens.
//!
//! A conversation that outgrows its window is compacted: [`Compactor::due`](compaction::Compactor::due) hands
//! out a request for a summary, [`Compactor::apply_summary`](compaction::Compactor::apply_summary) takes the
//! answer back. Older messages are archived, never deleted: [`Conversation::history`] is what a person sees,
//! [`Conversation::active`] what is sent. [`ContextWindowManager::usage`] says how full the window is, and
//! the crate `context-window-store` keeps all of it on disk.
//!
//! # What it promises
//!
//! - Planning reads and never writes; the same request gives the same bytes. No clock, no randomness, no hash order.
//! - The tokens of `included` and `overhead` sum to the total, and the total is the count of the rendered prompt.
//! - A tool call is in with all its results or not at all; the live question is always in; documents are whole.
//! - Planning time depends on the size of the budget, not on the length of the history.
//! - With `fill = "backfill"` a larger budget may lose a document that a smaller one kept; `docs/rules.md` says when.
//!
//! # Ask it why
//!
//! [`Explainer::explain`](analysis::Explainer::explain) says which budget brings an item back, and which one makes it
//! leave; [`Diff::between`](analysis::Diff::between) names the one cause of every change between two plans;
//! [`ContextPlan::prefix`] says how much of the last prompt is repeated;
//! [`Explainer::remedies`](analysis::Explainer::remedies) plans an overflowing request again with each change that
//! helps, and [`Explainer::advice`](analysis::Explainer::advice) does the same for a prompt that is nearly full.
//!
//! # Where to find
//!
//! | task | entry point |
//! | --- | --- |
//! | plan a prompt | [`ContextWindowManager::build_plan`], [`PlanRequest`], [`ContextPlan`] |
//! | send it | [`render`] |
//! | keep the conversation | [`Conversation`]; on disk or in a database: the crate `context-window-store` |
//! | store it yourself, entry by entry | [`events::LogEvent`] |
//! | know how much to retrieve (budget hint) | [`ContextWindowManager::retrieval_budget`], [`plan::RetrievalBudget`] |
//! | add the time, open files (`SysInfo`) | [`PlanRequest::with_state`] |
//! | end a turn (decrement TTL) | [`Conversation::complete_turn`], [`Ttl`] |
//! | answer questions about used-up TTL | [`ContextPlan::events`], [`usage::ContextEvent::TtlAsk`], [`Conversation::pin`], [`Conversation::set_ttl`], [`Conversation::unpin`] |
//! | measure how full the window is | [`ContextWindowManager::usage`], [`usage::ContextUsage`] |
//! | show a status line | [`usage::ContextUsage`] as text; as a widget: `StatusLine` of `context-window-ratatui` |
//! | tell a user what happens | [`Conversation::observe_usage`], [`usage::Committed`], [`usage::ContextEvent`] |
//! | compact | [`ContextWindowManager::compactor`]; with a model that summarises: `context-window-genai` |
//! | retry after "prompt too long" | [`usage::is_context_overflow`], [`ContextWindowManager::plan_after_overflow`] |
//! | explain why an item is in or out | [`ContextWindowManager::explainer`], [`ContextPlan::reason`] |
//! | keep no state on a server | [`plan::Anchor`], [`PlanRequest::with_previous`] |
//! | count only | [`TokenCounter`], the crate `context-window-tokens` |
//! | print a plan | [`ContextPlan::to_json`]; as text, Markdown or a web page: `context-window-report` |
//! | read session files, transcripts, answers of a vector store | the crate `context-window-formats` |
//! | show a plan in a terminal | `context-window-ratatui`, or the tool `plan-inspect` |
//!
//! # Features
//!
//! `openai` (default): the encodings `o200k_base` and `cl100k_base`. `hf` (default): any Hugging Face `tokenizer.json`.
//! `chat-template`: prompts as the text of a model's own chat template.
//!
//! # Learn more
//!
//! - The book: `docs/README.md` in the repository. It has guides, every rule with its id and every option.
//! - [`Config`] and `config/default.toml`: every option; [`ConfigLayers`](config::ConfigLayers): presets, files,
//!   variables and flags over them.
//! - [`Registry`] and `config/models.toml`: models by name.
//! - [`Explainer::replay`](analysis::Explainer::replay): every prompt of a conversation, one after another.
//! - `examples/chat.rs`, `examples/agent.rs`: whole loops; `examples/rag-chat`: a whole application.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod item;
#[doc(hidden)]
pub mod text;
mod error;
mod name;
#[doc(hidden)]
pub mod media;
pub mod message;
pub mod config;
pub mod provider;
pub mod usage;
pub mod plan;
pub mod conversation;
pub mod events;
mod planner;
pub mod compaction;
pub mod analysis;

#[doc(inline)]
pub use self::{
    config::Config,
    conversation::Conversation,
    message::{Message, Part, Role, Tool, ToolCall, WireFormat},
    plan::{ContextPlan, ExcludedItem, ExcludedReason, IncludedReason, PlannedItem},
    provider::{Model, Registry, RequestLimits, render},
    usage::Usage,
};
pub use context_window_tokens as tokens;
#[doc(inline)]
pub use context_window_tokens::{TokenCount, TokenCounter};
pub use error::{Error, ErrorKind};
pub use item::{ItemId, ItemKind, PinnedItem, Priority, RagItem, Section, Source, Ttl};
pub use planner::manager::ContextWindowManager;
pub use planner::request::PlanRequest;
