//! The record of a compaction in the log (rule C1).

use super::ProviderSummary;
use crate::{item::ItemId, plan::TraceIds, standing_rule::StandingRule, usage::ContextEvent};
use serde::{Deserialize, Serialize};

/// One compaction: the archived messages and their replacement in the prompt.
///
/// Archived messages stay in the log and on screen, but they are no longer sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compaction {
    /// The number of the compaction in this conversation, from 1. A number is never assigned twice, not even
    /// after a rewind.
    pub number: u32,
    /// The kind of replacement.
    pub kind: CompactionKind,
    /// A user message inside the range that stays active, right before the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<ItemId>,
    /// The first message of the range. `None` if the range begins with the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ItemId>,
    /// The first message after the range. `None` if no later message was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_active: Option<ItemId>,
    /// The messages that this compaction archived, in runs of neighbours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<MessageRange>,
    /// The number of archived messages.
    pub messages_archived: u64,
    /// Tokens of the conversation, the system part and the tools before the compaction. They are counted
    /// here, or reported by a session file. 0 if they were not counted.
    pub tokens_before: u64,
    /// Tokens of the same parts after the compaction. 0 if they were not counted.
    pub tokens_after: u64,
    /// The token limit of the context ([`crate::usage::ContextUsage::limit`]). 0 if it is unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub limit: u64,
    /// The summary. `None` for a fresh start, and for a sliding window that archived no earlier summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The provider's own compaction (rule C11), sent back to that provider in place of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_summary: Option<ProviderSummary>,
    /// State entries that the host adds to the summary message (plan, open files, loaded skills), as id and
    /// text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<(ItemId, String)>,
    /// The user's rules that were found in the archived messages (rule R2).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<StandingRule>,
    /// The pins and rules of the user that the prompt after the compaction does not hold (rule R4).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<ItemId>,
    /// True if no trigger fires any more after the compaction (rule C5).
    pub progress: bool,
    /// The time of the compaction as recorded by the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// A run of neighbouring messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MessageRange {
    /// The id of the first message.
    pub id: ItemId,
    /// The id of the last message.
    pub last_id: ItemId,
    /// The number of messages.
    pub count: u64,
}

/// The kind of replacement for archived messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// A summary by a model or a person.
    #[default]
    Summary,
    /// A summary made without a model (rule C6).
    Digest,
    /// No replacement: the oldest turns are dropped, and earlier summaries stay (rule C7).
    SlidingWindow,
    /// No replacement: the conversation starts fresh (rule U4).
    Fresh,
}

impl CompactionKind {
    /// Returns the name used in JSON and in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Digest => "digest",
            Self::SlidingWindow => "sliding_window",
            Self::Fresh => "fresh",
        }
    }
}

impl Compaction {
    /// Returns the number of freed tokens: before minus after. Returns 0 if either was not counted.
    #[must_use]
    pub fn freed(&self) -> u64 {
        if self.tokens_after == 0 { 0 } else { self.tokens_before.saturating_sub(self.tokens_after) }
    }

    /// Returns the event for a user interface (rule C10).
    #[must_use]
    pub fn event(&self) -> ContextEvent {
        ContextEvent::Compacted {
            number: self.number,
            messages: self.messages_archived,
            tokens_before: self.tokens_before,
            tokens_after: self.tokens_after,
            freed: self.freed(),
            limit: self.limit,
            summary: self.summary.clone(),
        }
    }

    /// Records one event of `tracing` with target `context_window::tokens`. It holds numbers and names, never
    /// a text. `why` is the option of the trigger, or the requester; `ids` are those of the request.
    pub(crate) fn trace(&self, why: &str, ids: &TraceIds) {
        tracing::info!(
            target: "context_window::tokens",
            conversation = ids.conversation.as_deref(),
            prompt = ids.prompt.as_deref(),
            number = self.number,
            kind = self.kind.name(),
            why,
            messages_archived = self.messages_archived,
            tokens_before = self.tokens_before,
            tokens_after = self.tokens_after,
            limit = self.limit,
            summary_bytes = self.summary.as_ref().map(String::len),
            progress = self.progress,
            "compaction",
        );
    }

    /// Returns the id of the summary in a plan.
    pub(crate) fn summary_id(number: u32) -> ItemId {
        format!("summary:{number}").into()
    }
}
