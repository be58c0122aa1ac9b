//! Models: limits, tokenizer and framing by name, from `config/models.toml`.

use crate::{
    config::Config,
    error::{Error, Repr},
};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The model a plan is made for: its limits, its tokenizer and the wire form it is priced in.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The wire form.
    pub framing: Framing,
    /// Whether the name was looked for and is not in the registry: its counts are estimates then.
    pub unknown: bool,
}

/// What is counted around a message's own text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Framing {
    /// `OpenAI` Chat Completions, by the published formula: 3 tokens a message and its role, 1 a name, 3 for the
    /// reply's priming (cookbook, "How to count tokens with tiktoken", read 2026-11-21).
    #[default]
    OpenAiChat,
    /// Nothing: texts are priced as they are. For completion models and for tests.
    Plain,
}

/// One entry of the registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    provider: String,
    context_len: u64,
    max_input: Option<u64>,
    max_output: Option<u64>,
    tokenizer: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Registry {
    model: Vec<Entry>,
}

static REGISTRY: LazyLock<Result<Registry, toml::de::Error>> =
    LazyLock::new(|| toml::from_str(include_str!("../config/models.toml")));

impl Model {
    /// The model of this name from the registry; one that is not there gets the configured defaults, and says so.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` when the registry built into the crate cannot be read, which a test rules out.
    pub fn named(name: &str) -> Result<Self, Error> {
        let registry = REGISTRY.as_ref().map_err(|error| {
            Error::new(Repr::ConfigFile { origin: "config/models.toml".into(), detail: error.to_string() })
        })?;
        let undated = without_date(name);
        let known = |wanted: &str| registry.model.iter().find(|entry| entry.name == wanted);
        Ok(match known(name).or_else(|| known(undated)) {
            Some(entry) => Self {
                name: name.into(),
                provider: entry.provider.clone(),
                context_len: Some(entry.context_len),
                max_input: entry.max_input,
                max_output: entry.max_output,
                tokenizer: Some(entry.tokenizer.clone()),
                framing: Framing::OpenAiChat,
                unknown: false,
            },
            None => Self { unknown: true, ..Self::custom(name) },
        })
    }

    /// A model of the caller's own: fill in what is known of it.
    #[must_use]
    pub fn custom(name: &str) -> Self {
        Self {
            name: name.into(),
            provider: "openai".into(),
            context_len: None,
            max_input: None,
            max_output: None,
            tokenizer: None,
            framing: Framing::OpenAiChat,
            unknown: false,
        }
    }

    /// The names in the registry.
    pub fn names() -> impl Iterator<Item = &'static str> {
        REGISTRY.iter().flat_map(|registry| registry.model.iter().map(|entry| entry.name.as_str()))
    }

    /// The limits that hold for one request, and where they come from (rule B2).
    pub(crate) fn limits(&self, asked: RequestLimits, config: &Config) -> (Limits, LimitsSource) {
        let default = &config.model.default;
        let context_len = asked.context_len.or(self.context_len).unwrap_or(default.context_len);
        let max_input = match asked {
            RequestLimits { max_input: Some(limit), .. } => Some(limit),
            RequestLimits { context_len: Some(_), .. } => None,
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
        let source = if asked.context_len.is_some() || asked.prompt_budget.is_some() {
            LimitsSource::Request
        } else if self.context_len.is_some() {
            LimitsSource::Registry
        } else {
            LimitsSource::Default
        };
        (limits, source)
    }
}

/// A name without the date that a snapshot of a model bears: `gpt-4o-2024-08-06` is a `gpt-4o`.
fn without_date(name: &str) -> &str {
    let Some(at) = name.len().checked_sub("-2024-08-06".len()).filter(|at| name.is_char_boundary(*at)) else {
        return name;
    };
    let (model, date) = name.split_at(at);
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if is_date { model } else { name }
}

/// Limits that a request brings itself, in tokens; what is unset comes from the model or the configuration (rule B2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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

    /// Sets the context length.
    #[must_use]
    pub fn context_len(mut self, tokens: u64) -> Self {
        self.context_len = Some(tokens);
        self
    }

    /// Sets the input limit.
    #[must_use]
    pub fn max_input(mut self, tokens: u64) -> Self {
        self.max_input = Some(tokens);
        self
    }

    /// Sets what is kept free for the reply.
    #[must_use]
    pub fn max_completion(mut self, tokens: u64) -> Self {
        self.max_completion = Some(tokens);
        self
    }

    /// Sets what is kept free for what cannot be foreseen.
    #[must_use]
    pub fn safety_buffer(mut self, tokens: u64) -> Self {
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

/// Where the context length came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitsSource {
    /// The request (flags of the command line count as it).
    Request,
    /// The model registry.
    Registry,
    /// The configured defaults.
    Default,
}

impl LimitsSource {
    /// The name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Registry => "registry",
            Self::Default => "default",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(name: &str, asked: RequestLimits) -> (Limits, LimitsSource) {
        Model::named(name).unwrap().limits(asked, &Config::default())
    }

    #[test]
    fn the_registry_is_sound() {
        assert!(Model::names().count() >= 10);
        for name in Model::names() {
            let model = Model::named(name).unwrap();
            let context = model.context_len.unwrap();
            assert!(model.max_output.unwrap() < context, "{name}");
            assert!(model.max_input.is_none_or(|input| input <= context), "{name}");
        }
    }

    #[test]
    fn behaviour_2_missing_figures_fall_back_and_the_source_is_named() {
        let (known, source) = limits("gpt-5", RequestLimits::new());
        assert_eq!((known.max_input, known.max_completion), (Some(272_000), 100_000));
        assert_eq!(source, LimitsSource::Registry);

        let (own, source) = limits("gpt-5", RequestLimits::new().context_len(8_000));
        assert_eq!((own.max_input, own.max_completion, own.safety_buffer), (None, 2_000, 160));
        assert_eq!(source, LimitsSource::Request);

        let (unknown, source) = limits("nobody-7b", RequestLimits::new());
        assert_eq!((unknown.context_len, unknown.max_completion), (128_000, 4_096));
        assert_eq!((unknown.safety_buffer, source), (1_024, LimitsSource::Default));
    }

    #[test]
    fn a_snapshot_is_its_model() {
        assert_eq!(Model::named("gpt-4o-2024-08-06").unwrap().context_len, Some(128_000));
        for name in ["gpt-4o-2024-08-0x", "gpt-4o-20240806", "-2024-08-06", "é2024-08-06"] {
            assert!(Model::named(name).unwrap().unknown, "{name}");
        }
    }

    #[test]
    fn a_max_output_as_large_as_the_window_is_unknown() {
        let mut model = Model::custom("m");
        model.max_output = Some(9_000);
        let asked = RequestLimits::new().context_len(9_000);
        assert_eq!(model.limits(asked, &Config::default()).0.max_completion, 2_250);
    }
}
