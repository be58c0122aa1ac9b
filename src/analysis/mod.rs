//! Analysis of plans by planning again: reasons, other budgets, the differences between two plans, and the
//! repeated beginning of a prompt. [`Explainer`] is the entry point. [`Citations`] checks replies.
//!
//! ```
//! use context_window::{
//!     ContextWindowManager, Conversation, Message, PlanRequest, RagItem, RequestLimits,
//!     analysis::{
//!         Advice, AdvisedChange, Cause, Change, Citation, CitationVerdict, Citations, ConfirmedRemedy,
//!         Diff, Evidence, Explainer, Explanation, Interval, ItemState, Prefix, ReasoningChange, Step,
//!         ToolsChange,
//!     },
//! };
//!
//! # fn main() -> Result<(), context_window::Error> {
//! # #[cfg(feature = "openai")] {
//! let manager = ContextWindowManager::for_model("gpt-4o")?;
//! let log = Conversation::from([Message::user("How long do refunds take?")]);
//! let request = PlanRequest::new(&log).with_rag([RagItem::new("refunds", 0.9, "Refunds take 5 days.")]);
//! let smaller = request.clone().with_limits(RequestLimits::prompt_budget(20));
//!
//! // An item: the budgets at which it is in.
//! let explainer: Explainer<'_> = manager.explainer(&smaller);
//! let refunds: Explanation = explainer.explain("refunds")?;
//! let intervals: &[Interval] = &refunds.intervals;
//! assert!(!refunds.included && Some(intervals[0].from) == refunds.enters_at);
//!
//! // Two plans: the cause of each change.
//! let diff = Diff::between(&manager.explainer(&request), &explainer)?;
//! let change: &Change = &diff.changes[0];
//! assert_eq!((change.cause, change.evidence), (Cause::Budget, Evidence::Alone));
//! assert_ne!(change.to, ItemState::Absent);
//! let dropped = |change: &&ReasoningChange| change.was_sent() && !change.is_sent();
//! let tools: Option<&ToolsChange> = diff.tools.as_ref();
//! assert!(tools.is_none() && diff.thoughts.iter().find(dropped).is_none());
//!
//! // The part of the earlier prompt that the later one repeats.
//! let prefix: Option<Prefix> = diff.prefix;
//! assert!(prefix.is_some());
//!
//! // Changes that make a prompt fit, and changes that make room in one that is nearly full.
//! let remedies: Vec<ConfirmedRemedy> = explainer.remedies()?;
//! let advice: Option<Advice> = explainer.advice(&manager.build_plan(&smaller)?)?;
//! assert!(remedies.is_empty());
//! assert!(!advice.is_some_and(|advice| advice.change == AdvisedChange::DropReasoning));
//!
//! // The citations of a reply: these documents have no labels.
//! let citations: Citations = manager.build_plan(&request)?.citations();
//! let found: Vec<Citation> = citations.check("Refunds take 5 days [1].");
//! assert_eq!(found[0].verdict, CitationVerdict::Unknown);
//!
//! // All prompts of a conversation.
//! let steps: Vec<Step> = explainer.replay().collect::<Result<_, _>>()?;
//! assert_eq!(steps.len(), 1);
//! # }
//! # Ok(())
//! # }
//! ```

mod explainer;
pub(crate) mod explain;
pub(crate) mod diff;
pub(crate) mod replay;

pub use crate::citations::{Citation, CitationVerdict, Citations, NativeCitation};
pub use crate::plan::{PrefixCause, prefix::Prefix};
pub use diff::{Cause, Change, Diff, Evidence, ItemState, ReasoningChange, ToolsChange};
pub use explain::{Advice, AdvisedChange, ConfirmedRemedy, Explanation, Interval};
#[doc(hidden)]
pub use explain::{BudgetMap, BudgetStep, EnteringItem, MappedItem, MappedSection};
pub use explainer::Explainer;
pub use replay::Step;
