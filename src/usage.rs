//! What providers report, in one unit system.

use crate::{
    config::{CompactionOptions, UsageBase, UsageOptions},
    model::Limits,
};
use serde::Serialize;

mod margin;

pub(crate) use margin::Lesson;
pub use margin::{Margin, Report};

/// One reply's report, in tokens: `input`, `cache_read` and `cache_write` never overlap (rule U1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Input that no cache served or stored.
    pub input: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// The reply.
    pub output: u64,
}

impl Usage {
    /// From `OpenAI`'s figures, whose prompt tokens include the cached ones.
    #[must_use]
    pub fn openai(prompt_tokens: u64, cached_tokens: u64, completion_tokens: u64) -> Self {
        Self {
            input: prompt_tokens.saturating_sub(cached_tokens),
            cache_read: cached_tokens.min(prompt_tokens),
            cache_write: 0,
            output: completion_tokens,
        }
    }

    /// From Anthropic's figures, whose input tokens exclude the cached ones.
    #[must_use]
    pub fn anthropic(input: u64, cache_creation: u64, cache_read: u64, output: u64) -> Self {
        Self { input, cache_read, cache_write: cache_creation, output }
    }

    /// Input and output together: what the request held in the window.
    #[must_use]
    pub fn context_size(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
    }
}

/// How full the window is, for an application to show (rule U3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// There is room.
    Normal,
    /// `usage.approaching` is reached.
    Approaching,
    /// `usage.at_limit` is reached.
    AtLimit,
}

impl Level {
    /// The level of so many tokens. A window of 0 tokens is unknown, and normal.
    #[must_use]
    pub fn of(tokens: u64, limits: &Limits, options: &UsageOptions) -> Self {
        let base = match options.base {
            UsageBase::Capacity => limits.capacity(),
            UsageBase::Context => limits.context_len,
        };
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

impl CompactionOptions {
    /// The tokens that a conversation of so many is to be brought down to, once it reaches the trigger, the boundary
    /// included; nothing below it, and nothing where the window is unknown (rules C2, C5).
    #[must_use]
    pub fn brings_down_to(&self, tokens: u64, limits: &Limits) -> Option<u64> {
        let capacity = limits.capacity();
        let due = capacity > 0 && reaches(tokens, capacity, self.percent);
        due.then(|| (u128::from(capacity) * u128::from(self.target) / 100) as u64)
    }
}

/// Whether so many tokens are so many per cent of something, or more.
fn reaches(tokens: u64, of: u64, percent: u16) -> bool {
    u128::from(tokens) * 100 >= u128::from(of) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_triggers_count_their_boundary() {
        let limits = Limits { context_len: 1_200, max_input: None, max_completion: 200, safety_buffer: 0 };
        let level = |tokens| Level::of(tokens, &limits, &UsageOptions::default());
        assert_eq!([0, 749, 750, 999, 1_000, u64::MAX].map(level), {
            use Level::{Approaching, AtLimit, Normal};
            [Normal, Normal, Approaching, Approaching, AtLimit, AtLimit]
        });
        let compaction = CompactionOptions::default();
        assert_eq!(compaction.brings_down_to(849, &limits), None);
        assert_eq!(compaction.brings_down_to(850, &limits), Some(500));
        let unknown = Limits { context_len: 0, ..limits };
        assert_eq!(Level::of(9, &unknown, &UsageOptions::default()), Level::Normal);
        assert_eq!(compaction.brings_down_to(9, &unknown), None);
    }

    #[test]
    fn behaviour_39_both_unit_systems_give_one_context_size() {
        assert_eq!(Usage::openai(1_000, 600, 50), Usage::anthropic(400, 0, 600, 50));
        assert_eq!(Usage::anthropic(400, 100, 600, 50).context_size(), 1_150);
    }
}
