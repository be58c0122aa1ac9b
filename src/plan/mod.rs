//! The plan: what is in, what is out and why, and every token. It needs no request, log or tokenizer to be
//! read, rendered or compared. [`crate::PlanRequest`] and [`crate::ContextWindowManager`], which make one,
//! are at the root.
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
mod upkeep;
mod editing;
mod ledger;
mod notice;
mod remote_context;
mod retrieval_budget;
mod settings;
mod thoughts;
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
pub use remote_context::RemoteContext;
pub use retrieval_budget::RetrievalBudget;
pub(crate) use settings::PromptSettings;
pub use thoughts::{DropReason, DroppedReasoning, PrefixCause, ReasoningReport};
pub(crate) use trace::TraceIds;
pub use upkeep::RetentionCost;

use crate::{
    item::{ItemId, ItemKind, Priority, Section, Source, Ttl},
    message::{Message, Prompt, Role, WireFormat},
    provider::model::{Limits, LimitsSource},
    tokens::TokenCount,
    usage::{ContextEvent, ContextUsage, TokenCalibration},
};
use serde::Serialize;
use std::sync::Arc;

/// A planned prompt: the included and the excluded candidates, each with its reason and its tokens.
///
/// Every candidate is in exactly one of `included` and `excluded` (rule O2); the tokens of `included` and
/// `overhead` sum to `estimated_tokens_total` (rule N3).
///
/// ```
/// use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits, TokenCounter};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
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
    /// The model the plan is made for.
    pub model: String,
    /// The provider that serves it.
    pub provider: String,
    /// The wire format that it is priced in, and that its messages are made for.
    pub wire_format: WireFormat,
    /// The counter's name.
    pub tokenizer: String,
    /// `default`, or a hash of the options in use (rule O4).
    pub config: String,
    /// The limits in use.
    pub limits: Limits,
    /// The place that the limits came from.
    pub limits_source: LimitsSource,
    /// The source of the prompt budget.
    pub budget_source: BudgetSource,
    /// The correction from our count to the provider's, if one was learnt or set (rule N6).
    pub calibration: Option<TokenCalibration>,
    /// Tokens that the prompt may take.
    pub prompt_budget: u64,
    /// Tokens that belong to no item, such as tool definitions and the reply header.
    pub overhead: Vec<LedgerLine>,
    /// The sections, in the order of [`Section::ALL`].
    pub sections: Vec<SectionUse>,
    /// Included items, in prompt order.
    pub included: Vec<PlannedItem>,
    /// Excluded items: system texts and pins, then the conversation in log order, then documents in the order
    /// of rule S8.
    pub excluded: Vec<ExcludedItem>,
    /// Tokens of the whole prompt.
    pub estimated_tokens_total: TokenCount,
    /// The overflow, if the minimum is over the budget.
    pub overflow: Option<Overflow>,
    /// The first message of the oldest exchange that is kept.
    pub window_start: Option<ItemId>,
    /// Repairs and questions that touch what is kept.
    pub notices: Vec<Notice>,
    /// Tool results before this message are sent as stubs (rule S7).
    pub cleared_before: Option<ItemId>,
    /// The use of the window (rule U2).
    pub usage: ContextUsage,
    /// The reasoning of earlier replies, sent or dropped with its reason (rules K1 to K4).
    pub thoughts: ReasoningReport,
    /// The part of the request that asks the provider to edit the prompt by itself, if the options want it
    /// (rule C12).
    pub context_editing: Option<ContextEditing>,
    /// The cost of documents and state of earlier questions, at a new question (rule S11); `None` if none are
    /// retained, or the model has no price.
    pub upkeep: Option<RetentionCost>,
    /// The headers that parts of this prompt need, name and value: for tools that are sent at the end (rule
    /// S12), and for replacements that a provider made of earlier messages (rule C11). Values of one name go
    /// into one header, with commas.
    pub headers: Vec<(String, String)>,
    pub(crate) carryover: Carryover,
}

/// The source of the prompt budget (rule B1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetSource {
    /// The context length less completion and safety buffer.
    ContextLen,
    /// The model's own input limit less the safety buffer: the smaller of the two.
    MaxInput,
    /// The request set it.
    Request,
}

pub(crate) use carryover::{Carryover, LastPrompt, NewState};
pub(crate) use pieces::{SentPrompt, ToolsHash};

/// The id of tool definitions in a remembered prompt.
pub(crate) const TOOLS: &str = "tools";

/// One section of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionUse {
    /// The item.
    pub section: Section,
    /// Its share, per mille.
    pub share: u16,
    /// Its hard limit in tokens.
    pub cap: Option<u64>,
    /// Tokens that rule B5 gave it.
    pub budget: u64,
    /// Tokens of its included items; more than `budget` if another section left tokens (rule B6).
    pub used: u64,
    /// Number of included items.
    pub included: u64,
    /// Number of excluded items.
    pub excluded: u64,
}

/// One item of the prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlannedItem {
    /// Its id.
    pub id: ItemId,
    /// Its kind.
    pub kind: ItemKind,
    /// Its source.
    pub source: Source,
    /// The section that pays for it.
    pub section: Section,
    /// The role it is sent in; `None` for a document, which is part of the block.
    pub role: Option<Role>,
    /// Its priority among pins.
    pub priority: Priority,
    /// Its TTL, if one is set.
    pub ttl: Option<Ttl>,
    /// The reason why it is included.
    pub reason: IncludedReason,
    /// Its tokens.
    pub token_estimate: TokenCount,
    /// The origin of a document of this request.
    pub(crate) origin: Option<Arc<str>>,
    #[doc(hidden)]
    pub body: Message,
}

impl PlannedItem {
    /// Returns a hash of the message that is sent for this item (blake3, 32 hexadecimal digits). Each call
    /// computes it.
    #[must_use]
    pub fn hash(&self) -> String {
        hash_of(&self.body)
    }
}

fn hash_of(message: &Message) -> String {
    let hash = blake3::hash(&message.canonical()).to_hex();
    hash[..32].into()
}

/// One item that is not in the prompt, or a run of neighbouring messages that are not for the same reason.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExcludedItem {
    /// Its id, or the first one of the run.
    pub id: ItemId,
    /// The last id of a run.
    pub last_id: Option<ItemId>,
    /// Number of messages in the row.
    pub count: u64,
    /// Its kind.
    pub kind: ItemKind,
    /// Its source; `None` if sources in the run differ, or none was looked at.
    pub source: Option<Source>,
    /// The section that would have paid.
    pub section: Section,
    /// Its priority among pins; `None` if priorities in the run differ, or none was looked at.
    pub priority: Option<Priority>,
    /// Its TTL; `None` if none is set, TTLs in the run differ, or none was looked at.
    pub ttl: Option<Ttl>,
    /// The reason why it is excluded.
    pub reason: ExcludedReason,
    /// Its tokens, as far as they were counted.
    pub token_estimate: TokenCount,
}

/// The minimum does not fit (rule S6).
///
/// ```
/// use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter};
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
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
    /// The fewest items that together are too large, in prompt order: without any one of them the others fit.
    /// Empty if tools and other overhead are too large by themselves.
    pub conflict: Vec<ItemId>,
    /// Single changes that make it fit, the cheapest first.
    pub remedies: Vec<Remedy>,
}

impl Overflow {
    /// Returns the smallest budget that would do, where a remedy names it.
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
    /// Raise the prompt budget to this number of tokens.
    RaiseBudget {
        /// The smallest budget that fits.
        to: u64,
    },
    /// Keep fewer tokens free for the reply.
    LowerCompletion {
        /// The most that may be kept free.
        to: u64,
    },
    /// Unpin a note or message that is never dropped.
    Unpin {
        /// The item.
        id: ItemId,
    },
    /// Shorten one item.
    Shorten {
        /// The item.
        id: ItemId,
        /// Tokens to remove.
        by: u64,
    },
}

/// The decision on one candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision<'a> {
    /// It is in.
    Included(&'a PlannedItem),
    /// It is out.
    Excluded(&'a ExcludedItem),
}

impl<'a> Decision<'a> {
    /// Returns its id; for a run of messages, the id of the last one, by which explanations ask about the
    /// run.
    #[must_use]
    pub fn id(self) -> &'a ItemId {
        match self {
            Self::Included(item) => &item.id,
            Self::Excluded(item) => item.last_id.as_ref().unwrap_or(&item.id),
        }
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(self) -> &'a ItemKind {
        match self {
            Self::Included(item) => &item.kind,
            Self::Excluded(item) => &item.kind,
        }
    }

    /// Returns the section that pays for it, or would have.
    #[must_use]
    pub fn section(self) -> Section {
        match self {
            Self::Included(item) => item.section,
            Self::Excluded(item) => item.section,
        }
    }

    /// Returns its tokens, as far as they were counted.
    #[must_use]
    pub fn token_estimate(self) -> TokenCount {
        match self {
            Self::Included(item) => item.token_estimate,
            Self::Excluded(item) => item.token_estimate,
        }
    }

    /// Whether it is a document: their ids are a namespace of their own (rule O5).
    #[must_use]
    pub fn is_document(self) -> bool {
        self.kind().is_document()
    }

    /// Returns its id with its namespace, `rag:ID` or `item:ID`, as [`ContextPlan::find`] and explanations
    /// take it.
    #[must_use]
    pub fn qualified_id(self) -> String {
        format!("{}:{}", if self.is_document() { "rag" } else { "item" }, self.id())
    }
}

impl ContextPlan {
    /// What is sent: the messages and the tools.
    #[must_use]
    pub fn prompt(&self) -> &Prompt {
        &self.carryover.prompt
    }

    /// Returns the messages, in the order in which they are sent.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.carryover.prompt.messages
    }

    /// What a section was given, and what it holds.
    #[must_use]
    pub fn section(&self, section: Section) -> SectionUse {
        self.sections[section as usize]
    }

    /// How many rows there are, in and out.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.included.len() + self.excluded.len()
    }

    /// Returns a row by its number: what is in, in prompt order, and after it what is out.
    #[must_use]
    pub fn row_at(&self, at: usize) -> Option<Decision<'_>> {
        let out = || self.excluded.get(at - self.included.len()).map(Decision::Excluded);
        self.included.get(at).map(Decision::Included).or_else(out)
    }

    /// Returns the row of this id. Where a document and another item share an id, `rag:ID` and `item:ID`
    /// decide (rule O5). A message inside a run is found by the run's first and last id only.
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

    /// Whether messages of the conversation are dropped (rule C2).
    pub(crate) fn drops_conversation(&self) -> bool {
        let dropped = |row: &ExcludedItem| {
            row.section == Section::Conversation && matches!(row.reason, ExcludedReason::Budget { .. })
        };
        self.excluded.iter().any(dropped)
    }

    /// Returns the events of a plan for a user interface (rules T2, C10): the items whose TTL is used up, to
    /// be pinned again or dropped.
    pub fn events(&self) -> impl Iterator<Item = ContextEvent> {
        let asks = self
            .notices
            .iter()
            .filter(|notice| notice.code == NoticeCode::TtlQuestion)
            .flat_map(|notice| &notice.ids);
        asks.map(|id| ContextEvent::TtlAsk { id: id.clone() })
    }

    /// Returns the local count: the total without the token calibration.
    #[must_use]
    pub fn counted(&self) -> u64 {
        let calibration = self
            .overhead
            .iter()
            .find(|line| line.what == Overhead::TokenCalibration)
            .map_or(0, |line| line.tokens);
        self.estimated_tokens_total.tokens.saturating_sub_signed(calibration)
    }

    /// Tokens by which the prompt is over its budget; 0 when it fits.
    #[must_use]
    pub fn overflow_tokens(&self) -> u64 {
        self.estimated_tokens_total.tokens.saturating_sub(self.prompt_budget)
    }

    /// Tokens of the budget that are not used.
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
    find_row(included, excluded, id, None).or(qualified)
}

/// Returns the row of an id, of documents only, of everything else only, or of any kind.
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
    let included = included.iter().find(is_included).map(Decision::Included);
    included.or_else(|| excluded.iter().find(is_excluded).map(Decision::Excluded))
}

impl AsRef<Prompt> for ContextPlan {
    fn as_ref(&self) -> &Prompt {
        &self.carryover.prompt
    }
}
