//! What providers report, in one unit system.

use serde::Serialize;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaviour_39_both_unit_systems_give_one_context_size() {
        assert_eq!(Usage::openai(1_000, 600, 50), Usage::anthropic(400, 0, 600, 50));
        assert_eq!(Usage::anthropic(400, 100, 600, 50).context_size(), 1_150);
    }
}
