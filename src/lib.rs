//! Selects the content of a language model's prompt within an exact token budget, with a reason for each
//! decision.
//!
//! ```
//! use context_window::{
//!     ContextWindowManager, Conversation, Message, PinnedItem, PlanRequest, RagItem, RequestLimits, render,
//! };
//!
//! # fn send(_: &impl serde::Serialize) {}
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
//! send(&render::openai(&plan)); // the body of the request to the provider
//! # }
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! A [`ContextWindowManager`] combines one model, one token counter and one configuration. A [`Conversation`]
//! is an append-only log of messages, pins and TTLs. A [`PlanRequest`] borrows the log and adds the parts of
//! a single prompt: documents, tools, limits, and state such as the time.
//! [`ContextWindowManager::build_plan`] returns a [`ContextPlan`], which lists every candidate as included or
//! excluded, with its tokens and its reason.
//!
//! After the reply, call [`Conversation::push_reply`]. It records the start of the window, the included
//! documents and the provider's usage report. The next prompt then begins with the same bytes, so the
//! provider's cache applies. If a model's own tokenizer is not built in, another one counts, and each such
//! count is marked as an estimate. The usage reports then correct the budget.
//!
//! A conversation that outgrows its window is compacted: [`Compactor::due`](compaction::Compactor::due)
//! returns a request for a summary, and [`Compactor::apply_summary`](compaction::Compactor::apply_summary)
//! applies the summary. Older messages are archived, never deleted. [`Conversation::history`] returns all of
//! them, [`Conversation::active`] only those that are still sent.
//!
//! You can rely on these properties:
//!
//! - Planning never changes the conversation. Equal requests give equal bytes: there is no clock, no
//!   randomness and no dependence on hash order.
//! - The tokens of `included` and `overhead` sum to the total, and the total is the token count of the
//!   rendered prompt.
//! - A tool call is included with all its results or not at all. The live question, which is the newest user
//!   message, is always included. Documents are included whole.
//! - Planning time depends on the size of the budget, not on the length of the history.
//! - With `fill = "backfill"`, a larger budget may lose a document that a smaller one kept (rule S8 of
//!   `docs/rules.md`).
//!
//! The feature `openai` (default) adds the encodings `o200k_base` and `cl100k_base`, `hf` (default) adds any
//! Hugging Face `tokenizer.json`, and `chat-template` renders prompts with a model's own chat template. The
//! book starts at `docs/README.md` in the repository and contains guides, all rules and all options.
//! `examples/chat.rs` and `examples/agent.rs` are complete loops, `examples/rag-chat` is a complete
//! application.
//!
//! # Entry points
//!
//! | task | entry point |
//! | --- | --- |
//! | plan a prompt | [`ContextWindowManager::build_plan`], [`PlanRequest`], [`ContextPlan`] |
//! | render a prompt for a provider | [`render`] |
//! | store a conversation | [`events::LogEvent`]; on disk or in a database: `context-window-store` |
//! | bring earlier messages back | [`PlanRequest::with_recall`], the crate `context-window-recall` |
//! | get a budget hint for retrieval | [`ContextWindowManager::retrieval_budget`] |
//! | add state, such as the time or open files | [`PlanRequest::with_state`] |
//! | end a turn (decrement TTL) | [`Conversation::complete_turn`], [`Ttl`] |
//! | keep a lasting rule of the user | [`Conversation::keep_rule`], [`StandingRule`] |
//! | handle an expired TTL | [`Conversation::pin`], [`Conversation::set_ttl`], [`Conversation::unpin`] |
//! | measure context window usage | [`ContextWindowManager::usage`], [`usage::ContextUsage`] |
//! | show a status line | [`usage::ContextUsage`]; as a widget: `context-window-ratatui` |
//! | report events to a user | [`ContextPlan::events`], [`Conversation::observe_usage`] |
//! | compact a conversation | [`ContextWindowManager::compactor`]; with a model: `context-window-genai` |
//! | detect the error "prompt too long" | [`usage::is_context_overflow`] |
//! | plan again after that error | [`ContextWindowManager::plan_after_overflow`] |
//! | correct an estimating counter | [`Conversation::push_reply`], [`usage::TokenCalibration`] |
//! | explain a decision | [`ContextPlan::reason`], [`Explainer::explain`] |
//! | compare two plans | [`Diff::between`], [`ContextPlan::prefix`] |
//! | fix or avoid an overflow | [`Explainer::remedies`], [`Explainer::advice`] |
//! | replay the prompts of a conversation | [`Explainer::replay`] |
//! | run a server without stored state | [`ContextPlan::anchor`], [`PlanRequest::with_previous`] |
//! | count tokens | [`TokenCounter`], the crate `context-window-tokens` |
//! | configure the planner | [`Config`], `config/default.toml`; presets, files and flags: [`ConfigLayers`] |
//! | add a model | [`Registry`], `config/models.toml` |
//! | print a plan | [`ContextPlan::to_json`]; as text, Markdown or a web page: `context-window-report` |
//! | read sessions, transcripts, search results | the crate `context-window-formats` |
//! | show a plan in a terminal | `context-window-ratatui`, or the tool `plan-inspect` |
//!
//! [`ConfigLayers`]: config::ConfigLayers
//! [`Diff::between`]: analysis::Diff::between
//! [`Explainer::advice`]: analysis::Explainer::advice
//! [`Explainer::explain`]: analysis::Explainer::explain
//! [`Explainer::remedies`]: analysis::Explainer::remedies
//! [`Explainer::replay`]: analysis::Explainer::replay

#![cfg_attr(docsrs, feature(doc_cfg))]

// The order of the modules is the order of the layers: a module uses only those above it.
mod item;
#[doc(hidden)]
pub mod text;
mod standing_rule;
mod cue_words;
mod rag;
mod error;
mod name;
#[doc(hidden)]
pub mod media;
pub mod message;
pub mod config;
pub mod provider;
pub mod usage;
pub mod plan;
mod citations;
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
#[doc(hidden)]
pub use cue_words::find_rules;
pub use error::{Error, ErrorKind};
pub use item::{ItemId, ItemKind, PinnedItem, Priority, Section, Source, Ttl};
pub use planner::manager::ContextWindowManager;
pub use planner::request::PlanRequest;
#[doc(hidden)]
pub use rag::fused_value;
pub use rag::{ListRank, RagItem, RetrievedItems};
pub use standing_rule::{RuleSource, StandingRule};
