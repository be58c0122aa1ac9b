//! The cost of a prompt, by its model's cache rule and prices.

use super::Usage;
use crate::provider::model::{CacheKind, CacheLife, Model};
use serde::Serialize;

/// The price of the input of one prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cost {
    /// Tokens that are read from the cache.
    pub read: u64,
    /// Tokens that are written to it.
    pub written: u64,
    /// Other tokens.
    pub plain: u64,
    /// The price of all of them; billionths of a US dollar.
    pub billionths: u64,
    /// The price without a cache; billionths of a US dollar.
    pub uncached: u64,
}

/// The terms on which a prompt is paid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CostTerms<'a> {
    /// The day whose prices count: year, month and day, as 2026-12-01. Without a day, prices that begin on
    /// one do not hold.
    pub day: Option<&'a str>,
    /// The time for which the cache is kept.
    pub life: CacheLife,
}

impl<'a> CostTerms<'a> {
    /// Sets the day: year, month and day, as 2026-12-01.
    #[must_use]
    pub fn with_day(mut self, day: Option<&'a str>) -> Self {
        self.day = day;
        self
    }

    /// Sets the time for which the cache is kept.
    #[must_use]
    pub fn with_life(mut self, life: CacheLife) -> Self {
        self.life = life;
        self
    }
}

impl Model {
    /// Returns the price of the input of a prompt of `prompt` tokens, of which the first `repeated` were in
    /// the last prompt. The last prompt is taken to be in the cache still, and breakpoints to be marked if
    /// the provider wants them. Returns `None` if the model has no price.
    #[must_use]
    pub fn input_cost(&self, prompt: u64, repeated: u64, terms: CostTerms<'_>) -> Option<Cost> {
        let price = self.price.as_ref()?;
        let mut rates = price.rates(prompt, terms.day);
        let is_anthropic = self.cache.is_some_and(|rule| rule.rule == CacheKind::Anthropic);
        if terms.life == CacheLife::OneHour && is_anthropic {
            rates.cache_write = rates.input.saturating_mul(2);
        }
        let least = self.cache.and_then(|rule| rule.min_tokens).unwrap_or_default();
        let kind = self.cache.map(|rule| rule.rule);
        let repeated = if repeated < least { 0 } else { repeated.min(prompt) };
        let read = match kind {
            // A provider caches whole steps only; the rest of the repeated tokens is paid as other input.
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

    /// Returns the price of prompts and replies by a provider's report, in billionths of a US dollar, on a
    /// day as in [`CostTerms::day`]. Returns `None` if the model has no price.
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

/// Returns the cost of tokens at their rates, in billionths of a US dollar; the largest number if it is more.
fn billionths(parts: &[(u64, u64)]) -> u64 {
    let thousandths: u128 = parts.iter().map(|(tokens, rate)| u128::from(*tokens) * u128::from(*rate)).sum();
    u64::try_from(thousandths / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn billed_usage_has_its_total_cost() {
        let model = Model::named("claude-opus-5-5").unwrap();
        // 4 dollars, written at 5, read at 0.2.
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
        // 2.5 and 1.25 dollars a million, in steps of 128 from 1,024 on.
        assert_eq!(cost("gpt-4o", 2_000, 1_500), (1_408, 0, 592, 1_408 * 1_250 + 592 * 2_500));
        assert_eq!(cost("gpt-4o", 2_000, 1_000), (0, 0, 2_000, 2_000 * 2_500));
        // 4 dollars, read at 0.2 and written at 5; at least 512.
        assert_eq!(cost("claude-opus-5-5", 2_000, 1_500), (1_500, 500, 0, 1_500 * 200 + 500 * 5_000));
        assert_eq!(cost("claude-opus-5-5", 400, 400), (0, 0, 400, 400 * 4_000));
        // Longer prompts have other prices, for every token.
        assert_eq!(cost("claude-haiku-5-5", 100_001, 100_000), (100_000, 1, 0, 100_000 * 50 + 625));
        assert_eq!(Model::custom("in-house").input_cost(100, 0, CostTerms::default()), None);
        // An hour in the cache is written at twice the price, and read as before.
        let hour = CostTerms::default().with_life(CacheLife::OneHour);
        let cost =
            |model: &str| Model::named(model).unwrap().input_cost(2_000, 1_500, hour).unwrap().billionths;
        assert_eq!(cost("claude-opus-5-5"), 1_500 * 200 + 500 * 8_000);
        assert_eq!(cost("gpt-4o"), 1_408 * 1_250 + 592 * 2_500, "nobody else has two lives");
    }
}
