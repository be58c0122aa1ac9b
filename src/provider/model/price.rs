//! Token prices: as data of a model, and as integers for one prompt.

use crate::text::plain::short;
use serde::{Deserialize, Serialize};

/// The price of tokens in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// The price of input that is not cached.
    pub input: f64,
    /// The price of output.
    pub output: f64,
    /// The price of input that is read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// The price of input that is written to the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Other prices for long prompts, or from a date on. The last step that applies to a prompt counts for
    /// all its tokens. Model files set them.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PriceStep>,
}

/// Prices for long prompts, or from a date on, in US dollars per million tokens.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceStep {
    /// The prompt length in tokens above which the prices apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<u64>,
    /// The day from which the prices apply: year, month and day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The price of input that is not cached.
    pub input: f64,
    /// The price of output.
    pub output: f64,
    /// The price of input that is read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// The price of input that is written to the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// The prices of one token in units of 10^-12 US dollars. They are integers, so that sums are equal on every
/// machine. 3 dollars per million tokens are 3,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rates {
    /// The price of input that is not cached.
    pub(crate) input: u64,
    /// The price of output.
    pub(crate) output: u64,
    /// The price of input that is read from the cache; equal to `input` if there is no separate price.
    pub(crate) cache_read: u64,
    /// The price of input that is written to the cache; equal to `input` if there is no separate price.
    pub(crate) cache_write: u64,
}

impl Price {
    /// Creates a price without steps and without cache prices.
    #[must_use]
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cache_read: None, cache_write: None, steps: Vec::new() }
    }

    /// Returns the token prices for a prompt of `prompt` tokens on a day (`2026-11-24`). Without a day,
    /// prices that begin on a date do not apply.
    pub(crate) fn rates(&self, prompt: u64, day: Option<&str>) -> Rates {
        let long = |step: &PriceStep| step.above.is_none_or(|above| prompt > above);
        // Days are compared as text, which orders dates of the form year, month, day correctly.
        let begun =
            |step: &PriceStep| step.from.as_deref().is_none_or(|from| day.is_some_and(|day| day >= from));
        // The last matching step counts, so the search goes backwards.
        let step = self.steps.iter().rev().find(|step| long(step) && begun(step));
        let (input, output, cache_read, cache_write) = match step {
            Some(step) => (step.input, step.output, step.cache_read, step.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        // Negative prices are refused when they are read.
        #[expect(clippy::cast_sign_loss, reason = "no price is below zero")]
        let whole = |price: f64| (price * 1e6).round().max(0.0) as u64;
        Rates {
            input: whole(input),
            output: whole(output),
            cache_read: whole(cache_read.unwrap_or(input)),
            cache_write: whole(cache_write.unwrap_or(input)),
        }
    }

    /// Returns the first fault of the prices, or `None` if they are valid.
    pub(super) fn first_fault(&self) -> Option<String> {
        let of_steps = self
            .steps
            .iter()
            .flat_map(|step| [Some(step.input), Some(step.output), step.cache_read, step.cache_write]);
        let own = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        let wrong = |price: &f64| !price.is_finite() || !(0.0..=1e9).contains(price);
        if let Some(wrong) = own.into_iter().chain(of_steps).flatten().find(wrong) {
            return Some(format!("a price of {wrong}; expected US dollars per million tokens, 0 or more"));
        }
        let days = self.steps.iter().filter_map(|step| step.from.as_deref());
        if let Some(day) = days.into_iter().find(|day| !is_day(day)) {
            let day = short(day);
            return Some(format!("prices from `{day}` on; expected year, month and day, as in 2026-12-01"));
        }
        let always = self.steps.iter().any(|step| step.above.is_none() && step.from.is_none());
        always.then(|| "a step of prices with neither `above` nor `from`; expected one of them".into())
    }
}

/// Returns true if a text has the form of a date, such as `2026-12-01`. Dates of prices are compared as
/// texts, which needs no more than this form.
pub(crate) fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_that_holds_counts() {
        let step = |above, from: Option<&str>, input| PriceStep {
            above,
            from: from.map(str::to_owned),
            input,
            output: 3.0 * input,
            cache_read: None,
            cache_write: Some(1.25 * input),
        };
        let price = Price {
            steps: vec![
                step(Some(100), None, 2.0),
                step(None, Some("2026-12-01"), 4.0),
                step(Some(100), Some("2026-12-01"), 8.0),
            ],
            ..Price::new(1.0, 3.0)
        };
        let input = |prompt, day| price.rates(prompt, day).input;
        assert_eq!(input(100, None), 1_000_000);
        assert_eq!(input(101, None), 2_000_000);
        assert_eq!(input(101, Some("2026-11-30")), 2_000_000);
        assert_eq!(input(100, Some("2026-12-01")), 4_000_000);
        assert_eq!(input(101, Some("2027-01-01")), 8_000_000);
        let rates = price.rates(101, None);
        assert_eq!((rates.output, rates.cache_read, rates.cache_write), (6_000_000, 2_000_000, 2_500_000));
    }

    #[test]
    fn invalid_price_reports_its_fault() {
        assert!(Price::new(1.0, f64::NAN).first_fault().is_some_and(|fault| fault.contains("NaN")));
        let from = |day: Option<&str>| PriceStep {
            above: None,
            from: day.map(str::to_owned),
            input: 1.0,
            output: 1.0,
            cache_read: None,
            cache_write: None,
        };
        let fault = |step| Price { steps: vec![step], ..Price::new(1.0, 1.0) }.first_fault();
        assert!(fault(from(Some("tomorrow"))).is_some_and(|fault| fault.contains("year, month and day")));
        assert!(fault(from(None)).is_some_and(|fault| fault.contains("neither")));
        assert_eq!(fault(from(Some("2026-12-01"))), None);
    }
}
