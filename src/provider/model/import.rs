//! The conversion of public catalogues to a registry. It reads `LiteLLM`'s price file, models.dev, and a list
//! of flat entries.

use super::{
    CacheKind, CacheRule, ModelEntry, Price, ProviderConstraints, Registry, TokenizerFit, WireFormat,
};
use crate::{
    error::Error,
    text::{plain, size},
};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const LITELLM: &str = "litellm";
const MODELS_DEV: &str = "models.dev";

/// An entry of a flat list. `origin` names the catalogue, which decides the meaning of `context_len`.
#[derive(Deserialize)]
struct Flat {
    model: String,
    provider: String,
    origin: String,
    context_len: Option<Value>,
    max_output: Option<Value>,
    input_price: Option<Value>,
    output_price: Option<Value>,
    cache_read_price: Option<Value>,
    cache_write_price: Option<Value>,
}

/// The figures of a model in one catalogue.
struct Found {
    provider: String,
    context_len: Option<u64>,
    max_input: Option<u64>,
    max_output: Option<u64>,
    price: Option<Price>,
}

impl Found {
    /// Reads an entry of a flat list.
    fn from_flat(entry: Flat) -> Self {
        let context = entry.context_len.as_ref().and_then(tokens);
        let is_input = entry.origin == LITELLM;
        let cost = [entry.input_price, entry.output_price, entry.cache_read_price, entry.cache_write_price];
        Self {
            provider: entry.provider,
            context_len: context.filter(|_| !is_input),
            max_input: context.filter(|_| is_input),
            max_output: entry.max_output.as_ref().and_then(tokens),
            price: price(cost.each_ref().map(Option::as_ref), 1e6),
        }
    }

    /// Reads a model of models.dev. Its prices are in US dollars per million tokens.
    fn from_models_dev(provider: &str, model: &Value) -> Self {
        let (limit, cost) = (&model["limit"], &model["cost"]);
        Self {
            provider: provider.to_owned(),
            context_len: tokens(&limit["context"]),
            max_input: tokens(&limit["input"]),
            max_output: tokens(&limit["output"]),
            price: price(["input", "output", "cache_read", "cache_write"].map(|key| cost.get(key)), 1.0),
        }
    }

    /// Reads a model of `LiteLLM`'s price file. Its context length limits only the input. Returns `None` for
    /// anything else, and for models that do not answer with text.
    fn from_litellm(model: &Value) -> Option<Self> {
        let (provider, mode) = (model["litellm_provider"].as_str()?, &model["mode"]);
        let is_chat = mode.is_null() || ["chat", "responses", "completion"].iter().any(|known| mode == known);
        let cost = [
            "input_cost_per_token",
            "output_cost_per_token",
            "cache_read_input_token_cost",
            "cache_creation_input_token_cost",
        ];
        is_chat.then(|| Self {
            provider: provider.to_owned(),
            context_len: None,
            max_input: tokens(&model["max_input_tokens"]),
            max_output: tokens(&model["max_output_tokens"]),
            price: price(cost.map(|key| model.get(key)), 1e6),
        })
    }
}

impl Registry {
    /// Reads a public catalogue (JSON): `LiteLLM`'s price file, models.dev's `api.json`, or a list of
    /// `{model, provider, origin, context_len, ...}`. `origin` names the file in errors; `date` is the day on
    /// which it was read.
    ///
    /// If several providers serve a model, the figures come from its vendor, or else from the first provider.
    /// `LiteLLM`'s context length becomes `max_input`. It also serves as the context length if no other is
    /// known. If a list contains both catalogues, the context length comes from models.dev, and the smaller
    /// output limit applies.
    ///
    /// Better figures of this registry are kept. Figures of resellers are ignored for a model that this
    /// registry contains. If the catalogue has only an input limit, a larger context length of this registry
    /// applies. To import the catalogue alone, call this method on `Registry::default()`.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` with the position if the JSON has another form, or if it contains no model.
    pub fn import(&self, text: &str, origin: &str, date: &str) -> Result<Self, Error> {
        let mut import = Import::default();
        // Some editors write a byte order mark, which is not valid JSON.
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if start.starts_with('[') {
            import.flat(parse(start, origin)?);
        } else {
            import.catalogue(&parse(start, origin)?);
        }
        let registry = import.finish(self, date);
        if registry.entries().is_empty() {
            let detail = "contains no models; expected LiteLLM's price file, models.dev's api.json, or an \
                          array of {model, provider, origin, context_len}";
            return Err(Error::input(origin, detail));
        }
        Ok(registry)
    }
}

/// Parses a catalogue after a check of its size.
fn parse<'a, T: Deserialize<'a>>(text: &'a str, origin: &str) -> Result<T, Error> {
    // The parser allocates for every value, so their number is limited first.
    size::check(text, size::VALUES).map_err(|excess| {
        Error::input(format!("{origin}:{}", excess.line), size::too_many("a catalogue", size::VALUES))
    })?;
    serde_json::from_str(text).map_err(|error| {
        let place = format!("{origin}:{}:{}", error.line(), error.column());
        let detail = format!(
            "not a catalogue of models ({}); expected LiteLLM's price file or models.dev's api.json",
            plain::without_long_value(&error.to_string())
        );
        Error::input(place, detail)
    })
}

/// The models found so far.
#[derive(Default)]
struct Import {
    /// The first spelling of each name, by the name in lower case.
    names: BTreeMap<String, String>,
    /// The figures of each model by catalogue, with the rank of their provider. A vendor replaces a reseller.
    found: IndexMap<String, BTreeMap<&'static str, (u8, Found)>>,
}

/// The vendors of models, by their names in the catalogues. All other providers resell models.
const VENDORS: [&str; 21] = [
    "openai",
    "anthropic",
    "google",
    "gemini",
    "mistral",
    "deepseek",
    "xai",
    "moonshot",
    "moonshotai",
    "zai",
    "zhipuai",
    "alibaba",
    "dashscope",
    "meta_llama",
    "llama",
    "cohere",
    "cohere_chat",
    "minimax",
    "amazon_nova",
    "inception",
    "ai21",
];

/// The ranks of figures; the lower rank wins.
const VENDOR: u8 = 0;
const RESELLER: u8 = 1;

impl Import {
    /// Adds the entries of a flat list.
    fn flat(&mut self, entries: Vec<Flat>) {
        for entry in entries {
            let catalogue = if entry.origin == LITELLM { LITELLM } else { MODELS_DEV };
            let name = entry.model.clone();
            self.add(&name, catalogue, Found::from_flat(entry));
        }
    }

    /// Adds the values of a catalogue. Each is a model of `LiteLLM` or a provider of models.dev; others are
    /// skipped.
    fn catalogue(&mut self, values: &IndexMap<String, Value>) {
        for (name, value) in values {
            if let Some(models) = value.get("models") {
                for (model, value) in models.as_object().into_iter().flatten() {
                    self.add(model, MODELS_DEV, Found::from_models_dev(name, value));
                }
            } else if let Some(found) = Found::from_litellm(value)
                // An entry that documents the format, not a model.
                && name != "sample_spec"
            {
                self.add(name, LITELLM, found);
            }
        }
    }

    /// Records the figures of a catalogue, if they are the first or come from a better provider.
    fn add(&mut self, name: &str, catalogue: &'static str, found: Found) {
        let bare = name.rsplit('/').next().unwrap_or(name);
        if bare.is_empty() || (found.context_len.is_none() && found.max_input.is_none()) {
            return;
        }
        let rank = if VENDORS.contains(&found.provider.as_str()) { VENDOR } else { RESELLER };
        // Names are compared without case, as in a registry.
        let name = self.names.entry(bare.to_lowercase()).or_insert_with(|| bare.into());
        let known = self.found.entry(name.clone()).or_default();
        // Strictly less, so that the first of several equal providers is kept.
        if known.get(catalogue).is_none_or(|(best, _)| rank < *best) {
            known.insert(catalogue, (rank, found));
        }
    }

    /// Builds the registry. `known` supplies the figures that are better than those of the catalogue.
    fn finish(self, known: &Registry, date: &str) -> Registry {
        let mut registry = Registry::default();
        for (name, catalogues) in self.found {
            let best = catalogues.values().map(|(rank, _)| *rank).min();
            let known = known.entry(&name);
            // A reseller may serve a model with a smaller context window than its vendor does.
            if known.is_some() && best != Some(VENDOR) {
                continue;
            }
            let figures: Vec<(&str, Found)> = catalogues
                .into_iter()
                .filter(|(_, (rank, _))| Some(*rank) == best)
                .map(|(catalogue, (_, found))| (catalogue, found))
                .collect();
            let mut entry = entry(name, &figures, known.and_then(|known| known.context_len), date);
            // An alias that the catalogue lists as a model of its own would be ambiguous.
            if let Some(known) = known.filter(|known| known.name == entry.name) {
                let free = |alias: &&String| !self.names.contains_key(&alias.to_lowercase());
                entry.aliases = known.aliases.iter().filter(free).cloned().collect();
            }
            if entry.first_fault().is_none() {
                registry.push(entry);
            }
        }
        registry
    }
}

/// Builds an entry from the figures of the catalogues: the smallest context length, input limit and output
/// limit, and the first price. If only an input limit is found, `known` is the context length if it is
/// larger.
fn entry(name: String, figures: &[(&str, Found)], known: Option<u64>, date: &str) -> ModelEntry {
    let least = |of: fn(&Found) -> Option<u64>| figures.iter().filter_map(|(_, found)| of(found)).min();
    let max_input = least(|found| found.max_input);
    let contexts_text = least(|found| found.context_len);
    let known = known.filter(|known| contexts_text.is_none() && Some(*known) > max_input);
    let context_len = contexts_text.or(known).or(max_input);
    // A limit that is not below the context length carries no information.
    let below =
        |limit: Option<u64>| limit.filter(|limit| context_len.is_some_and(|context| *limit < context));
    let outputs = figures.iter().filter_map(|(_, found)| below(found.max_output)).min();
    let price = figures.iter().find_map(|(_, found)| found.price.clone());
    let figure =
        |what: &str, limit: Option<u64>| limit.map(|limit| format!(" {what} {limit}")).unwrap_or_default();
    let source_text = |(catalogue, found): &(&str, Found)| {
        format!(
            "{catalogue} {}:{}{}{}",
            found.provider,
            figure("context", found.context_len),
            figure("input", found.max_input),
            figure("output", found.max_output)
        )
    };
    let known_source = known.map(|known| format!("context {known} as known before"));
    let sources: Vec<String> = figures.iter().map(source_text).chain(known_source).collect();
    let provider = figures.first().map(|(_, found)| found.provider.clone()).unwrap_or_default();
    let (tokenizer, counts) = tokenizer(&provider, &name);
    ModelEntry {
        aliases: Vec::new(),
        context_len,
        max_input: below(max_input),
        max_output: outputs,
        tokenizer: Some(tokenizer.into()),
        counts,
        wire_format: wire_format(&provider),
        constraints: ProviderConstraints::default(),
        cache: cache(&provider, &name, price.as_ref()),
        thinking: None,
        price,
        source: sources.join("; "),
        date: date.into(),
        provider,
        name,
    }
}

/// Returns a number of tokens, or `None` for any other value that a catalogue has in its place.
#[expect(clippy::cast_sign_loss, reason = "it is 1 or more")]
fn tokens(figure: &Value) -> Option<u64> {
    // Numbers of a catalogue are integers far below 2^53. Any other number is not a token count.
    figure.as_f64().filter(|n| (1.0..=9e15).contains(n)).map(|n| n as u64)
}

/// Returns the price, or `None` unless input and output are known. `scale` converts a figure to US dollars
/// per million tokens.
fn price(figures: [Option<&Value>; 4], scale: f64) -> Option<Price> {
    let [input, output, cache_read, cache_write] = figures.map(|figure| {
        // Rounded to a millionth of a dollar, so that 4.0000000000000003e-07 becomes 0.4.
        let rounded = |n: f64| (n * scale * 1e6).round() / 1e6;
        figure?.as_f64().filter(|n| n.is_finite() && *n >= 0.0).map(rounded)
    });
    let some = |price: Option<f64>| price.filter(|price| *price > 0.0);
    let price = Price::new(input?, output?);
    Some(Price { cache_read: some(cache_read), cache_write: some(cache_write), ..price })
}

/// Returns the tokenizer of a model by its provider and name, and how well it fits.
fn tokenizer(provider: &str, name: &str) -> (&'static str, TokenizerFit) {
    let older =
        ["gpt-4-", "gpt-3.5", "gpt-35"].iter().any(|start| name.starts_with(start)) || name == "gpt-4";
    match (provider.contains("openai") || provider.contains("azure"), older) {
        (true, true) => ("cl100k_base", TokenizerFit::Exact),
        (true, false) if ["gpt-", "o1", "o3", "o4", "codex-"].iter().any(|start| name.starts_with(start)) => {
            ("o200k_base", TokenizerFit::Exact)
        }
        _ => ("o200k_base", TokenizerFit::Estimate),
    }
}

/// Returns the wire format of a provider's models.
fn wire_format(provider: &str) -> WireFormat {
    if provider.contains("anthropic") {
        WireFormat::Anthropic
    } else if ["google", "gemini"].iter().any(|name| provider.contains(name)) {
        WireFormat::Gemini
    } else {
        WireFormat::OpenAiChat
    }
}

/// Returns the cache rule of a model, or `None` if its price has no cached input. The figures are those of
/// the built-in registry.
fn cache(provider: &str, name: &str, price: Option<&Price>) -> Option<CacheRule> {
    price?.cache_read?;
    let rule = |rule, min_tokens, step| Some(CacheRule { rule, min_tokens, step });
    match wire_format(provider) {
        WireFormat::Anthropic => rule(CacheKind::Anthropic, Some(1024), None),
        _ if provider == "openai" && name.starts_with("gpt-5.6") => {
            rule(CacheKind::Breakpoints, Some(1024), None)
        }
        _ if provider == "openai" => rule(CacheKind::Blocks, Some(1024), Some(128)),
        _ => rule(CacheKind::Implicit, None, None),
    }
}
