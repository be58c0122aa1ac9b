//! The cost of a prompt by its model's cache rule and prices.

use super::Usage;
use crate::provider::model::{CacheKind, CacheLife, Model, is_day};
use serde::Serialize;

/// The price of the input of one prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache.
    pub written: u64,
    /// All other tokens.
    pub plain: u64,
    /// The total price in billionths of a US dollar.
    pub billionths: u64,
    /// The price without a cache, in billionths of a US dollar.
    pub uncached: u64,
}

/// Conditions that affect the price of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CostTerms<'a> {
    /// The day of the prices as year, month and day, such as 2026-12-01. Without a day, prices that start on
    /// a later date are ignored.
    pub day: Option<&'a str>,
    /// The lifetime of cache entries.
    pub life: CacheLife,
}

impl<'a> CostTerms<'a> {
    /// Returns true if a text has the form of a day, such as 2026-12-01. The prices of any other text are not
    /// those of a day.
    #[must_use]
    pub fn is_day(text: &str) -> bool {
        is_day(text)
    }

    /// Sets the day of the prices as year, month and day, such as 2026-12-01.
    #[must_use]
    pub fn with_day(mut self, day: Option<&'a str>) -> Self {
        self.day = day;
        self
    }

    /// Sets the lifetime of cache entries.
    #[must_use]
    pub fn with_life(mut self, life: CacheLife) -> Self {
        self.life = life;
        self
    }
}

impl Model {
    /// Returns the price of the input of a prompt of `prompt` tokens, whose first `repeated` tokens were also
    /// in the last prompt. Assumes that the last prompt is still in the cache, and that breakpoints are
    /// marked if the provider requires them. Returns `None` if the model has no price.
    #[must_use]
    pub fn input_cost(&self, prompt: u64, repeated: u64, terms: CostTerms<'_>) -> Option<Cost> {
        let price = self.price.as_ref()?;
        let mut rates = price.rates(prompt, terms.day);
        let is_anthropic = self.cache.is_some_and(|rule| rule.rule == CacheKind::Anthropic);
        if terms.life == CacheLife::OneHour && is_anthropic {
            // Anthropic's price for a write with a lifetime of one hour is twice the input price.
            rates.cache_write = rates.input.saturating_mul(2);
        }
        let least = self.cache.and_then(|rule| rule.min_tokens).unwrap_or_default();
        let kind = self.cache.map(|rule| rule.rule);
        // A cache ignores prefixes shorter than its minimum.
        let repeated = if repeated < least { 0 } else { repeated.min(prompt) };
        let read = match kind {
            // The provider caches whole steps only; the rest of the repeated tokens is charged as normal
            // input.
            Some(CacheKind::Blocks) => {
                let step = self.cache.and_then(|rule| rule.step).unwrap_or(1).max(1);
                repeated / step * step
            }
            Some(_) => repeated,
            None => 0,
        };
        let writes = matches!(kind, Some(CacheKind::Anthropic | CacheKind::Breakpoints)) && prompt >= least;
        let written = if writes { prompt - read } else { 0 };
        let plain = prompt - read - written;
        Some(Cost {
            read,
            written,
            plain,
            billionths: billionths(&[
                (read, rates.cache_read),
                (written, rates.cache_write),
                (plain, rates.input),
            ]),
            uncached: billionths(&[(prompt, rates.input)]),
        })
    }

    /// Returns the price of prompts and replies by a provider's report, in billionths of a US dollar. `day`
    /// is as in [`CostTerms::day`]. Returns `None` if the model has no price.
    #[must_use]
    pub fn usage_cost(&self, usage: Usage, day: Option<&str>) -> Option<u64> {
        let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let rates = self.price.as_ref()?.rates(prompt, day);
        Some(billionths(&[
            (usage.input, rates.input),
            (usage.cache_read, rates.cache_read),
            (usage.cache_write, rates.cache_write),
            (usage.output, rates.output),
        ]))
    }
}

/// Returns the cost of tokens at their rates, in billionths of a US dollar. Saturates at the largest number.
fn billionths(parts: &[(u64, u64)]) -> u64 {
    // Rates are in thousandths of a billionth, and the sum needs 128 bits.
    let thousandths: u128 = parts.iter().map(|(tokens, rate)| u128::from(*tokens) * u128::from(*rate)).sum();
    u64::try_from(thousandths / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn billed_usage_has_its_total_cost() {
        let model = Model::named("claude-opus-5-5").unwrap();
        // 4 dollars per million tokens, cache writes at 5, cache reads at 0.2.
        let usage = Usage::anthropic(1_000, 200, 3_000, 50);
        let expected = 1_000 * 4_000 + 200 * 5_000 + 3_000 * 200;
        let output = model.price.as_ref().unwrap().rates(4_200, None).output;
        assert_eq!(model.usage_cost(usage, None), Some(expected + 50 * output / 1_000));
        assert_eq!(Model::custom("in-house").usage_cost(usage, None), None);
        let most = Usage::anthropic(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(model.usage_cost(most, None), Some(u64::MAX));
    }

    #[test]
    fn each_rule_has_its_sum() {
        let cost = |model: &str, prompt, repeated| {
            let cost =
                Model::named(model).unwrap().input_cost(prompt, repeated, CostTerms::default()).unwrap();
            (cost.read, cost.written, cost.plain, cost.billionths)
        };
        // 2.5 and 1.25 dollars per million tokens, in steps of 128 from 1,024 on.
        assert_eq!(cost("gpt-4o", 2_000, 1_500), (1_408, 0, 592, 1_408 * 1_250 + 592 * 2_500));
        assert_eq!(cost("gpt-4o", 2_000, 1_000), (0, 0, 2_000, 2_000 * 2_500));
        // 4 dollars, cache reads at 0.2 and cache writes at 5; at least 512 tokens.
        assert_eq!(cost("claude-opus-5-5", 2_000, 1_500), (1_500, 500, 0, 1_500 * 200 + 500 * 5_000));
        assert_eq!(cost("claude-opus-5-5", 400, 400), (0, 0, 400, 400 * 4_000));
        // Longer prompts have higher prices for every token.
        assert_eq!(cost("claude-haiku-5-5", 100_001, 100_000), (100_000, 1, 0, 100_000 * 50 + 625));
        assert_eq!(Model::custom("in-house").input_cost(100, 0, CostTerms::default()), None);
        // A write for one hour costs twice the input price; reads cost the same.
        let hour = CostTerms::default().with_life(CacheLife::OneHour);
        let cost =
            |model: &str| Model::named(model).unwrap().input_cost(2_000, 1_500, hour).unwrap().billionths;
        assert_eq!(cost("claude-opus-5-5"), 1_500 * 200 + 500 * 8_000);
        assert_eq!(cost("gpt-4o"), 1_408 * 1_250 + 592 * 2_500, "nobody else has two lives");
    }
}
