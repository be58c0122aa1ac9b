//! Models: limits, tokenizer and wire format by name, from `config/models.toml`.

use crate::{config::Config, error::Error, message::WireFormat, provider::media_prices::MediaPrices};
use serde::{Deserialize, Serialize};

mod constraints;
#[cfg(feature = "chat-template")]
mod template;
mod form;
mod thinking;
mod on_demand;
mod editing;
mod price;
mod registry;
mod import;

#[cfg(feature = "chat-template")]
pub use template::ChatTemplate;

pub use constraints::ProviderConstraints;
pub(crate) use constraints::{Accepts, CallIds, KeptReasoning, SystemPlace};
pub(crate) use editing::EditingRule;
pub(crate) use form::Form;
pub(crate) use on_demand::OnDemandRule;
#[doc(hidden)]
pub use price::PriceStep;
pub use price::{Price, Rates};
pub(crate) use registry::TokenizerFit;
pub use registry::{ModelEntry, Registry};
pub(crate) use thinking::{BoundTo, PrefixMismatch};
pub use thinking::{MismatchSwitch, ThinkingRule};

/// The model a plan is made for: its limits, its tokenizer and the wire format it is priced in.
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
    /// Its name, as the caller gave it.
    pub name: String,
    /// Who serves it.
    pub provider: String,
    /// Tokens of prompt and completion together; none reads as the configured default.
    pub context_len: Option<u64>,
    /// The model's own limit of input tokens.
    pub max_input: Option<u64>,
    /// The most tokens it writes.
    pub max_output: Option<u64>,
    /// Name of its tokenizer; none reads as the configured default.
    pub tokenizer: Option<String>,
    /// The wire format.
    pub wire_format: WireFormat,
    /// What the model demands beyond what its wire format and its provider do.
    pub constraints: ProviderConstraints,
    /// How its provider caches prompts, where that is known.
    pub cache: Option<CacheRule>,
    /// What its provider checks of the reasoning that goes back; none where it checks nothing.
    pub thinking: Option<ThinkingRule>,
    /// What its tokens cost, where that is known.
    pub price: Option<Price>,
    /// Whether the tokenizer replaces one that is not built in or not known, so that counts are estimates.
    pub estimated: bool,
    /// Whether the name was looked for and is not in the registry.
    pub unknown: bool,
    /// For an unknown name, the known one that may have been meant.
    pub near: Option<String>,
    /// The model's own chat template, where plans are to be priced by it.
    #[cfg(feature = "chat-template")]
    pub template: Option<ChatTemplate>,
}

/// How a provider caches the beginnings of prompts, as data for what a turn costs. Model files set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CacheRule {
    /// Which rule.
    #[doc(hidden)]
    pub rule: CacheKind,
    /// The fewest tokens that are cached, where that is published.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tokens: Option<u64>,
    /// The step in which they are cached, in tokens.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

/// The rule by which a provider caches.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheKind {
    /// Whole blocks of the longest common beginning (`OpenAI` before GPT-5.6).
    Blocks,
    /// Positions that an earlier request wrote (`OpenAI` from GPT-5.6 on).
    Breakpoints,
    /// Marks in the request, looked up 20 positions back (Anthropic).
    Anthropic,
    /// The provider decides, without a promise.
    Implicit,
}

/// The time for which a provider keeps what is written to its cache, where the request can say so
/// (Anthropic's `ttl`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheLife {
    /// Five minutes, without being asked: writing costs 1.25 times the price of input (Anthropic, prompt
    /// caching, 2026), as the registry has it.
    #[default]
    FiveMinutes,
    /// An hour: writing costs twice the price of input.
    OneHour,
}

impl Model {
    /// The model of this name from the built-in registry; one that is not there gets the configured defaults, and says
    /// so. [`Registry::model`] does the same for a registry of one's own.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` when the registry built into the crate cannot be read, which a test rules out.
    pub fn named(name: &str) -> Result<Self, Error> {
        Ok(Registry::built_in()?.model(name))
    }

    /// A model that is not in the registry: provider `openai`, wire format `openai_chat`, and limits and tokenizer from
    /// `[model.default]` of the options until its fields say otherwise.
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

    /// This model, counted and sent in another wire format. What a wire format adds is published for `OpenAI` Chat only, so
    /// counts in the others are estimates.
    #[must_use]
    pub fn with_wire_format(self, wire_format: WireFormat) -> Self {
        let published = matches!(wire_format, WireFormat::OpenAiChat | WireFormat::Plain);
        Self { wire_format, estimated: self.estimated || !published, ..self }
    }

    /// This model, counted and sent with its own chat template. Its tokenizer is taken for the model's own, so that counts are
    /// exact.
    #[cfg(feature = "chat-template")]
    #[must_use]
    pub fn with_template(self, template: ChatTemplate) -> Self {
        Self { wire_format: WireFormat::ChatTemplate, template: Some(template), estimated: false, ..self }
    }

    /// How a request asks the provider to leave out reasoning that it would refuse: none for a model that refuses nothing.
    pub(crate) fn mismatch_switch(&self) -> Option<MismatchSwitch> {
        let refuses = self.thinking.as_ref().is_some_and(|rule| rule.mismatch == PrefixMismatch::Refused);
        registry::mismatch_switch(self.wire_format).filter(|_| refuses)
    }

    /// How the provider is asked to compact; none where it is not.
    pub(crate) fn on_demand_compaction(&self) -> Option<OnDemandRule> {
        registry::on_demand_compaction(&self.provider)
    }

    /// Whether tools may be added at the end of a prompt.
    pub(crate) fn takes_late_tools(&self) -> bool {
        let in_form = matches!(self.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses);
        in_form && self.thinking.as_ref().is_some_and(|rule| rule.late_tools)
    }

    /// The header that a prompt with tools at its end needs.
    pub(crate) fn late_tools_header(&self) -> Option<(String, String)> {
        registry::late_tools_header(self.wire_format)
    }

    /// What the provider edits of a prompt by itself; none where it does not, or not in this wire format.
    pub(crate) fn context_editing(&self) -> Option<EditingRule> {
        let has_it = matches!(self.wire_format, WireFormat::Anthropic | WireFormat::OpenAiResponses);
        registry::context_editing(&self.provider).filter(|_| has_it)
    }

    /// What is counted around texts in the model's wire format.
    pub(crate) fn form(&self) -> Form {
        Form::of(self.wire_format)
    }

    /// What its provider counts for images, documents, sound and video.
    pub(crate) fn media_prices(&self) -> MediaPrices {
        registry::media_prices(self)
    }

    /// What the model takes: as its wire format has it, its provider, and the model itself.
    pub(crate) fn accepts(&self) -> Accepts {
        let provider = registry::provider_constraints(&self.provider, self.wire_format);
        self.constraints.over(provider).over(self.form().constraints).decided()
    }

    /// The limits that hold for one request, and where they come from (rule B2).
    pub(crate) fn limits(&self, asked: RequestLimits, config: &Config) -> (Limits, LimitsSource) {
        let default = &config.model.default;
        let unknown = asked.is_unknown();
        let own = self.context_len.filter(|_| !unknown);
        let context_len = asked.context_len.or(own).unwrap_or(default.context_len);
        let max_input = match asked {
            RequestLimits { max_input: Some(limit), .. } => Some(limit),
            RequestLimits { context_len: Some(_), .. } | RequestLimits { unknown: true, .. } => None,
            _ => self.max_input,
        };
        // A maximum that is not below the context length is a catalogue's way of saying "unknown".
        let known_output = self.max_output.filter(|most| *most < context_len);
        let max_completion = asked
            .max_completion
            .unwrap_or_else(|| known_output.unwrap_or(default.max_completion).min(context_len / 4));
        let safety_buffer =
            asked.safety_buffer.or(default.safety_buffer).unwrap_or_else(|| (context_len / 50).min(1024));
        let limits = Limits { context_len, max_input, max_completion, safety_buffer };
        let source = if unknown {
            LimitsSource::Unknown
        } else if asked.context_len.is_some() || asked.prompt_budget.is_some() {
            LimitsSource::Request
        } else if self.context_len.is_some() {
            LimitsSource::Registry
        } else {
            LimitsSource::Default
        };
        (limits, source)
    }
}

/// Limits that a request brings itself, in tokens; what is unset comes from the model or the configuration (rule B2).
///
/// ```
/// use context_window::RequestLimits;
///
/// // What this call reserves for its reply; the prompt budget follows.
/// let limits = RequestLimits::new().with_max_completion(2_000);
/// // Or the prompt budget itself, in tokens.
/// let exact = RequestLimits::budget(8_000);
/// assert_ne!(limits, exact);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "an object of numbers of tokens")]
#[non_exhaustive]
pub struct RequestLimits {
    /// Prompt and completion together. Setting it drops the model's own input limit.
    pub context_len: Option<u64>,
    /// Input alone.
    pub max_input: Option<u64>,
    /// Kept free for the reply.
    pub max_completion: Option<u64>,
    /// Kept free for what cannot be foreseen.
    pub safety_buffer: Option<u64>,
    /// The prompt budget itself, in place of the formula of rule B1.
    pub prompt_budget: Option<u64>,
    /// True if nobody knows the context length: nothing is compacted then, and no level is reported (rule
    /// B2). Without effect beside a `context_len`, which is known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

impl RequestLimits {
    /// Nothing set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the prompt budget.
    #[must_use]
    pub fn budget(tokens: u64) -> Self {
        Self { prompt_budget: Some(tokens), ..Self::default() }
    }

    /// Returns limits with a context length that nobody knows: levels and compaction are off, with a notice.
    /// The prompt is planned within the prompt budget that is set, or that of `[model.default]` (rule B2).
    ///
    /// ```
    /// use context_window::RequestLimits;
    /// # use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest};
    /// # use context_window::TokenCounter;
    /// # fn main() -> Result<(), context_window::Error> {
    /// # let counter = TokenCounter::chars_per_4();
    /// # let manager = ContextWindowManager::new(Model::custom("mine"), counter, Config::default())?;
    ///
    /// let log = Conversation::from([Message::user("Hello")]);
    /// let request = PlanRequest::new(&log).with_limits(RequestLimits::unknown());
    /// assert_eq!(manager.usage(request.clone())?.limit, 0);
    /// assert!(manager.compactor().now(request)?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Returns true if nobody knows the context length.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown && self.context_len.is_none()
    }

    /// Sets the context length.
    #[must_use]
    pub fn with_context_len(mut self, tokens: u64) -> Self {
        self.context_len = Some(tokens);
        self
    }

    /// Sets the input limit.
    #[must_use]
    pub fn with_max_input(mut self, tokens: u64) -> Self {
        self.max_input = Some(tokens);
        self
    }

    /// Sets what is kept free for the reply.
    #[must_use]
    pub fn with_max_completion(mut self, tokens: u64) -> Self {
        self.max_completion = Some(tokens);
        self
    }

    /// Sets what is kept free for what cannot be foreseen.
    #[must_use]
    pub fn with_safety_buffer(mut self, tokens: u64) -> Self {
        self.safety_buffer = Some(tokens);
        self
    }
}

/// The limits a plan was made under, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Prompt and completion together.
    pub context_len: u64,
    /// Input alone, where the model has such a limit.
    pub max_input: Option<u64>,
    /// Kept free for the reply.
    pub max_completion: u64,
    /// Kept free for what cannot be foreseen.
    pub safety_buffer: u64,
}

impl Limits {
    /// The most that the input may take: what the completion leaves of the context, and no more than the input limit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let left = self.context_len.saturating_sub(self.max_completion);
        left.min(self.max_input.unwrap_or(u64::MAX))
    }

    /// The largest prompt budget there can be: nothing kept for the completion; tokens.
    #[must_use]
    pub fn largest_budget(&self) -> u64 {
        self.context_len.min(self.max_input.unwrap_or(u64::MAX)).saturating_sub(self.safety_buffer)
    }
}

/// Where the context length came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitsSource {
    /// The request (flags of the command line count as it).
    Request,
    /// The model registry.
    Registry,
    /// The configured defaults.
    Default,
    /// The request says that nobody knows the context length: the sizes are those of the configured defaults.
    Unknown,
}

impl LimitsSource {
    /// The name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Registry => "registry",
            Self::Default => "default",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the limits that levels are of: those of no window if it is unknown.
    pub(crate) fn of_levels(self, limits: Limits) -> Limits {
        match self {
            Self::Unknown => Limits { context_len: 0, max_input: None, ..limits },
            _ => limits,
        }
    }

    /// Returns the most tokens that a report can say; the context length if it is known.
    pub(crate) fn most_reported(self, limits: Limits) -> u64 {
        if self == Self::Unknown { u64::MAX } else { limits.context_len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(name: &str, asked: RequestLimits) -> (Limits, LimitsSource) {
        Model::named(name).unwrap().limits(asked, &Config::default())
    }

    #[test]
    fn missing_figures_fall_back_and_the_source_is_named() {
        let (known, source) = limits("gpt-5", RequestLimits::new());
        assert_eq!((known.max_input, known.max_completion), (Some(272_000), 100_000));
        assert_eq!(source, LimitsSource::Registry);

        let (own, source) = limits("gpt-5", RequestLimits::new().with_context_len(8_000));
        assert_eq!((own.max_input, own.max_completion, own.safety_buffer), (None, 2_000, 160));
        assert_eq!(source, LimitsSource::Request);

        let (unknown, source) = limits("nobody-7b", RequestLimits::new());
        assert_eq!((unknown.context_len, unknown.max_completion), (128_000, 4_096));
        assert_eq!((unknown.safety_buffer, source), (1_024, LimitsSource::Default));
    }

    #[test]
    fn a_max_output_as_large_as_the_window_is_unknown() {
        let mut model = Model::custom("m");
        model.max_output = Some(9_000);
        let asked = RequestLimits::new().with_context_len(9_000);
        assert_eq!(model.limits(asked, &Config::default()).0.max_completion, 2_250);
    }
}
