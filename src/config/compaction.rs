//! Options of compaction: triggers, kept messages, and the replacement of the others (rules C2 to C7).

use super::{UsageBase, single::DIGEST_TOKENS};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The table `[compaction]`. A compaction is due if any trigger fires. An unset trigger never fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CompactionOptions {
    /// True if compaction is automatic (default: true). Explicitly requested compactions are always possible.
    pub enabled: bool,
    /// The first method to try.
    pub strategy: CompactionStrategy,
    /// True if a trigger fires only above its limit, not at it (default: false).
    pub strict: bool,
    /// Trigger: size of the full conversation as a percentage of `base` (default: 85). 0 means unset.
    pub percent: u16,
    /// The base of `percent`: the capacity (default) or the context length, which may be larger.
    pub base: UsageBase,
    /// Trigger: size of the full conversation, in tokens.
    pub tokens: Option<u64>,
    /// Trigger: remaining tokens of the capacity.
    pub remaining: Option<u64>,
    /// Trigger: number of active messages.
    pub messages: Option<u64>,
    /// Trigger: number of active turns.
    pub turns: Option<u64>,
    /// Trigger: the active conversation does not fit the prompt, even without documents, so a part of it
    /// would be dropped without a summary (default: true).
    pub on_drop: bool,
    /// Minimum number of active messages for an automatic compaction (default: 10).
    pub min_messages: u64,
    /// Maximum size of the context after a compaction, as a percentage of the capacity, and of `tokens`,
    /// `messages` and `turns` if they are set. Must be less than `percent` (default: 50).
    pub target: u16,
    /// Limits for messages that are kept unchanged.
    pub retain: RetainOptions,
    /// Options for the summary request.
    pub summary: SummaryOptions,
    /// Maximum tokens of a digest, which is a summary made without a model (default: 1,500). This is the
    /// option `compaction.digest.max_tokens` (rule C6).
    #[serde(rename = "digest", with = "super::single::digest")]
    pub digest_max_tokens: u64,
    /// The user's rules that are kept beside summaries and cut windows (default: off; rule R2). Rules of the
    /// application are always kept.
    pub rules: RulePolicy,
    /// Maximum tokens of the user's rules of a prompt (default: 1,000; rule R3).
    pub rules_limit: u64,
    /// Overrides of triggers, strategy and retention by model name.
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
            rules: RulePolicy::default(),
            rules_limit: 1_000,
            models: BTreeMap::new(),
        }
    }
}

/// The method by which a compaction replaces archived messages. If it fails, others may follow (rule C2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CompactionStrategy {
    /// A summary by a model (default). If no model responds, a digest, then a sliding window.
    #[default]
    Summary,
    /// A digest, made without a model. If the context does not become smaller, a sliding window.
    Digest,
    /// No replacement: the oldest messages are dropped until no trigger fires.
    SlidingWindow,
    /// No replacement: all messages are archived.
    Fresh,
    /// The provider compacts on its own, as requested by the plan's `context_editing` (rule C12). An
    /// explicitly requested compaction uses `summary`.
    Provider,
}

impl CompactionStrategy {
    /// Returns the name used in options.
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

/// The policy for rules of the user in messages of the user (rule R2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RulePolicy {
    /// Messages are not searched for rules (default).
    #[default]
    Off,
    /// An event asks the user about each rule that is found. It is sent once it is confirmed.
    Ask,
    /// The rules that are found are sent.
    Keep,
}

impl RulePolicy {
    /// Returns the name used in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ask => "ask",
            Self::Keep => "keep",
        }
    }
}

/// The table `[compaction.retain]` (rule C4). The smallest of the set limits applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RetainOptions {
    /// Maximum tokens.
    pub tokens: Option<u64>,
    /// Maximum number of messages.
    pub messages: Option<u64>,
    /// Maximum percentage of the capacity (default: 20; unset in overrides of a model).
    pub capacity: Option<u16>,
    /// Maximum percentage of the active messages.
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
    /// Maximum tokens of a summary (default: 2,000). Also limited to an eighth of the capacity (rule C4).
    pub max_tokens: u64,
    /// The content of the summary request.
    pub form: RequestForm,
    /// `task`, `chat`, or a custom instruction text (default: `task`).
    pub instruction: String,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        Self { max_tokens: 2_000, form: RequestForm::default(), instruction: "task".into() }
    }
}

/// The content of a summary request (rule C3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RequestForm {
    /// The messages as sent before, followed by the instruction (default). A prompt cache covers them. If
    /// they do not fit the summariser, a transcript.
    #[default]
    Conversation,
    /// A transcript of the messages. Of tools, it contains only names, arguments and outcomes; no tool is
    /// declared.
    Transcript,
}

/// A table `[compaction.models."NAME"]`: overrides for one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CompactionOverrides {
    /// The first method to try.
    pub strategy: Option<CompactionStrategy>,
    /// Trigger: size of the full conversation as a percentage of `compaction.base`. 0 means unset.
    pub percent: Option<u16>,
    /// Trigger: size of the full conversation, in tokens.
    pub tokens: Option<u64>,
    /// Trigger: remaining tokens of the capacity.
    pub remaining: Option<u64>,
    /// Limits for messages that are kept unchanged.
    // The default of `RetainOptions` sets `capacity`, which would hide the value of `[compaction.retain]`.
    #[serde(deserialize_with = "RetainOptions::deserialize_overrides")]
    pub retain: RetainOptions,
}

impl Default for CompactionOverrides {
    fn default() -> Self {
        // Not `RetainOptions::default()`, whose `capacity` would override the general value.
        Self { strategy: None, percent: None, tokens: None, remaining: None, retain: RetainOptions::UNSET }
    }
}

/// A table `[compaction.models."NAME".retain]`. An unset option uses the value of `[compaction.retain]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetainOverrides {
    tokens: Option<u64>,
    messages: Option<u64>,
    capacity: Option<u16>,
    active: Option<u16>,
}

impl RetainOptions {
    /// Options without any value.
    const UNSET: Self = Self { tokens: None, messages: None, capacity: None, active: None };

    /// Deserialises overrides, in which a missing option stays unset.
    fn deserialize_overrides<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RetainOverrides { tokens, messages, capacity, active } =
            RetainOverrides::deserialize(deserializer)?;
        Ok(Self { tokens, messages, capacity, active })
    }
}

impl CompactionOptions {
    /// Returns the options for a model: its overrides, then the general values.
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
