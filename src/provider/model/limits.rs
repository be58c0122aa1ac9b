//! The limits of a plan, from the request, a logged body or the model (limits, rules B2 and B8).

use super::Model;
use crate::{config::Config, text::plain::grouped};
use serde::{Deserialize, Serialize};

impl Model {
    /// Returns the limits for a request, and their source (limits, rules B2 and B8).
    pub(crate) fn limits(&self, asked: RequestLimits, config: &Config) -> (Limits, LimitsSource) {
        let default = &config.default_model;
        let unknown = asked.is_unknown();
        let own = self.context_len.filter(|_| !unknown);
        // A server reduces a window that is larger than the model's to that of the model.
        let stated = asked.stated.model_context_len.filter(|_| !unknown && asked.model_context_len.is_none());
        let stated = stated.map(|stated| stated.min(own.unwrap_or(u64::MAX)));
        let context_len = asked.model_context_len.or(stated).or(own).unwrap_or(default.context_len);
        let max_input = match asked {
            RequestLimits { max_input: Some(limit), .. } => Some(limit),
            // The model's input limit belongs to its own context length, not to another one.
            _ if asked.model_context_len.is_some() || unknown || stated.is_some() => None,
            _ => self.max_input,
        };
        // The default is 2 % of the window, at most 1,024 tokens (limits, rule B2).
        let safety_buffer =
            asked.safety_buffer.or(default.safety_buffer).unwrap_or_else(|| (context_len / 50).min(1024));
        // Some catalogues repeat the context length as the output limit if it is unknown.
        let known_output = self.max_output.filter(|most| *most < context_len);
        // At most a quarter of the window is reserved by default, so that small windows keep room for a
        // prompt.
        let usual = known_output.unwrap_or(default.max_completion).min(context_len / 4);
        // A stated reply that leaves no tokens for the prompt was meant for another window.
        let leaves_a_prompt = |reply: &u64| reply.saturating_add(safety_buffer) < context_len;
        let reasoning = asked.stated.reasoning.map(|reasoning| reasoning.max(usual));
        let stated_reply = asked.stated.max_completion_tokens.or(reasoning).filter(leaves_a_prompt);
        let max_completion = asked.max_completion_tokens.or(stated_reply).unwrap_or(usual);
        let limits = Limits {
            model_context_len: context_len,
            max_input,
            max_completion_tokens: max_completion,
            safety_buffer,
        };
        let source = if unknown {
            LimitsSource::Unknown
        } else if asked.model_context_len.is_some() || asked.prompt_budget.is_some() {
            LimitsSource::Request
        } else if asked.stated.held(asked, limits) != StatedLimits::default() {
            // The body is the source only if at least one of its limits takes effect.
            LimitsSource::Body
        } else if self.context_len.is_some() {
            LimitsSource::Registry
        } else {
            LimitsSource::Default
        };
        (limits, source)
    }
}

/// Limits that a request sets itself, in tokens. An unset limit comes from the model or the configuration
/// (limits, rule B2).
///
/// ```
/// use context_window::RequestLimits;
///
/// // The tokens that this call reserves for its reply; the prompt budget follows.
/// let limits = RequestLimits::new().with_max_completion_tokens(2_000);
/// // Or the prompt budget itself, in tokens.
/// let exact = RequestLimits::prompt_budget(8_000);
/// assert_ne!(limits, exact);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "an object of numbers of tokens")]
#[non_exhaustive]
pub struct RequestLimits {
    /// The context length: prompt and reply together. If it is set, the model's own input limit is ignored.
    #[serde(rename = "context_len")]
    pub model_context_len: Option<u64>,
    /// The maximum input.
    pub max_input: Option<u64>,
    /// The tokens reserved for the reply.
    #[serde(rename = "max_completion")]
    pub max_completion_tokens: Option<u64>,
    /// The tokens reserved for anything unforeseen.
    pub safety_buffer: Option<u64>,
    /// The prompt budget, in place of the formula (prompt budget, rule B1).
    pub prompt_budget: Option<u64>,
    /// True if the context length is unknown. Nothing is compacted then, and no level is reported (limits,
    /// rule B2). It has no effect if `model_context_len` is set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// The limits from the body of a logged request. The limits above take precedence.
    #[doc(hidden)]
    #[serde(skip_serializing_if = "StatedLimits::is_none")]
    pub stated: StatedLimits,
}

impl RequestLimits {
    /// Creates limits with nothing set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates limits with a prompt budget in tokens and nothing else set.
    #[must_use]
    pub fn prompt_budget(tokens: u64) -> Self {
        Self { prompt_budget: Some(tokens), ..Self::default() }
    }

    /// Creates limits with an unknown context length. Levels and compaction are off, and plans have a notice.
    /// The prompt is planned within the requested prompt budget, or within that of `[model.default]` (limits,
    /// rule B2).
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
    /// assert_eq!(manager.usage(&request)?.limit, 0);
    /// assert!(manager.compactor().now(&request)?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Returns true if the context length is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        self.unknown && self.model_context_len.is_none()
    }

    /// Sets the context length in tokens.
    #[must_use]
    pub fn with_model_context_len(mut self, tokens: u64) -> Self {
        self.model_context_len = Some(tokens);
        self
    }

    /// Sets the input limit in tokens.
    #[must_use]
    pub fn with_max_input(mut self, tokens: u64) -> Self {
        self.max_input = Some(tokens);
        self
    }

    /// Sets the number of tokens reserved for the reply.
    #[must_use]
    pub fn with_max_completion_tokens(mut self, tokens: u64) -> Self {
        self.max_completion_tokens = Some(tokens);
        self
    }

    /// Sets the number of tokens reserved for anything unforeseen.
    #[must_use]
    pub fn with_safety_buffer(mut self, tokens: u64) -> Self {
        self.safety_buffer = Some(tokens);
        self
    }
}

/// Limits from the body of a logged request, in tokens (logged limits, rule B8). The request's own limits
/// take precedence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, expecting = "an object of numbers of tokens")]
#[non_exhaustive]
pub struct StatedLimits {
    /// The context length: prompt and reply together (Ollama's `num_ctx`).
    #[serde(rename = "context_len", skip_serializing_if = "Option::is_none")]
    pub model_context_len: Option<u64>,
    /// The maximum length of the reply (`max_tokens`, `max_output_tokens`, and others).
    #[serde(rename = "max_completion", skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u64>,
    /// The reasoning of the reply, if the body does not limit the whole reply (`thinking.budget_tokens`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl StatedLimits {
    /// Returns true if no limit is set.
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limits that apply in a plan: those that neither the request nor the model overrides.
    pub(crate) fn held(self, asked: RequestLimits, limits: Limits) -> Self {
        // A stated reply takes effect only if it becomes the plan's reserve.
        let reply =
            |stated: &u64| asked.max_completion_tokens.is_none() && *stated == limits.max_completion_tokens;
        // A stated window that is larger than the model's takes effect in its reduced form.
        let context = |stated: &u64| {
            asked.model_context_len.is_none() && !asked.is_unknown() && limits.model_context_len <= *stated
        };
        let max_completion = self.max_completion_tokens.filter(reply);
        Self {
            model_context_len: self.model_context_len.filter(context).map(|_| limits.model_context_len),
            max_completion_tokens: max_completion,
            reasoning: self.reasoning.filter(|_| self.max_completion_tokens.is_none()).filter(reply),
        }
    }

    /// Returns a sentence about these limits and their effect on a plan, or `None` if no limit is set.
    pub(crate) fn describe(self, asked: RequestLimits, limits: Limits) -> Option<String> {
        let held = self.held(asked, limits);
        let context = held.model_context_len.map(|tokens| format!("context length {}", grouped(tokens)));
        let reply = held.max_completion_tokens.map(|tokens| format!("reply up to {}", grouped(tokens)));
        let reasoning = held.reasoning.map(|tokens| format!("reasoning up to {}", grouped(tokens)));
        let parts: Vec<String> = context.into_iter().chain(reply).chain(reasoning).collect();
        let too_large = self
            .max_completion_tokens
            .or(self.reasoning)
            .filter(|stated| asked.max_completion_tokens.is_none() && *stated > limits.max_completion_tokens)
            .map(|stated| {
                let (stated, kept) = (grouped(stated), grouped(limits.max_completion_tokens));
                format!("a reply of {stated} leaves no tokens for a prompt; {kept} are kept free")
            });
        let parts: Vec<String> = parts.into_iter().chain(too_large).collect();
        (!parts.is_empty()).then(|| format!("the request body sets limits, in tokens: {}", parts.join(", ")))
    }
}

/// The limits that a plan was made with, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The context length: prompt and reply together.
    pub model_context_len: u64,
    /// The maximum input, if the model has such a limit.
    pub max_input: Option<u64>,
    /// The tokens reserved for the reply.
    pub max_completion_tokens: u64,
    /// The tokens reserved for anything unforeseen.
    pub safety_buffer: u64,
}

impl Limits {
    /// Returns the maximum number of input tokens: the context length less the reply, limited by `max_input`.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let left = self.model_context_len.saturating_sub(self.max_completion_tokens);
        left.min(self.max_input.unwrap_or(u64::MAX))
    }

    /// Returns the largest prompt budget in tokens that the limits allow, with nothing reserved for the
    /// reply.
    #[must_use]
    pub fn largest_budget(&self) -> u64 {
        self.model_context_len.min(self.max_input.unwrap_or(u64::MAX)).saturating_sub(self.safety_buffer)
    }
}

/// The source of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitsSource {
    /// The request, which includes flags of the command line.
    Request,
    /// The body of a logged request, which contains the context length or the length of the reply.
    Body,
    /// The model registry.
    Registry,
    /// The configured defaults.
    Default,
    /// The request marks the context length as unknown, so the sizes are the configured defaults.
    Unknown,
}

impl LimitsSource {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Body => "body",
            Self::Registry => "registry",
            Self::Default => "default",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the limits that levels refer to. An unknown context length gives a window of 0 tokens.
    pub(crate) fn of_levels(self, limits: Limits) -> Limits {
        match self {
            Self::Unknown => Limits { model_context_len: 0, max_input: None, ..limits },
            _ => limits,
        }
    }

    /// Returns the maximum number of tokens that a credible report can have: the context length, if it is
    /// known.
    pub(crate) fn most_reported(self, limits: Limits) -> u64 {
        if self == Self::Unknown { u64::MAX } else { limits.model_context_len }
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
        assert_eq!((known.max_input, known.max_completion_tokens), (Some(272_000), 100_000));
        assert_eq!(source, LimitsSource::Registry);

        let (own, source) = limits("gpt-5", RequestLimits::new().with_model_context_len(8_000));
        assert_eq!((own.max_input, own.max_completion_tokens, own.safety_buffer), (None, 2_000, 160));
        assert_eq!(source, LimitsSource::Request);

        let (unknown, source) = limits("nobody-7b", RequestLimits::new());
        assert_eq!((unknown.model_context_len, unknown.max_completion_tokens), (128_000, 4_096));
        assert_eq!((unknown.safety_buffer, source), (1_024, LimitsSource::Default));
    }

    #[test]
    fn max_output_as_large_as_the_window_is_treated_as_unknown() {
        let mut model = Model::custom("m");
        model.max_output = Some(9_000);
        let asked = RequestLimits::new().with_model_context_len(9_000);
        assert_eq!(model.limits(asked, &Config::default()).0.max_completion_tokens, 2_250);
    }

    fn stated(name: &str, stated: StatedLimits) -> (Limits, LimitsSource, String) {
        let asked = RequestLimits { stated, ..RequestLimits::new() };
        let (limits, source) = limits(name, asked);
        (limits, source, stated.describe(asked, limits).unwrap_or_default())
    }

    #[test]
    fn a_stated_reply_sets_the_reserve() {
        let reply = |tokens| StatedLimits { max_completion_tokens: Some(tokens), ..StatedLimits::default() };
        // Without a stated reply, a quarter of 200,000 is reserved.
        let (held, source, text) = stated("claude-sonnet-4-5", reply(60_000));
        assert_eq!((held.max_completion_tokens, source), (60_000, LimitsSource::Body));
        assert!(text.ends_with("in tokens: reply up to 60,000"), "{text}");
        assert_eq!(stated("claude-sonnet-4-5", reply(300)).0.max_completion_tokens, 300);
        // A reply that fills the window is ignored.
        for none_left in [196_000, 199_000, 200_000, u64::MAX] {
            let leaves = none_left < 200_000 - 1_024;
            let (held, source, text) = stated("claude-sonnet-4-5", reply(none_left));
            assert_eq!(held.max_completion_tokens, if leaves { none_left } else { 50_000 }, "{none_left}");
            assert_eq!(source, if leaves { LimitsSource::Body } else { LimitsSource::Registry });
            assert_eq!(
                text.contains("leaves no tokens for a prompt; 50,000 are kept free"),
                !leaves,
                "{text}"
            );
        }
    }

    #[test]
    fn stated_reasoning_raises_the_reserve_only() {
        let reasoning = |tokens| StatedLimits { reasoning: Some(tokens), ..StatedLimits::default() };
        assert_eq!(stated("claude-sonnet-4-5", reasoning(55_000)).0.max_completion_tokens, 55_000);
        let (held, source, text) = stated("claude-sonnet-4-5", reasoning(1_024));
        assert_eq!((held.max_completion_tokens, source, text.as_str()), (50_000, LimitsSource::Registry, ""));
    }

    #[test]
    fn a_stated_window_is_at_most_the_models() {
        let window = |tokens| StatedLimits { model_context_len: Some(tokens), ..StatedLimits::default() };
        let (held, source, text) = stated("gpt-5", window(2_048));
        assert_eq!((held.model_context_len, held.max_input, held.max_completion_tokens), (2_048, None, 512));
        assert_eq!((held.safety_buffer, source), (40, LimitsSource::Body));
        assert!(text.ends_with("context length 2,048"), "{text}");
        assert_eq!(stated("gpt-5", window(9_000_000)).0.model_context_len, 400_000);
        assert_eq!(stated("nobody-7b", window(9_000)).0.model_context_len, 9_000);
    }

    #[test]
    fn the_requests_own_limits_hold_before_stated_ones() {
        let stated = StatedLimits {
            model_context_len: Some(2_048),
            max_completion_tokens: Some(300),
            reasoning: None,
        };
        let own = RequestLimits {
            stated,
            ..RequestLimits::new().with_model_context_len(9_000).with_max_completion_tokens(700)
        };
        let (held, source) = limits("gpt-5", own);
        assert_eq!(
            (held.model_context_len, held.max_completion_tokens, source),
            (9_000, 700, LimitsSource::Request)
        );
        assert_eq!(stated.describe(own, held), None);
        let unknown = RequestLimits { stated, ..RequestLimits::unknown() };
        assert_eq!(limits("gpt-5", unknown).1, LimitsSource::Unknown);
    }
}
