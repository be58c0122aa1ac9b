//! Context window usage as two figures (rule U2), and events for an application (rule C10).

use super::{Level, Usage};
use crate::{
    config::UsageOptions,
    item::ItemId,
    provider::model::Limits,
    text::plain::{grouped, per_cent},
    tokens::TokenCount,
};
use serde::{Serialize, Serializer};
use std::fmt;

/// Context window usage as two figures. One is the full conversation: system texts, tools, pins and every
/// active message, without documents and state. The other one is the prompt of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextUsage {
    /// The size of the full conversation in tokens, with the certainty of that count.
    pub conversation_tokens: TokenCount,
    /// True if the size includes a provider's report.
    pub reported: bool,
    /// The base of the percentage in tokens: the capacity or the context length (`usage.base`). 0 if it is
    /// unknown.
    pub limit: u64,
    /// `conversation_tokens` as a percentage of `limit`, rounded down. May exceed 100. 0 if the limit is
    /// unknown.
    pub percent: u64,
    /// The usage level.
    pub level: Level,
    /// Tokens of the plan's prompt.
    pub prompt_tokens: u64,
    /// The prompt budget in tokens.
    pub budget: u64,
    /// The model's context length in tokens, for prompt and reply together. 0 if it is unknown.
    #[serde(rename = "context_len")]
    pub model_context_len: u64,
    /// The part of `prompt_tokens` that belongs to this prompt only: documents and state.
    pub volatile_tokens: u64,
    /// Estimated tokens of the active messages that the plan dropped.
    pub dropped_tokens: u64,
    /// The part of `prompt_tokens` at the beginning of every prompt: system texts, notes, tools and pins of
    /// archived messages.
    pub fixed_tokens: u64,
    /// The number of compactions of the conversation so far.
    pub compactions: u64,
}

impl ContextUsage {
    /// Returns the usage with a reported size of the full conversation.
    pub(crate) fn with_conversation_tokens(
        self,
        conversation_tokens: TokenCount,
        limits: &Limits,
        options: UsageOptions,
    ) -> Self {
        let Self { limit, percent, level, .. } = Self::new(conversation_tokens, true, limits, options);
        Self { conversation_tokens, reported: true, limit, percent, level, ..self }
    }

    pub(crate) fn new(
        conversation_tokens: TokenCount,
        reported: bool,
        limits: &Limits,
        options: UsageOptions,
    ) -> Self {
        let limit = options.base_tokens(limits);
        Self {
            conversation_tokens,
            reported,
            limit,
            percent: per_cent(conversation_tokens.tokens, limit),
            level: Level::from_tokens(conversation_tokens.tokens, limits, &options),
            prompt_tokens: 0,
            budget: 0,
            model_context_len: limits.model_context_len,
            volatile_tokens: 0,
            dropped_tokens: 0,
            fixed_tokens: 0,
            compactions: 0,
        }
    }
}

/// Formats the prompt tokens, the prompt budget and the context length: `312 / 400 of 128,000`. An unknown
/// context length is left out.
impl fmt::Display for ContextUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", grouped(self.prompt_tokens), grouped(self.budget))?;
        if self.model_context_len > 0 {
            write!(f, " of {}", grouped(self.model_context_len))?;
        }
        Ok(())
    }
}

/// Statistics of a conversation for display (rule U4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextStats {
    /// The context window usage.
    pub usage: ContextUsage,
    /// The number of messages in the log.
    pub messages: u64,
    /// The number of active messages.
    pub active: u64,
    /// The number of active turns.
    pub turns: u64,
    /// The number of archived messages.
    pub archived: u64,
    /// The number of compactions, including undone ones.
    pub compactions: u64,
    /// The tokens billed for all replies together. This is not the usage of the context window.
    pub billed: Usage,
}

/// Events for a user interface (rule C10). As JSON, each is an object with its kind under `event`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextEvent {
    /// Current usage of the context window.
    #[serde(serialize_with = "usage_object")]
    Usage(ContextUsage),
    /// The usage level changed. One event per change.
    LevelCrossed {
        /// The previous level.
        from: Level,
        /// The current level.
        to: Level,
    },
    /// A rule of the user was found whose message left the prompt (`compaction.rules = "ask"`, rule R2). Call
    /// [`crate::Conversation::keep_rule`] or [`crate::Conversation::drop_rule`].
    RuleAsk {
        /// The id of the rule.
        id: ItemId,
    },
    /// A summary was requested.
    SummaryRequested {
        /// The number of messages to archive.
        messages: u64,
        /// The size of the full conversation in tokens.
        conversation_tokens: u64,
        /// The base of `ContextUsage::percent` in tokens. 0 if it is unknown.
        limit: u64,
        /// The size of the request in tokens.
        request_tokens: u64,
        /// Maximum tokens of the summary.
        max_tokens: u64,
    },
    /// A conversation was compacted.
    Compacted {
        /// The number of the compaction.
        number: u32,
        /// The number of archived messages.
        messages: u64,
        /// The size before the compaction in tokens. 0 if it was not counted.
        tokens_before: u64,
        /// The size after the compaction in tokens. 0 if it was not counted.
        tokens_after: u64,
        /// The number of freed tokens.
        freed: u64,
        /// The base of `ContextUsage::percent` in tokens. 0 if it is unknown.
        limit: u64,
        /// The summary. `None` for a sliding window or a fresh start.
        summary: Option<String>,
    },
    /// A provider's usage report is implausible (rule N6). The usage of the context window does not use it.
    ReportNotBelieved {
        /// Reported input tokens, including cached ones.
        reported: u64,
        /// Tokens counted by the plan.
        counted: u64,
    },
    /// The reply ended because it reached its maximum length.
    MaxTokens,
    /// The reply ended because the context window was full.
    WindowFull,
    /// The provider reports that it dropped reasoning that the plan considered valid, or that it would drop
    /// it on another account (rule K7).
    ReasoningDropped {
        /// The messages of the reasoning. Empty if the body has no block at the reported place.
        ids: Vec<ItemId>,
        /// True if the reasoning was dropped. False if the model read it this time.
        dropped: bool,
        /// The reason in the provider's words.
        reason: String,
    },
    /// The provider's own context management cleared a part of the prompt. The model read fewer tokens than
    /// the local count.
    ClearedByProvider {
        /// The type of the edit.
        edit: String,
        /// The cleared tokens, as counted by the provider.
        tokens: u64,
    },
    /// An item's TTL is used up. Pin it again or drop it (rule T2).
    TtlAsk {
        /// The id of the item.
        id: ItemId,
    },
}

/// Writes usage under a key of its own, beside the kind of the event.
fn usage_object<S: Serializer>(usage: &ContextUsage, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Object<'a> {
        usage: &'a ContextUsage,
    }
    Object { usage }.serialize(serializer)
}
