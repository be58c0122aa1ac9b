//! One model of a registry: its limits, tokenizer, wire format and price.

use super::{CacheRule, Price, ProviderConstraints, ThinkingRule, WireFormat};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A model of a registry: one `[[model]]` of a registry file. Lengths are in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Its name.
    pub name: String,
    /// The provider that makes or serves it (default: `openai`).
    #[serde(default = "openai")]
    pub provider: String,
    /// Other names of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Prompt and completion together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_len: Option<u64>,
    /// The input alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u64>,
    /// The most it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The tokenizer that counts for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// The fit of that tokenizer: the model's own, or a replacement.
    #[serde(default, skip_serializing_if = "TokenizerFit::is_exact")]
    pub(crate) counts: TokenizerFit,
    /// The wire format of its requests.
    #[serde(default)]
    pub wire_format: WireFormat,
    /// Its demands beyond those of its wire format and its provider.
    #[serde(default, skip_serializing_if = "ProviderConstraints::is_none")]
    pub(crate) constraints: ProviderConstraints,
    /// The rule by which its provider caches prompts, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheRule>,
    /// The rule by which its provider checks reasoning that goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<ThinkingRule>,
    /// The price of its tokens, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The sources of the figures; if two differ, both.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The day they were read: year, month and day.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
}

fn openai() -> String {
    "openai".into()
}

/// The fit of a tokenizer to its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenizerFit {
    /// It is the model's own (default).
    #[default]
    Exact,
    /// It replaces one that is not built in: every number is an estimate.
    Estimate,
}

impl TokenizerFit {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

impl ModelEntry {
    /// Returns true if counts for this model are estimates: its tokenizer replaces another one or is not
    /// known, or the tokens that its wire format adds are not published.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        let published = matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::Plain);
        self.counts == TokenizerFit::Estimate || self.tokenizer.is_none() || !published
    }

    /// Describes the rule by which the provider caches prompts: its name, the fewest tokens and the step.
    /// Returns `None` if no rule is known.
    #[must_use]
    pub fn cache_rule(&self) -> Option<impl fmt::Display> {
        self.cache
    }

    /// Returns the first fault of the figures, if any.
    pub(super) fn fault(&self) -> Option<String> {
        let context = self.context_len.unwrap_or(u64::MAX);
        let limits = [("max_input", self.max_input), ("max_output", self.max_output)];
        for (key, limit) in [("context_len", self.context_len)].into_iter().chain(limits) {
            if limit == Some(0) {
                return Some(format!("{key} is 0; expected tokens, or no such key"));
            }
        }
        for (key, limit) in limits {
            if let Some(limit) = limit.filter(|limit| *limit > context) {
                return Some(format!(
                    "{key} {limit} is over context_len {context}; expected no more than that"
                ));
            }
        }
        self.price.as_ref().and_then(super::Price::fault)
    }
}
