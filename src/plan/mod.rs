//! Plans: the included items, the excluded items with their reasons, and every token. You can read, render or
//! compare a plan without its request, log or tokenizer. [`crate::PlanRequest`] and
//! [`crate::ContextWindowManager`], which make plans, are at the root of the crate.
//!
//! ```
//! use context_window::{
//!     ContextWindowManager, Conversation, ItemId, ItemKind, Message, PlanRequest, RagItem, RequestLimits,
//!     Section, Source,
//!     plan::{
//!         BudgetSource, Composition, ContextPlan, Decision, DropReason, DroppedReasoning, ExcludedCode,
//!         ExcludedItem, ExcludedReason, IncludedReason, ItemMessage, Kind, LargeItem, LedgerLine, LimitedBy,
//!         Never, Notice, NoticeCode, Overflow, Overhead, PlannedItem, PolicyRule, PrefixCause, Reason,
//!         ReasoningReport, Remedy, RetentionCost, RetrievalBudget, SectionUse,
//!     },
//!     provider::{Limits, LimitsSource},
//! };
//!
//! # fn main() -> Result<(), context_window::Error> {
//! # #[cfg(feature = "openai")] {
//! let manager = ContextWindowManager::for_model("gpt-4o")?;
//! let log = Conversation::from([Message::user("How long do refunds take?")]);
//! let hours = RagItem::new("hours", 0.1, "We are open from 9 to 18, and on Saturdays from 9 to 13.");
//! let request = PlanRequest::new(&log).with_rag([hours]).with_limits(RequestLimits::prompt_budget(25));
//! let plan: ContextPlan = manager.build_plan(&request)?;
//!
//! // An included item, and an excluded one.
//! let question: &PlannedItem = &plan.included[0];
//! assert_eq!((&question.kind, question.source), (&ItemKind::Message, Source::Conversation));
//! assert_eq!(question.reason, IncludedReason::Required);
//! let out: &ExcludedItem = &plan.excluded[0];
//! assert!(matches!(out.reason, ExcludedReason::Budget { limited_by: LimitedBy::Size, .. }));
//! assert_eq!((out.reason.code(), &out.id), (ExcludedCode::Budget, &ItemId::from("hours")));
//! assert!(!matches!(out.reason, ExcludedReason::Policy(PolicyRule::MaxItems { .. })));
//! assert!(matches!(plan.find("hours"), Some(Decision::Excluded(_))));
//! assert!(matches!(plan.reason("hours"), Some(Reason::Excluded(_))));
//! let never: Option<Never> = manager.explainer(&request).explain("hours")?.never;
//! assert_eq!(never, None); // a larger budget brings it in
//!
//! // The ledger, and the sections' parts.
//! let line: &LedgerLine = &plan.overhead[0];
//! assert_eq!(line.what, Overhead::ReplyPriming);
//! let documents: SectionUse = plan.section(Section::Rag);
//! assert_eq!(documents.used, 0);
//! let (limits, source): (Limits, LimitsSource) = (plan.limits, plan.limits_source);
//! assert_eq!((source, plan.budget_source), (LimitsSource::Request, BudgetSource::Request));
//! assert_eq!(limits.model_context_len, 128_000);
//! let notices: &[Notice] = &plan.notices;
//! assert!(notices.iter().all(|notice| notice.code != NoticeCode::WindowCut));
//!
//! // A prompt that does not fit.
//! if let Some(Overflow { remedies, .. }) = &plan.overflow {
//!     assert!(remedies.iter().any(|remedy| matches!(remedy, Remedy::RaiseBudget { .. })));
//! }
//!
//! // Views of the prompt.
//! let parts: Composition = plan.composition(1);
//! let largest: &LargeItem = &parts.largest[0];
//! assert_eq!(largest.kind, Kind::User);
//! let messages: Vec<ItemMessage> = plan.by_item();
//! assert_eq!(messages.len(), 1);
//!
//! // Reasoning of earlier replies, and the cost of documents that stay.
//! let reasoning: &ReasoningReport = &plan.thoughts;
//! let dropped: Option<&DroppedReasoning> = reasoning.lost.first();
//! assert!(dropped.is_none_or(|dropped| dropped.why != DropReason::ChainBroken));
//! let kept: Option<RetentionCost> = plan.upkeep;
//! assert!(kept.is_none());
//!
//! // The tokens that documents could have.
//! let hint: RetrievalBudget = manager.retrieval_budget(&request)?;
//! assert!(hint.most > 0);
//! let differs = plan.repeated().and_then(|prefix| prefix.cause);
//! assert_ne!(differs, Some(PrefixCause::Changed));
//! # }
//! # Ok(())
//! # }
//! ```

pub(crate) mod reason;
mod searched_rules;
mod retention_cost;
mod result_form;
mod editing;
pub(crate) mod labels;
mod ledger;
mod notice;
mod remote_context;
mod retrieval_budget;
mod settings;
mod reasoning;
mod rows;
mod trace;
pub(crate) mod anchor;
mod carryover;
mod pieces;
pub(crate) mod prefix;
mod by_item;
mod json;
mod continuation;
pub(crate) mod composition;

pub use anchor::Anchor;
#[doc(hidden)]
pub use anchor::SentItems;
pub(crate) use anchor::{PromptHead, PromptPiece, Sender, Target};
pub use by_item::ItemMessage;
pub(crate) use composition::reasoning_tokens;
pub use composition::{Composition, Kind, LargeItem};
#[doc(hidden)]
pub use composition::{GridCells, RowKey, RowKind, about, first_line, kind_of, kind_of_message};
pub use editing::ContextEditing;
pub use ledger::{LedgerLine, Overhead};
pub use notice::{Notice, NoticeCode};
pub use reason::{ExcludedCode, ExcludedReason, IncludedReason, LimitedBy, Never, PolicyRule, Reason};
pub use reasoning::{DropReason, DroppedReasoning, PrefixCause, ReasoningReport};
pub use remote_context::RemoteContext;
pub(crate) use result_form::{Offload, ResultForm};
pub use retention_cost::RetentionCost;
pub use retrieval_budget::RetrievalBudget;
pub use rows::{Decision, ExcludedItem, PlannedItem};
pub(crate) use rows::{DocumentFacts, ShorterForm};
pub(crate) use searched_rules::SearchedRules;
pub(crate) use settings::PromptSettings;
pub(crate) use trace::TraceIds;

use crate::{
    item::{ItemId, ItemKind, Section},
    message::{Message, Prompt, WireFormat},
    provider::model::{Limits, LimitsSource},
    standing_rule::StandingRule,
    tokens::TokenCount,
    usage::{ContextEvent, ContextUsage, TokenCalibration},
};
use serde::Serialize;

/// A planned prompt: the included and the excluded candidates, each with its reason and its tokens.
///
/// Every candidate is in exactly one of `included` and `excluded` (rule O2). The tokens of `included` and
/// `overhead` sum to `estimated_tokens_total` (rule N3).
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits,
///     TokenCounter,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let hours = RagItem::new("hours", 0.1, "We are open from 9 to 18, and on Saturdays from 9 to 13.");
/// let request = PlanRequest::new(&log).with_rag([hours]).with_limits(RequestLimits::prompt_budget(20));
/// let plan = manager.build_plan(&request)?;
/// assert_eq!(plan.included[0].id, "m0");
/// assert_eq!(plan.excluded[0].id, "hours");
/// assert!(plan.excluded[0].reason.to_string().starts_with("too large"));
/// assert!(plan.estimated_tokens_total.tokens <= plan.prompt_budget); // tokens
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContextPlan {
    /// The model of the plan.
    pub model: String,
    /// The provider that serves the model.
    pub provider: String,
    /// The wire format of the messages and of their token counts.
    pub wire_format: WireFormat,
    /// The name of the token counter.
    pub tokenizer: String,
    /// `default`, or a hash of the options in use (rule O4).
    pub config: String,
    /// The limits in use, in tokens.
    pub limits: Limits,
    /// The source of the limits.
    pub limits_source: LimitsSource,
    /// The source of the prompt budget.
    pub budget_source: BudgetSource,
    /// The correction from the local count to the provider's, if one was learned or set (token calibration,
    /// rule N6).
    pub calibration: Option<TokenCalibration>,
    /// The prompt budget, in tokens.
    pub prompt_budget: u64,
    /// Tokens that belong to no item, such as tool definitions and the reply header.
    pub overhead: Vec<LedgerLine>,
    /// The sections, in the order of [`Section::ALL`].
    pub sections: Vec<SectionUse>,
    /// Included items, in prompt order.
    pub included: Vec<PlannedItem>,
    /// Excluded items: system texts and pins, then the conversation in log order, then documents by rank
    /// (rule S8).
    pub excluded: Vec<ExcludedItem>,
    /// The token count of the whole prompt.
    pub estimated_tokens_total: TokenCount,
    /// The overflow, if the minimum exceeds the budget.
    pub overflow: Option<Overflow>,
    /// The first message of the window, which is the included end of the conversation (rule S4). `None` if
    /// there is none.
    pub window_start: Option<ItemId>,
    /// Sentences about unusual events, such as repairs, and about expired items that are kept one more turn.
    pub notices: Vec<Notice>,
    /// The message before which tool results are replaced by stubs (cleared results, rule S7).
    pub cleared_before: Option<ItemId>,
    /// The usage of the context window (rule U2).
    pub usage: ContextUsage,
    /// The reasoning of earlier replies: sent, or dropped with its reason (rules K1 to K4).
    pub thoughts: ReasoningReport,
    /// The part of the request that asks the provider to edit the prompt by itself, if the options request it
    /// (provider-side editing, rule C12).
    pub context_editing: Option<ContextEditing>,
    /// The cost of documents and state of earlier questions, at a new question (retention cost, rule S11).
    /// `None` if none are retained, or if the model has no price.
    pub upkeep: Option<RetentionCost>,
    /// HTTP headers that the request needs, as name and value: for tools at the end of the prompt (late
    /// additions, rule S12), and for summaries that a provider made (rule C11). Values of one name go into
    /// one header, separated by commas.
    pub headers: Vec<(String, String)>,
    pub(crate) carryover: Carryover,
}

/// The source of the prompt budget (rule B1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetSource {
    /// The context length minus completion and safety buffer.
    ContextLen,
    /// The model's own input limit minus the safety buffer, if that is smaller.
    MaxInput,
    /// The request itself.
    Request,
}

pub(crate) use carryover::{Carryover, LastPrompt, NewState};
pub(crate) use pieces::{SentPrompt, ToolsHash};

/// The id of the tool definitions among the recorded items of a sent prompt.
pub(crate) const TOOLS: &str = "tools";

/// The budget of one section and its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionUse {
    /// The section.
    pub section: Section,
    /// Its share of the tokens for items, per mille.
    pub share: u16,
    /// Its hard limit, in tokens.
    pub cap: Option<u64>,
    /// Its budget, in tokens (division of the budget, rule B5).
    pub budget: u64,
    /// Tokens of its included items. They may exceed `budget` by tokens that other sections did not use (free
    /// tokens, rule B6).
    pub used: u64,
    /// Number of included items.
    pub included: u64,
    /// Number of excluded items.
    pub excluded: u64,
}

/// An overflow: the minimum does not fit into the budget (rule S6).
///
/// ```
/// use context_window::{
///     Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits,
///     TokenCounter,
/// };
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager =
/// #     ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(5));
/// let plan = manager.build_plan(&request)?;
/// if let Some(overflow) = &plan.overflow {
///     println!("{} tokens too many; required: {:?}", overflow.tokens, overflow.minimum);
///     // Each proposal with the size of the prompt that it leads to.
///     for confirmed in manager.explainer(&request).remedies()? {
///         println!("{:?}: {} tokens", confirmed.remedy, confirmed.estimated_tokens_total.tokens);
///     }
/// }
/// # assert!(plan.overflow.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Overflow {
    /// Tokens over the budget.
    pub tokens: u64,
    /// The items of the minimum.
    pub minimum: Vec<ItemId>,
    /// The smallest set of items that is too large together, in prompt order. Without any one of them the
    /// others fit. Empty if tools and other overhead are too large by themselves.
    pub conflict: Vec<ItemId>,
    /// Single changes that make the prompt fit, the cheapest first.
    pub remedies: Vec<Remedy>,
}

impl Overflow {
    /// Returns the smallest budget that is enough, in tokens, if a remedy names it.
    pub(crate) fn sufficient_budget(&self) -> Option<u64> {
        self.remedies.iter().find_map(|remedy| match remedy {
            Remedy::RaiseBudget { to } => Some(*to),
            _ => None,
        })
    }
}

/// One change that makes an overflowing plan fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// A larger prompt budget.
    RaiseBudget {
        /// The smallest budget that fits, in tokens.
        to: u64,
    },
    /// Fewer tokens reserved for the reply.
    LowerCompletion {
        /// The most tokens that can be reserved.
        to: u64,
    },
    /// The removal of one pin with an unlimited TTL, which makes its note or message required.
    Unpin {
        /// The id of the pinned item.
        id: ItemId,
    },
    /// A shorter text of one item.
    Shorten {
        /// The id of the item.
        id: ItemId,
        /// Number of tokens to remove.
        by: u64,
    },
}

impl ContextPlan {
    /// Returns the prompt to send: the messages and the tools.
    #[must_use]
    pub fn prompt(&self) -> &Prompt {
        &self.carryover.prompt
    }

    /// Returns the messages, in the order in which they are sent.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.carryover.prompt.messages
    }

    /// Returns the share, the budget and the use of a section.
    #[must_use]
    pub fn section(&self, section: Section) -> SectionUse {
        self.sections[section as usize]
    }

    /// Returns the number of rows, included and excluded.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.included.len() + self.excluded.len()
    }

    /// Returns a row by its index: first the included rows in prompt order, then the excluded rows. Returns
    /// `None` after the last row.
    #[must_use]
    pub fn row_at(&self, at: usize) -> Option<Decision<'_>> {
        // A closure, because the subtraction underflows for an included row.
        let out = || self.excluded.get(at - self.included.len()).map(Decision::Excluded);
        self.included.get(at).map(Decision::Included).or_else(out)
    }

    /// Returns the row of this id, or `None` if there is none. If a document and another item share an id,
    /// `rag:ID` and `item:ID` select one of them (separate namespaces, rule O5). Of a run of messages, only
    /// the first and the last id are found.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Decision<'_>> {
        find_row_by_id(&self.included, &self.excluded, id)
    }

    /// Returns the id of the live question.
    #[doc(hidden)]
    #[must_use]
    pub fn live(&self) -> Option<&ItemId> {
        self.carryover.live.as_ref()
    }

    /// Returns true if the budget excludes messages of the conversation (compaction, rule C2).
    pub(crate) fn drops_conversation(&self) -> bool {
        // Only the budget counts. A larger budget or a compaction would not bring the other excluded messages
        // back.
        let dropped = |row: &ExcludedItem| {
            row.section == Section::Conversation && matches!(row.reason, ExcludedReason::Budget { .. })
        };
        self.excluded.iter().any(dropped)
    }

    /// Returns the user's rules that this prompt knows, in log order, sent or not (rules R1, R2).
    #[must_use]
    pub fn rules(&self) -> &[StandingRule] {
        &self.carryover.rules.rules
    }

    /// Returns the events of a plan for a user interface (rules T2, R2, C10): one for each item whose TTL is
    /// used up, so that the user can pin it again or drop it, and one for each rule of the user to confirm.
    pub fn events(&self) -> impl Iterator<Item = ContextEvent> {
        let asks = self
            .notices
            .iter()
            .filter(|notice| notice.code == NoticeCode::TtlQuestion)
            .flat_map(|notice| &notice.ids);
        let rules = self.notices.iter().filter(|notice| notice.code == NoticeCode::RuleQuestion);
        let rules = rules.flat_map(|notice| &notice.ids);
        let asks = asks.map(|id| ContextEvent::TtlAsk { id: id.clone() });
        asks.chain(rules.map(|id| ContextEvent::RuleAsk { id: id.clone() }))
    }

    /// Returns the token count by the local counter: the total without the token calibration.
    #[must_use]
    pub fn counted(&self) -> u64 {
        let calibration = self
            .overhead
            .iter()
            .find(|line| line.what == Overhead::TokenCalibration)
            .map_or(0, |line| line.tokens);
        // The calibration is signed, because a provider may also count less than the local counter.
        self.estimated_tokens_total.tokens.saturating_sub_signed(calibration)
    }

    /// Returns the number of tokens by which the prompt exceeds its budget, or 0 if it fits.
    #[must_use]
    pub fn overflow_tokens(&self) -> u64 {
        self.estimated_tokens_total.tokens.saturating_sub(self.prompt_budget)
    }

    /// Returns the number of unused tokens of the budget, or 0 if the prompt exceeds it.
    #[must_use]
    pub fn left_over(&self) -> u64 {
        self.prompt_budget.saturating_sub(self.estimated_tokens_total.tokens)
    }
}

/// Returns the row of an id, as [`ContextPlan::find`] does.
fn find_row_by_id<'p>(
    included: &'p [PlannedItem],
    excluded: &'p [ExcludedItem],
    id: &str,
) -> Option<Decision<'p>> {
    let qualified = match id.split_once(':') {
        Some(("rag", id)) => find_row(included, excluded, id, Some(true)),
        Some(("item", id)) => find_row(included, excluded, id, Some(false)),
        _ => None,
    };
    // An id may contain a colon, so the whole string is searched first, and only then the part after the
    // prefix.
    find_row(included, excluded, id, None).or(qualified)
}

/// Returns the row of an id. `rag` is true to search documents only, false to search everything else, and
/// `None` to search all rows.
fn find_row<'p>(
    included: &'p [PlannedItem],
    excluded: &'p [ExcludedItem],
    id: &str,
    rag: Option<bool>,
) -> Option<Decision<'p>> {
    let fits = |kind: &ItemKind| rag.is_none_or(|rag| rag == kind.is_document());
    let is_included = |item: &&PlannedItem| fits(&item.kind) && item.id.as_str() == id;
    let is_excluded = |item: &&ExcludedItem| {
        let last = item.last_id.as_ref();
        fits(&item.kind) && (item.id.as_str() == id || last.is_some_and(|last| last.as_str() == id))
    };
    // A duplicate has the id of the document that it repeats, so included rows are searched first.
    let included = included.iter().find(is_included).map(Decision::Included);
    included.or_else(|| excluded.iter().find(is_excluded).map(Decision::Excluded))
}

impl AsRef<Prompt> for ContextPlan {
    fn as_ref(&self) -> &Prompt {
        &self.carryover.prompt
    }
}
