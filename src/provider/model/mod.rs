//! Models: limits, tokenizer and wire format by name, from `config/models.toml`.

use crate::{
    config::ThinkTags, error::Error, message::WireFormat, provider::media_prices::MediaPrices,
    text::plain::grouped,
};
use serde::{Deserialize, Serialize};
use std::fmt;

mod constraints;
#[cfg(feature = "chat-template")]
mod template;
mod wire_format_costs;
mod thinking;
mod on_demand;
mod editing;
mod price;
mod entry;
mod fault;
mod names;
mod built_in;
mod registry;
mod limits;
mod import;

#[cfg(feature = "chat-template")]
pub use template::ChatTemplate;

pub(crate) use constraints::{Accepts, CallIds, KeptReasoning, ProviderConstraints, SystemPlace};
pub(crate) use editing::EditingRule;
pub use entry::ModelEntry;
pub(crate) use entry::TokenizerFit;
pub use limits::{Limits, LimitsSource, RequestLimits, StatedLimits};
pub(crate) use on_demand::OnDemandRule;
pub use price::Price;
#[doc(hidden)]
pub use price::PriceStep;
pub(crate) use price::is_day;
pub use registry::Registry;
pub(crate) use thinking::{BoundTo, MismatchSwitch, PrefixMismatch, ThinkingRule};
pub(crate) use wire_format_costs::WireFormatCosts;

/// The model for which a plan is made: its limits, its tokenizer and its wire format.
///
/// ```
/// use context_window::{Model, WireFormat};
///
/// # fn main() -> Result<(), context_window::Error> {
/// let model = Model::named("claude-sonnet-4-5")?; // limits, tokenizer and wire format from the registry
/// assert_eq!(model.wire_format, WireFormat::Anthropic);
/// let own = Model::custom("in-house").with_wire_format(WireFormat::OpenAiChat);
/// assert_eq!(own.name, "in-house");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The name of the model, as the caller gave it.
    pub name: String,
    /// The provider that serves it.
    pub provider: String,
    /// The context length in tokens, prompt and reply together; `None` means the configured default.
    pub context_len: Option<u64>,
    /// The model's own input limit in tokens.
    pub max_input: Option<u64>,
    /// The maximum output in tokens.
    pub max_output: Option<u64>,
    /// The name of its tokenizer; `None` means the configured default.
    pub tokenizer: Option<String>,
    /// The wire format.
    pub wire_format: WireFormat,
    /// The model's constraints beyond those of its wire format and its provider.
    pub(crate) constraints: ProviderConstraints,
    /// The rule by which its provider caches prompts, if known.
    pub(crate) cache: Option<CacheRule>,
    /// The rule by which its provider checks reasoning that is sent back; `None` if it checks nothing.
    pub(crate) thinking: Option<ThinkingRule>,
    /// The price of its tokens, if known.
    pub price: Option<Price>,
    /// True if counts are estimates: the tokenizer is a substitute for one that is unknown or not built in,
    /// or the tokens that the wire format adds are not published.
    pub estimated: bool,
    /// True if the name was looked up and is not in the registry.
    pub unknown: bool,
    /// For an unknown name, the known name that was possibly meant.
    pub near: Option<String>,
    /// The model's own chat template, if prompts are counted and sent in it.
    #[cfg(feature = "chat-template")]
    pub template: Option<ChatTemplate>,
}

/// The rule by which a provider caches the prefixes of prompts. Model files set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheRule {
    /// The kind of cache.
    pub(crate) rule: CacheKind,
    /// The minimum length of a cached prefix in tokens, if published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_tokens: Option<u64>,
    /// The granularity of the cache: a cached length is a multiple of this number of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<u64>,
}

impl fmt::Display for CacheRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.rule {
            CacheKind::Blocks => "blocks",
            CacheKind::Breakpoints => "breakpoints",
            CacheKind::Anthropic => "anthropic",
            CacheKind::Implicit => "implicit",
        })?;
        if let Some(least) = self.min_tokens {
            write!(f, ", minimum {} tokens", grouped(least))?;
        }
        self.step.map_or(Ok(()), |step| write!(f, ", in steps of {step}"))
    }
}

/// The kind of a provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CacheKind {
    /// Whole blocks of the longest common prefix (`OpenAI` before GPT-5.6).
    Blocks,
    /// Prefixes that end at a breakpoint of an earlier request (`OpenAI` from GPT-5.6 on).
    Breakpoints,
    /// Prefixes that end at a mark of this request, or at most 20 positions before it (Anthropic).
    Anthropic,
    /// The provider decides, without a guarantee.
    Implicit,
}

/// The time for which a provider keeps a cache entry, if the request can set it (Anthropic's `ttl`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheLife {
    /// Five minutes, the default. Writing costs 1.25 times the input price (Anthropic, prompt caching, 2026),
    /// as in the registry.
    #[default]
    FiveMinutes,
    /// One hour. Writing costs twice the input price.
    OneHour,
}

impl Model {
    /// Returns the model with this name from the built-in registry. An unknown name gets the configured
    /// defaults, and plans then have a notice. [`Registry::model`] does the same for your own registry.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Config` if the built-in registry is invalid. A test ensures that it is valid.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(Registry::built_in()?.model(name))
    }

    /// Creates a model that is not in the registry, with provider `openai` and wire format `openai_chat`. Its
    /// limits and tokenizer come from `[model.default]` of the options until you set its fields.
    #[must_use]
    pub fn custom(name: &str) -> Self {
        Self {
            name: name.into(),
            provider: "openai".into(),
            context_len: None,
            max_input: None,
            max_output: None,
            tokenizer: None,
            wire_format: WireFormat::OpenAiChat,
            constraints: ProviderConstraints::default(),
            cache: None,
            thinking: None,
            price: None,
            estimated: false,
            unknown: false,
            near: None,
            #[cfg(feature = "chat-template")]
            template: None,
        }
    }

    /// Removes the cache rule of the model's provider. Breakpoints then have no minimum length, and costs
    /// have no cached part.
    #[must_use]
    pub fn without_cache_rule(mut self) -> Self {
        self.cache = None;
        self
    }

    /// Returns this model with another wire format, in which it is counted and sent. Only `OpenAI` has
    /// published the tokens that its format (Chat) adds, and `Plain` adds none, so counts in other formats
    /// are estimates.
    #[must_use]
    pub fn with_wire_format(self, wire_format: WireFormat) -> Self {
        let published = matches!(wire_format, WireFormat::OpenAiChat | WireFormat::Plain);
        Self { wire_format, estimated: self.estimated || !published, ..self }
    }

    /// Returns this model with its own chat template, in which it is counted and sent. Its tokenizer counts
    /// as the model's own, so that counts are exact.
    #[cfg(feature = "chat-template")]
    #[must_use]
    pub fn with_template(self, template: ChatTemplate) -> Self {
        Self { wire_format: WireFormat::ChatTemplate, template: Some(template), estimated: false, ..self }
    }

    /// Returns the switch by which a request makes the provider drop reasoning that it would refuse. Returns
    /// `None` for a model that refuses nothing.
    pub(crate) fn mismatch_switch(&self) -> Option<MismatchSwitch> {
        let refuses = self.thinking.as_ref().is_some_and(|rule| rule.mismatch == PrefixMismatch::Refused);
        built_in::mismatch_switch(self.wire_format).filter(|_| refuses)
    }

    /// Returns the rule for requesting a compaction from the provider, or `None` if it offers none.
    pub(crate) fn on_demand_compaction(&self) -> Option<OnDemandRule> {
        built_in::on_demand_compaction(&self.provider)
    }

    /// Returns true if tools may be added at the end of a prompt.
    pub(crate) fn accepts_late_tools(&self) -> bool {
        let in_form = matches!(self.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses);
        in_form && self.thinking.as_ref().is_some_and(|rule| rule.late_tools)
    }

    /// Returns the header that a prompt with tools at its end needs, or `None` if it needs none.
    pub(crate) fn late_tools_header(&self) -> Option<(String, String)> {
        built_in::late_tools_header(self.wire_format)
    }

    /// Returns the edits that the provider makes itself. Returns `None` if it makes none, or none in this
    /// wire format.
    pub(crate) fn context_editing(&self) -> Option<EditingRule> {
        let has_it = matches!(self.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses);
        built_in::context_editing(&self.provider).filter(|_| has_it)
    }

    /// Returns true if the model reads the reasoning of another one, under any of their names (readable
    /// reasoning, rule K3; model names, rule B7).
    pub(crate) fn reads(&self, rule: &ThinkingRule, by: &str) -> bool {
        by == self.name || rule.reads(registry::known_name(&self.name), registry::known_name(by))
    }

    /// Returns the tokens that are counted around texts in the model's wire format.
    pub(crate) fn wire_format_costs(&self) -> WireFormatCosts {
        WireFormatCosts::from_wire_format(self.wire_format)
    }

    /// Returns the prices of images, documents, audio and video at its provider.
    pub(crate) fn media_prices(&self) -> MediaPrices {
        let entry = Registry::built_in().ok().and_then(|registry| registry.entry(&self.name));
        built_in::media_prices(entry.map_or(&self.name, |entry| &entry.name), self.wire_format)
    }

    /// Sets the treatment of text in think tags, unless it is `auto`, which leaves it to the registry.
    pub(crate) fn with_think_tags(mut self, think_tags: ThinkTags) -> Self {
        if think_tags != ThinkTags::Auto {
            self.constraints.think_tags = Some(think_tags);
        }
        self
    }

    /// Returns the resolved constraints of the target, from the model, its provider and its wire format.
    pub(crate) fn accepts(&self) -> Accepts {
        let provider = built_in::provider_constraints(&self.provider, self.wire_format);
        // The most specific source wins: the model, then its provider, then the wire format.
        self.constraints.over(provider).over(self.wire_format_costs().constraints).decided()
    }
}
