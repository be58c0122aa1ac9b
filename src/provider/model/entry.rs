//! A model of a registry: its limits, tokenizer, wire format and price.

use super::{CacheRule, Price, ProviderConstraints, ThinkingRule, WireFormat};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A model of a registry: one `[[model]]` of a registry file. Lengths are in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelEntry {
    /// The name of the model.
    pub name: String,
    /// The provider that makes or serves it (default: `openai`).
    #[serde(default = "openai")]
    pub provider: String,
    /// Other names of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The context length: prompt and reply together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_len: Option<u64>,
    /// The maximum input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u64>,
    /// The maximum output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The name of the tokenizer that counts for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// The fit of that tokenizer: the model's own, or a substitute.
    #[serde(default, skip_serializing_if = "TokenizerFit::is_exact")]
    pub(crate) counts: TokenizerFit,
    /// The wire format of its requests.
    #[serde(default)]
    pub wire_format: WireFormat,
    /// Its constraints beyond those of its wire format and its provider.
    #[serde(default, skip_serializing_if = "ProviderConstraints::is_none")]
    pub(crate) constraints: ProviderConstraints,
    /// The rule by which its provider caches prompts, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheRule>,
    /// The rule by which its provider checks reasoning that is sent back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<ThinkingRule>,
    /// The price of its tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The sources of the figures; both, if two differ.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The day on which the sources were read: year, month and day.
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
    /// The tokenizer of the model itself (default).
    #[default]
    Exact,
    /// A substitute for a tokenizer that is not built in, so that every count is an estimate.
    Estimate,
}

impl TokenizerFit {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

impl ModelEntry {
    /// Returns true if counts for this model are estimates. The tokenizer is a substitute or unknown, or the
    /// tokens that the wire format adds are not published.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        let published = matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::Plain);
        self.counts == TokenizerFit::Estimate || self.tokenizer.is_none() || !published
    }

    /// Returns a description of the provider's cache rule: its name, the minimum number of tokens and the
    /// step. Returns `None` if no rule is known.
    #[must_use]
    pub fn cache_rule(&self) -> Option<impl fmt::Display> {
        self.cache
    }

    /// Returns the first fault of the figures, or `None` if they are valid.
    pub(super) fn fault(&self) -> Option<String> {
        // An unknown context length excludes nothing, so it counts as unlimited here.
        let context = self.context_len.unwrap_or(u64::MAX);
        let limits = [("max_input", self.max_input), ("max_output", self.max_output)];
        for (key, limit) in [("context_len", self.context_len)].into_iter().chain(limits) {
            if limit == Some(0) {
                return Some(format!("{key} is 0; expected 1 token or more, or no such key"));
            }
        }
        for (key, limit) in limits {
            if let Some(limit) = limit.filter(|limit| *limit > context) {
                return Some(format!("{key} {limit} exceeds context_len {context}; expected no more"));
            }
        }
        self.price.as_ref().and_then(super::Price::fault)
    }
}
