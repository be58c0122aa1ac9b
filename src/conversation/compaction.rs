//! What a compaction is: one entry of the log, and what it says of itself (rule C1).

use super::ProviderSummary;
use crate::{item::ItemId, plan::TraceIds, usage::ContextEvent};
use serde::{Deserialize, Serialize};

/// One compaction: messages that are archived, and what replaces them in the prompt.
///
/// Archived messages stay in the log and on screen; they are no longer sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compaction {
    /// Which one of this conversation, from 1. Numbers are never given twice, not even after a rewind.
    pub number: u32,
    /// What replaces the messages.
    pub kind: CompactionKind,
    /// A user message inside the range that stays, right before the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<ItemId>,
    /// The first message of the range; none where it begins with the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ItemId>,
    /// The first message after the range; none where nothing was kept after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_active: Option<ItemId>,
    /// The messages that this compaction archived, in runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archived: Vec<MessageRange>,
    /// How many messages that are.
    pub messages_archived: u64,
    /// What the conversation, the head of the prompt and the tools took before it, in tokens as they are counted here, or as a
    /// session file says; 0 where it was not counted.
    pub tokens_before: u64,
    /// What they take after it, in tokens; 0 where it was not counted.
    pub tokens_after: u64,
    /// The tokens that the context could take ([`crate::usage::ContextUsage::limit`]); 0 where that is
    /// unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub limit: u64,
    /// The summary; none for a fresh start, and for a sliding window that archived no earlier summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What the provider made instead, where it compacted (rule C11): sent back to that provider in place of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_summary: Option<ProviderSummary>,
    /// What the host adds inside the summary message (plan, open files, loaded skills): name and text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<(ItemId, String)>,
    /// Whether no trigger fires any more after it (rule C5).
    pub progress: bool,
    /// When it was made, as the host says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// Neighbouring messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MessageRange {
    /// The first one.
    pub id: ItemId,
    /// The last one.
    pub last_id: ItemId,
    /// How many.
    pub count: u64,
}

/// What replaces archived messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// A summary by a model, or by a person.
    #[default]
    Summary,
    /// A summary made without a model (rule C6).
    Digest,
    /// Nothing: the oldest turns are dropped, and earlier summaries stay (rule C7).
    SlidingWindow,
    /// Nothing: the conversation starts fresh (rule U4).
    Fresh,
}

impl CompactionKind {
    /// The name in JSON and options.
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
    /// The tokens that it freed: before minus after; 0 where either was not counted.
    #[must_use]
    pub fn freed(&self) -> u64 {
        if self.tokens_after == 0 { 0 } else { self.tokens_before.saturating_sub(self.tokens_after) }
    }

    /// The event for a user interface (rule C10).
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

    /// One event of `tracing`, target `context_window::tokens`: numbers and names, never a text. `why` is the option of the trigger, or who
    /// asked; `ids` are those of the request.
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

    /// The id of its summary in a plan.
    pub(crate) fn summary_id(number: u32) -> ItemId {
        format!("summary:{number}").into()
    }
}
