//! Decides what goes into a language model's prompt, within an exact token budget, and says why.

mod error;
mod item;
mod message;
mod config;
mod wording;
mod tokens;
mod model;
pub mod render;
mod meter;
mod usage;
mod reason;
mod plan;
mod conversation;
mod request;
mod repair;
mod expiry;
mod candidates;
mod budget;
mod select;
mod assemble;
mod telemetry;
mod manager;
pub mod report;
mod session;

pub use config::{
    Config, ConversationOptions, DefaultModel, Fill, ModelOptions, Placement, RagOptions, Repair,
    SectionOptions, Sections, TtlOptions, TtlPolicy,
};
pub use conversation::{Conversation, Entry, Event};
pub use error::{Error, ErrorKind};
pub use item::{ItemId, PinnedItem, Priority, RagItem, Section, Source, Ttl};
pub use manager::ContextWindowManager;
pub use message::{Message, Part, Prompt, Role, Tool, ToolCall};
pub use model::{Framing, Limits, LimitsSource, Model, RequestLimits};
pub use plan::{
    BudgetSource, ContextPlan, Decision, ExcludedItem, LedgerLine, Notice, Overflow, PlannedItem, Remedy,
    SectionUse,
};
pub use reason::{ExcludedReason, HeldBy, IncludedReason, PolicyRule};
pub use request::PlanRequest;
pub use session::{Session, SessionFile};
pub use tokens::{Certainty, TokenCount, TokenCounter};
pub use usage::Usage;
