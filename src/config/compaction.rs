//! Options of compaction: its triggers, the messages that it keeps, and the replacement of the others (rules
//! C2 to C7).

use super::{UsageBase, single::DIGEST_TOKENS};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The table `[compaction]`. Triggers are OR-ed; one that is unset never fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CompactionOptions {
    /// True if compaction is automatic (default: true). A compaction that somebody asks for happens in either
    /// case.
    pub enabled: bool,
    /// The method that is tried first.
    pub strategy: CompactionStrategy,
    /// A trigger fires above its boundary only, not at it (default: false).
    pub strict: bool,
    /// Trigger: size of the full conversation, in per cent of `base` (default: 85); 0 is unset.
    pub percent: u16,
    /// The base of `percent`: the capacity (default), or the context length, which may lie above it.
    pub base: UsageBase,
    /// Trigger: size of the full conversation, in tokens.
    pub tokens: Option<u64>,
    /// Tokens of the capacity that are left.
    pub remaining: Option<u64>,
    /// Active messages.
    pub messages: Option<u64>,
    /// Active turns.
    pub turns: Option<u64>,
    /// The active conversation does not fit the prompt, documents apart: some of it would be left out
    /// unsummarised (default: true).
    pub on_drop: bool,
    /// Fewer active messages are never compacted unless asked for (default: 10).
    pub min_messages: u64,
    /// The largest size of the context after a compaction, in per cent of the capacity, and of `tokens`,
    /// `messages` and `turns` if those are set; less than `percent` (default: 50).
    pub target: u16,
    /// The messages that are kept as they are.
    pub retain: RetainOptions,
    /// The request for a summary.
    pub summary: SummaryOptions,
    /// The longest digest, which is a summary made without a model, in tokens (default: 1,500): the option
    /// `compaction.digest.max_tokens` (rule C6).
    #[serde(rename = "digest", with = "super::single::digest")]
    pub digest_max_tokens: u64,
    /// Other triggers, strategy and retention for single models, by name.
    pub models: BTreeMap<String, CompactionOverrides>,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: CompactionStrategy::default(),
            strict: false,
            percent: 85,
            base: UsageBase::default(),
            tokens: None,
            remaining: None,
            messages: None,
            turns: None,
            on_drop: true,
            min_messages: 10,
            target: 50,
            retain: RetainOptions::default(),
            summary: SummaryOptions::default(),
            digest_max_tokens: DIGEST_TOKENS,
            models: BTreeMap::new(),
        }
    }
}

/// The method by which a compaction replaces archived messages: the first one that is tried (rule C2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionStrategy {
    /// A summary by a model (default); if no model answers, a digest, then a sliding window.
    #[default]
    Summary,
    /// A digest, made without a model; if that is not smaller, a sliding window.
    Digest,
    /// Nothing: the oldest is dropped until no trigger fires.
    SlidingWindow,
    /// Nothing: everything is archived.
    Fresh,
    /// The provider compacts by itself, as the plan's `context_editing` asks it to (rule C12). A compaction
    /// that somebody asks for uses `summary`.
    Provider,
}

impl CompactionStrategy {
    /// Returns its name, as options spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Digest => "digest",
            Self::SlidingWindow => "sliding_window",
            Self::Fresh => "fresh",
            Self::Provider => "provider",
        }
    }
}

/// The table `[compaction.retain]` (rule C4): the smallest of the set limits holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RetainOptions {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Messages.
    pub messages: Option<u64>,
    /// Per cent of the capacity (default: 20; unset in the options of single models).
    pub capacity: Option<u16>,
    /// Per cent of the active messages.
    pub active: Option<u16>,
}

impl Default for RetainOptions {
    fn default() -> Self {
        Self { tokens: None, messages: None, capacity: Some(20), active: None }
    }
}

/// The table `[compaction.summary]` (rules C3, C8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct SummaryOptions {
    /// The longest summary that is asked for, in tokens (default: 2,000); never more than an eighth of the
    /// tokens that the input may take (rule C4).
    pub max_tokens: u64,
    /// The content of the request.
    pub form: RequestForm,
    /// `task`, `chat`, or an instruction of one's own (default: `task`).
    pub instruction: String,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        Self { max_tokens: 2_000, form: RequestForm::default(), instruction: "task".into() }
    }
}

/// The content of a request for a summary (rule C3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestForm {
    /// The messages as they were sent, and the instruction after them (default): a prompt cache serves them.
    /// If they do not fit the summariser, a transcript.
    #[default]
    Conversation,
    /// A transcript of the messages, of tools only names, arguments and outcomes; no tool is declared.
    Transcript,
}

/// A table `[compaction.models."NAME"]`: options of one model in place of the others'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CompactionOverrides {
    /// The method that is tried first.
    pub strategy: Option<CompactionStrategy>,
    /// Trigger: size of the full conversation, in per cent of `compaction.base`; 0 is unset.
    pub percent: Option<u16>,
    /// Trigger: size of the full conversation, in tokens.
    pub tokens: Option<u64>,
    /// Tokens of the capacity that are left.
    pub remaining: Option<u64>,
    /// The messages that are kept as they are.
    // The default of `RetainOptions` sets `capacity`, which would set aside that of `[compaction.retain]`.
    #[serde(deserialize_with = "RetainOptions::deserialize_overrides")]
    pub retain: RetainOptions,
}

impl Default for CompactionOverrides {
    fn default() -> Self {
        Self { strategy: None, percent: None, tokens: None, remaining: None, retain: RetainOptions::UNSET }
    }
}

/// A table `[compaction.models."NAME".retain]`: an option that is not set is that of `[compaction.retain]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetainOverrides {
    tokens: Option<u64>,
    messages: Option<u64>,
    capacity: Option<u16>,
    active: Option<u16>,
}

impl RetainOptions {
    /// Options of which none is set.
    const UNSET: Self = Self { tokens: None, messages: None, capacity: None, active: None };

    fn deserialize_overrides<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RetainOverrides { tokens, messages, capacity, active } =
            RetainOverrides::deserialize(deserializer)?;
        Ok(Self { tokens, messages, capacity, active })
    }
}

impl CompactionOptions {
    /// Returns the options for a model: its own over the others.
    #[must_use]
    pub(crate) fn of_model(&self, name: &str) -> Self {
        let own = self.models.get(name).copied().unwrap_or_default();
        let retain = RetainOptions {
            tokens: own.retain.tokens.or(self.retain.tokens),
            messages: own.retain.messages.or(self.retain.messages),
            capacity: own.retain.capacity.or(self.retain.capacity),
            active: own.retain.active.or(self.retain.active),
        };
        Self {
            strategy: own.strategy.unwrap_or(self.strategy),
            percent: own.percent.unwrap_or(self.percent),
            tokens: own.tokens.or(self.tokens),
            remaining: own.remaining.or(self.remaining),
            retain,
            ..self.clone()
        }
    }
}
