//! The use of the window in two figures, never one (rule U2), and the events for an application (rule C10).

use super::{Level, Usage};
use crate::{
    config::UsageOptions,
    item::ItemId,
    provider::model::Limits,
    text::plain::{grouped, per_cent},
    tokens::TokenCount,
};
use serde::Serialize;
use std::fmt;

/// The use of the window in two figures: the full conversation (system texts, tools, pins and every active
/// message, without documents and state), and the prompt of one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextUsage {
    /// The size of the full conversation in tokens, and how sure that count is.
    pub conversation_tokens: TokenCount,
    /// True if a provider's report is part of it.
    pub reported: bool,
    /// The tokens that the percentage is of: the capacity, or the context length (`usage.base`); 0 if it is
    /// unknown.
    pub limit: u64,
    /// `conversation_tokens` in per cent of the limit, rounded down; may exceed 100; 0 if the limit is
    /// unknown.
    pub percent: u64,
    /// The level.
    pub level: Level,
    /// Tokens that the plan sends: the total of the prompt.
    pub prompt_tokens: u64,
    /// Tokens that the plan may send: the prompt budget.
    pub budget: u64,
    /// The model's context length in tokens, prompt and reply together; 0 if it is unknown.
    #[serde(rename = "context_len")]
    pub model_context_len: u64,
    /// The part of `prompt_tokens` that is for this prompt only: documents and state.
    pub volatile_tokens: u64,
    /// Estimate of the active messages that the plan dropped, in tokens.
    pub dropped_tokens: u64,
    /// The part of `prompt_tokens` that every prompt begins with: system texts, notes, tools and pins of
    /// archived messages.
    pub fixed_tokens: u64,
    /// Compactions of the conversation so far.
    pub compactions: u64,
}

impl ContextUsage {
    /// Returns the usage with other figures of the full conversation, which a provider reported.
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
        let limit = options.of(limits);
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

/// Writes the tokens sent, of the prompt budget, of the context length: `312 / 400 of 128,000`. Unknown
/// figures are left out.
impl fmt::Display for ContextUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}", grouped(self.prompt_tokens), grouped(self.budget))?;
        if self.model_context_len > 0 {
            write!(f, " of {}", grouped(self.model_context_len))?;
        }
        Ok(())
    }
}

/// Figures of a conversation for an application to show (rule U4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContextStats {
    /// The use of the window.
    pub usage: ContextUsage,
    /// Messages of the log.
    pub messages: u64,
    /// Messages that are still sent, or could be.
    pub active: u64,
    /// Turns among those.
    pub turns: u64,
    /// Messages that are archived.
    pub archived: u64,
    /// Compactions, undone ones among them.
    pub compactions: u64,
    /// The tokens that all replies together were billed for. They are not the tokens in the window.
    pub billed: Usage,
}

/// Events for a user interface (rule C10).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ContextEvent {
    /// The figures of the window.
    Usage(ContextUsage),
    /// The level changed: one event a crossing.
    LevelCrossed {
        /// The level before.
        from: Level,
        /// The level now.
        to: Level,
    },
    /// A summary was asked for.
    SummaryRequested {
        /// Messages that it is to replace.
        messages: u64,
        /// The size of the full conversation in tokens.
        conversation_tokens: u64,
        /// The tokens that `ContextUsage::percent` is of; 0 if they are unknown.
        limit: u64,
        /// The size of the request in tokens.
        request_tokens: u64,
        /// The longest summary that is asked for, in tokens.
        max_tokens: u64,
    },
    /// A conversation was compacted.
    Compacted {
        /// The number of the compaction.
        number: u32,
        /// Messages that it archived.
        messages: u64,
        /// The size before it, in tokens; 0 if it was not counted.
        tokens_before: u64,
        /// The size after it, in tokens; 0 if it was not counted.
        tokens_after: u64,
        /// Tokens that it freed.
        freed: u64,
        /// The tokens that `ContextUsage::percent` is of; 0 if they are unknown.
        limit: u64,
        /// The summary; `None` for a sliding window or a fresh start.
        summary: Option<String>,
    },
    /// A provider's usage report was not believed (rule N6): the figures of the window are those from before
    /// it.
    ReportNotBelieved {
        /// Input tokens as the provider reported them, cached ones among them.
        reported: u64,
        /// Tokens as the plan counted them.
        counted: u64,
    },
    /// The reply ended because it reached its largest length.
    MaxTokens,
    /// The reply ended because the window was full.
    WindowFull,
    /// The provider reports that it dropped reasoning of the prompt which the plan took for valid, or would
    /// drop it on another account (rule K7).
    ReasoningDropped {
        /// The messages that it came with; empty if no block of the body is at the place that the provider
        /// names.
        ids: Vec<ItemId>,
        /// True if it was dropped; otherwise it was read this time.
        dropped: bool,
        /// The reason, in the provider's word.
        reason: String,
    },
    /// The provider's own context management cleared a part of the prompt: the local count is larger than the
    /// prompt that the model read.
    ClearedByProvider {
        /// The type of the edit.
        edit: String,
        /// Tokens, in the provider's count.
        tokens: u64,
    },
    /// An item's TTL is used up: pin it again or drop it (rule T2).
    TtlAsk {
        /// The item.
        id: ItemId,
    },
}
