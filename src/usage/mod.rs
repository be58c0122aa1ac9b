//! Reports of providers (tokens, stop reasons, rejected prompts) and context window usage.
//!
//! ```
//! use context_window::{
//!     ContextWindowManager, Conversation, Message, Model, PlanRequest, Usage,
//!     usage::{Committed, ContextStats, ContextUsage, Cost, CostTerms, Level, TokenCalibration},
//! };
//!
//! # fn main() -> Result<(), context_window::Error> {
//! # #[cfg(feature = "openai")] {
//! let manager = ContextWindowManager::for_model("gpt-4o")?;
//! let mut log = Conversation::from([Message::user("How long do refunds take?")]);
//! let plan = manager.build_plan(&PlanRequest::new(&log))?;
//! let committed: Committed = log.push_reply(&plan, Message::assistant("5 days."), Usage::openai(15, 0, 4));
//! assert_eq!(committed.id, "m1");
//!
//! let usage: ContextUsage = manager.usage(&PlanRequest::like_last(&log))?;
//! let stats: ContextStats = manager.stats(&PlanRequest::like_last(&log))?;
//! assert_eq!((usage.level, stats.billed.output), (Level::Normal, 4));
//!
//! // The price of a prompt of 1,000 tokens, of which 800 may be in the cache.
//! let cost: Option<Cost> = Model::named("gpt-4o")?.input_cost(1_000, 800, CostTerms::default());
//! assert!(cost.is_some_and(|cost| cost.billionths > 0));
//!
//! // A correction of 4 % for counters that estimate; the one of this model is exact.
//! let request = PlanRequest::new(&log).with_calibration(TokenCalibration::per_mille(1_040));
//! assert!(manager.build_plan(&request)?.calibration.is_none());
//! # }
//! # Ok(())
//! # }
//! ```

use crate::{
    config::{UsageBase, UsageOptions},
    provider::model::Limits,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    iter::Sum,
    ops::{Add, AddAssign},
};

mod context;
mod calibration;
mod refusal;
mod transformed;
mod reply;
mod cost;

pub use crate::provider::model::CacheLife;
pub use calibration::TokenCalibration;
pub(crate) use calibration::{Calibrator, ReportedUsage};
pub use context::{ContextEvent, ContextStats, ContextUsage};
pub use cost::{Cost, CostTerms};
pub use refusal::{StopReason, is_context_overflow, is_reasoning_refusal};
pub use reply::{Committed, ReplyReport};
pub(crate) use transformed::{AppliedEdit, TransformedInput};

/// One reply's usage report in tokens. `input`, `cache_read` and `cache_write` never overlap (rule U1).
///
/// ```
/// use context_window::Usage;
///
/// // OpenAI: prompt tokens include the cached ones. Anthropic: input tokens exclude them.
/// let openai = Usage::openai(1_000, 800, 50);
/// let anthropic = Usage::anthropic(200, 0, 800, 50);
/// assert_eq!(openai, anthropic);
/// assert_eq!(openai.context_size(), 1_050);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens without any cache access.
    pub input: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// Output tokens of the reply.
    pub output: u64,
}

impl Usage {
    /// Converts `OpenAI`'s figures, whose prompt tokens include the cached ones.
    #[must_use]
    pub fn openai(prompt_tokens: u64, cached_tokens: u64, completion_tokens: u64) -> Self {
        Self {
            input: prompt_tokens.saturating_sub(cached_tokens),
            // A report may be inconsistent: more tokens may be cached than the prompt has.
            cache_read: cached_tokens.min(prompt_tokens),
            cache_write: 0,
            output: completion_tokens,
        }
    }

    /// Converts Anthropic's figures, whose input tokens exclude the cached ones.
    #[must_use]
    pub fn anthropic(input: u64, cache_creation: u64, cache_read: u64, output: u64) -> Self {
        Self { input, cache_read, cache_write: cache_creation, output }
    }

    /// Parses the usage JSON of a provider: `OpenAI` Chat and Responses, Anthropic, or Gemini. Accepts any
    /// value that serialises as that JSON, such as a `serde_json::Value` or a type of the provider's client.
    /// Returns `None` if the JSON has no such figures, or only those of a compaction.
    ///
    /// If Anthropic compacted within the request (`iterations`), the result is the usage of the last message,
    /// because it alone measures the context window. [`Usage::from_compaction_json`] returns the usage of the
    /// compactions.
    ///
    /// ```
    /// use context_window::Usage;
    ///
    /// let reported = serde_json::json!({"prompt_tokens": 1_000, "completion_tokens": 50});
    /// assert_eq!(Usage::from_json(&reported), Some(Usage::openai(1_000, 0, 50)));
    /// ```
    #[must_use]
    pub fn from_json(usage: &impl Serialize) -> Option<Self> {
        Self::from_value(&serde_json::to_value(usage).ok()?)
    }

    fn from_value(usage: &Value) -> Option<Self> {
        if let Some(iterations) = usage.get("iterations").and_then(Value::as_array) {
            // Every iteration reports its whole input, so a sum would count the context several times.
            let last = iterations.iter().rev().find(|entry| entry["type"] == "message");
            if last.is_some() || iterations.iter().any(|entry| entry["type"] == "compaction") {
                return Self::from_value(last?);
            }
        }
        let number = |key: &str| usage.pointer(key).and_then(Value::as_u64);
        let or_none = |key: &str| number(key).unwrap_or_default();
        if let Some(prompt) = number("/prompt_tokens") {
            return Some(Self::openai(
                prompt,
                or_none("/prompt_tokens_details/cached_tokens"),
                or_none("/completion_tokens"),
            ));
        }
        if let Some(prompt) = number("/promptTokenCount") {
            // Gemini reports reasoning separately, but bills it as output.
            let thoughts = or_none("/thoughtsTokenCount");
            let output = or_none("/candidatesTokenCount").saturating_add(thoughts);
            return Some(Self::openai(prompt, or_none("/cachedContentTokenCount"), output));
        }
        // `input_tokens` occurs in two formats: OpenAI Responses includes cached tokens, Anthropic excludes
        // them.
        let (input, output) = (number("/input_tokens")?, or_none("/output_tokens"));
        let cached_of_openai = number("/input_tokens_details/cached_tokens");
        Some(match cached_of_openai {
            Some(cached) => Self::openai(input, cached, output),
            None => Self::anthropic(
                input,
                or_none("/cache_creation_input_tokens"),
                or_none("/cache_read_input_tokens"),
                output,
            ),
        })
    }

    /// Parses the usage of the compactions within a request (Anthropic's `usage.iterations`). It does not
    /// measure the context window. Returns `None` if there were no compactions.
    #[must_use]
    pub fn from_compaction_json(usage: &impl Serialize) -> Option<Self> {
        let usage = serde_json::to_value(usage).ok()?;
        let iterations = usage.get("iterations")?.as_array()?.iter();
        let compactions = iterations.filter(|entry| entry["type"] == "compaction");
        compactions.filter_map(Self::from_value).reduce(Self::add)
    }

    /// Returns input and output tokens together, which is the part of the context window that the request
    /// used.
    #[must_use]
    pub fn context_size(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
    }
}

/// Adds two reports: the tokens billed for both. Saturates at the largest number.
impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(reports: I) -> Self {
        reports.fold(Self::default(), Self::add)
    }
}

/// The level of context window usage, for an application to show (rule U3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Below both thresholds.
    #[default]
    Normal,
    /// At or above `usage.approaching`.
    Approaching,
    /// At or above `usage.at_limit`.
    AtLimit,
}

impl Level {
    /// Returns the name in JSON and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Approaching => "approaching",
            Self::AtLimit => "at_limit",
        }
    }

    /// Returns the level for a number of tokens. An unknown window (0 tokens) gives [`Level::Normal`].
    #[must_use]
    pub fn from_tokens(tokens: u64, limits: &Limits, options: &UsageOptions) -> Self {
        let base = options.base_tokens(limits);
        if base == 0 {
            Self::Normal
        } else if reaches(tokens, base, options.at_limit) {
            Self::AtLimit
        } else if reaches(tokens, base, options.approaching) {
            Self::Approaching
        } else {
            Self::Normal
        }
    }
}

impl UsageOptions {
    /// Returns the base of the percentage in tokens, 0 if the window is unknown.
    pub(crate) fn base_tokens(self, limits: &Limits) -> u64 {
        self.base.tokens(limits)
    }
}

impl UsageBase {
    /// Returns the base in tokens, 0 if the window is unknown.
    pub(crate) fn tokens(self, limits: &Limits) -> u64 {
        match self {
            Self::Capacity => limits.capacity(),
            Self::Context => limits.model_context_len,
        }
    }
}

/// Returns true if `tokens` are at least `percent` per cent of `of`.
pub(crate) fn reaches(tokens: u64, of: u64, percent: u16) -> bool {
    // 128 bits, because 100 times a 64-bit count overflows.
    u128::from(tokens) * 100 >= u128::from(of) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_triggers_count_their_boundary() {
        let limits = Limits {
            model_context_len: 1_200,
            max_input: None,
            max_completion_tokens: 200,
            safety_buffer: 0,
        };
        let level = |tokens| Level::from_tokens(tokens, &limits, &UsageOptions::default());
        assert_eq!([0, 749, 750, 999, 1_000, u64::MAX].map(level), {
            use Level::{Approaching, AtLimit, Normal};
            [Normal, Normal, Approaching, Approaching, AtLimit, AtLimit]
        });
        let unknown = Limits { model_context_len: 0, ..limits };
        assert_eq!(Level::from_tokens(9, &unknown, &UsageOptions::default()), Level::Normal);
    }

    #[test]
    fn both_unit_systems_give_one_context_size() {
        assert_eq!(Usage::openai(1_000, 600, 50), Usage::anthropic(400, 0, 600, 50));
        assert_eq!(Usage::anthropic(400, 100, 600, 50).context_size(), 1_150);
    }
}
