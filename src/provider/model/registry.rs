//! Models by name: `config/models.toml`, and files of the same form that a user brings.

use super::{
    CacheRule, EditingRule, MismatchSwitch, Model, OnDemandRule, Price, ProviderConstraints, ThinkingRule,
    WireFormat, constraints::ProviderEntry, form::Form,
};
use crate::{
    error::{Error, Repr, Snippet},
    provider::media_prices::{MediaPrices, MediaTable},
    text::{file, plain},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::Range, path::Path, sync::LazyLock};

/// The most bytes of a registry file: all models of both public catalogues take half a megabyte.
const MOST: u64 = 16 << 20;

/// What is known of one model: one `[[model]]` of a registry file. Lengths are in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Its name.
    pub name: String,
    /// Who makes or serves it (default: `openai`).
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
    /// Whether that is its own.
    #[serde(default, skip_serializing_if = "TokenizerFit::is_exact")]
    pub(crate) counts: TokenizerFit,
    /// The wire format it is spoken to in.
    #[serde(default)]
    pub wire_format: WireFormat,
    /// What it demands beyond what its wire format and its provider do.
    #[serde(default, skip_serializing_if = "ProviderConstraints::is_none")]
    pub constraints: ProviderConstraints,
    /// How its provider caches prompts, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheRule>,
    /// What its provider checks of the reasoning that goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingRule>,
    /// What it costs, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Where the figures come from; where two differ, both.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When they were read: year, month and day.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
}

fn openai() -> String {
    "openai".into()
}

/// Whether a tokenizer counts as the model does.
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

/// Models by name.
///
/// ```
/// use context_window::Registry;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let own = Registry::from_toml(
///     "[[model]]\nname = \"in-house\"\ncontext_len = 32_000\nmax_output = 4_000\ntokenizer = \"bytes\"\n",
///     "models.toml",
/// )?;
/// let registry = Registry::built_in()?.clone().over(&own);
/// assert_eq!(registry.model("in-house").tokenizer.as_deref(), Some("bytes"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Registry {
    model: Vec<ModelEntry>,
}

/// The form of a registry file, with the place of each entry for errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<toml::Spanned<ModelEntry>>,
}

/// The form of the file that is built in: models, wire formats, and what providers demand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuiltInFile {
    #[serde(default)]
    newer: Vec<Newer>,
    #[serde(default)]
    mismatch_switch: BTreeMap<WireFormat, MismatchSwitch>,
    #[serde(default)]
    on_demand_compaction: BTreeMap<String, OnDemandRule>,
    #[serde(default)]
    late_tools: BTreeMap<WireFormat, LateToolsRule>,
    #[serde(default)]
    context_editing: BTreeMap<String, EditingRule>,
    media: MediaTable,
    wire_format: BTreeMap<WireFormat, Form>,
    provider: BTreeMap<String, ProviderEntry>,
    model: Vec<toml::Spanned<ModelEntry>>,
}

/// How tools are added at the end of a prompt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LateToolsRule {
    /// A header that has to be sent: name and value.
    header: (String, String),
}

/// What is taken to hold for models of a family that are newer than the registry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Newer {
    /// How their names begin.
    begins: String,
    /// The first version that it holds for: major and minor.
    from: (u32, u32),
    thinking: ThinkingRule,
}

struct BuiltIn {
    newer: Vec<Newer>,
    mismatch_switch: BTreeMap<WireFormat, MismatchSwitch>,
    on_demand_compaction: BTreeMap<String, OnDemandRule>,
    late_tools: BTreeMap<WireFormat, LateToolsRule>,
    context_editing: BTreeMap<String, EditingRule>,
    registry: Registry,
    media: MediaTable,
    wire_format: BTreeMap<WireFormat, Form>,
    provider: BTreeMap<String, ProviderEntry>,
}

static BUILT_IN: LazyLock<Result<BuiltIn, Error>> = LazyLock::new(|| {
    let (text, origin) = (include_str!("../../../config/models.toml"), "config/models.toml");
    let file: BuiltInFile = toml::from_str(text).map_err(|error| unreadable(text, origin, &error))?;
    let BuiltInFile {
        newer,
        mismatch_switch,
        on_demand_compaction,
        late_tools,
        context_editing,
        media,
        wire_format,
        provider,
        model,
    } = file;
    Ok(BuiltIn {
        newer,
        mismatch_switch,
        on_demand_compaction,
        late_tools,
        context_editing,
        registry: Registry::of(model, text, origin)?,
        media,
        wire_format,
        provider,
    })
});

/// What is wrong in the text of a registry file, and where.
fn fault(text: &str, origin: &str, detail: String, span: Range<usize>) -> Error {
    let snippet = Snippet::of(text, span);
    let place = format!("{origin}:{}:{}", snippet.line, snippet.column);
    Error::new(Repr::ConfigValue { place, detail, snippet })
}

fn unreadable(text: &str, origin: &str, error: &toml::de::Error) -> Error {
    fault(text, origin, plain::words(error.message()), error.span().unwrap_or_default())
}

impl Form {
    /// The figures and demands of a wire format.
    pub(crate) fn of(wire_format: WireFormat) -> Self {
        let built_in = BUILT_IN.as_ref().ok();
        built_in.and_then(|file| file.wire_format.get(&wire_format)).copied().unwrap_or_default()
    }
}

/// What a provider's models demand in a wire format.
pub(super) fn provider_constraints(provider: &str, wire_format: WireFormat) -> ProviderConstraints {
    let built_in = BUILT_IN.as_ref().ok();
    let entry = built_in.and_then(|file| file.provider.get(provider));
    entry.filter(|entry| entry.wire_format == wire_format).map(|entry| entry.constraints).unwrap_or_default()
}

impl Registry {
    /// The models that this crate knows.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` when the file built into the crate cannot be read, which a test rules out.
    pub fn built_in() -> Result<&'static Self, Error> {
        BUILT_IN.as_ref().map(|file| &file.registry).map_err(|error| {
            let (origin, detail) = ("config/models.toml".into(), error.to_string());
            Error::new(Repr::ConfigFile { origin, detail })
        })
    }

    /// Reads a registry file; `origin` names it in errors.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` with line, column, caret and what is allowed: for TOML that cannot be read, unknown keys,
    /// names used twice and figures that cannot be.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, Error> {
        let file: File = toml::from_str(text).map_err(|error| unreadable(text, origin, &error))?;
        Self::of(file.model, text, origin)
    }

    /// The registry of these entries of a text.
    fn of(entries: Vec<toml::Spanned<ModelEntry>>, text: &str, origin: &str) -> Result<Self, Error> {
        let mut registry = Self::default();
        for entry in entries {
            let span = entry.span();
            let entry = entry.into_inner();
            let wrong = entry.fault().or_else(|| registry.clash(&entry));
            if let Some(detail) = wrong {
                let name = plain::short(&entry.name);
                return Err(fault(text, origin, format!("model `{name}`: {detail}"), span));
            }
            registry.model.push(entry);
        }
        Ok(registry)
    }

    /// Reads a registry file from disk.
    ///
    /// # Errors
    ///
    /// As [`Registry::from_toml`], and when the file cannot be read.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let origin = path.display().to_string();
        let text = file::text(path, MOST, "models in TOML, written by hand or by `models import`");
        let text = text.map_err(|detail| Error::new(Repr::ConfigFile { origin: origin.clone(), detail }))?;
        Self::from_toml(&text, &origin)
    }

    /// These models over those of another registry: where both know a name, this one's entry holds.
    #[must_use]
    pub fn over(mut self, other: &Self) -> Self {
        // A catalogue says nothing of what a model demands.
        for own in &mut self.model {
            let Some(known) = other.entry(&own.name).filter(|known| known.wire_format == own.wire_format)
            else {
                continue;
            };
            if own.constraints.is_none() {
                own.constraints = known.constraints;
            }
            own.thinking = own.thinking.take().or_else(|| known.thinking.clone());
        }
        let known =
            |entry: &&ModelEntry| !self.model.iter().any(|own| own.name.eq_ignore_ascii_case(&entry.name));
        let others: Vec<ModelEntry> = other.model.iter().filter(known).cloned().collect();
        self.model.extend(others);
        self
    }

    /// All entries, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[ModelEntry] {
        &self.model
    }

    /// The entry of a name: as it is, without what a provider's catalogue puts before it (`openai/gpt-5`), without the
    /// date of a snapshot (`gpt-4o-2024-08-06`, `claude-sonnet-4-5-20250929`), in any case.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&ModelEntry> {
        let bare = name.rsplit('/').next().unwrap_or(name);
        [name, bare, without_date(bare)].into_iter().find_map(|name| {
            let is = |known: &str| known.eq_ignore_ascii_case(name);
            self.model.iter().find(|entry| is(&entry.name) || entry.aliases.iter().any(|alias| is(alias)))
        })
    }

    /// The model of this name; one that is not known gets the configured defaults, and says so.
    #[must_use]
    pub fn model(&self, name: &str) -> Model {
        let Some(entry) = self.entry(name) else {
            let near = self.nearest(name).map(str::to_owned);
            let thinking = newer(name);
            return Model { unknown: true, estimated: true, near, thinking, ..Model::custom(name) };
        };
        Model {
            name: name.into(),
            provider: entry.provider.clone(),
            context_len: entry.context_len,
            max_input: entry.max_input,
            max_output: entry.max_output,
            tokenizer: entry.tokenizer.clone(),
            wire_format: entry.wire_format,
            constraints: entry.constraints,
            cache: entry.cache,
            thinking: entry.thinking.clone(),
            price: entry.price.clone(),
            estimated: entry.is_estimated(),
            unknown: false,
            ..Model::custom(name)
        }
    }

    /// The known name nearest to this one, if it may be what was meant.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let bare = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        let names = || self.model.iter().map(|entry| entry.name.as_str());
        // The beginning of a name is meant for the shortest that begins so.
        let begun = || {
            names()
                .filter(|known| bare.len() >= 4 && known.starts_with(&bare))
                .min_by_key(|known| known.len())
        };
        plain::nearest(&bare, names()).or_else(begun)
    }

    /// The registry as the text of a file.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` for numbers that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| Error::config("model", error, "numbers that TOML can hold"))
    }

    /// What is wrong with the names of a further entry.
    fn clash(&self, entry: &ModelEntry) -> Option<String> {
        let mut names = std::iter::once(&entry.name).chain(&entry.aliases);
        let taken = names.find(|name| {
            let is = |known: &String| known.eq_ignore_ascii_case(name);
            self.model.iter().any(|known| is(&known.name) || known.aliases.iter().any(is))
        })?;
        let taken = plain::short(taken);
        Some(format!("the name `{taken}` is used twice; expected one entry for each"))
    }

    pub(super) fn push(&mut self, entry: ModelEntry) {
        self.model.push(entry);
    }
}

impl ModelEntry {
    /// Whether counts for this model are estimates: its tokenizer replaces another one or is not known, or nobody
    /// publishes what its wire format adds.
    #[must_use]
    pub fn is_estimated(&self) -> bool {
        let published = matches!(self.wire_format, WireFormat::OpenAiChat | WireFormat::Plain);
        self.counts == TokenizerFit::Estimate || self.tokenizer.is_none() || !published
    }

    /// What cannot be, if anything.
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

/// How a request of a wire format asks its provider to leave out what it would refuse; none where there is no way.
pub(super) fn mismatch_switch(wire_format: WireFormat) -> Option<MismatchSwitch> {
    BUILT_IN.as_ref().ok()?.mismatch_switch.get(&wire_format).cloned()
}

/// How a provider is asked to compact; none where it is not.
pub(super) fn on_demand_compaction(provider: &str) -> Option<OnDemandRule> {
    BUILT_IN.as_ref().ok()?.on_demand_compaction.get(provider).cloned()
}

/// The header that tools at the end of a prompt need in a wire format; none where they need none.
pub(super) fn late_tools_header(wire_format: WireFormat) -> Option<(String, String)> {
    Some(BUILT_IN.as_ref().ok()?.late_tools.get(&wire_format)?.header.clone())
}

/// What a provider edits of a prompt by itself; none where it does not.
pub(super) fn context_editing(provider: &str) -> Option<EditingRule> {
    BUILT_IN.as_ref().ok()?.context_editing.get(provider).cloned()
}

/// The prices of media for a model: by the name of its entry, else by the name as it was given.
pub(super) fn media_prices(model: &Model) -> MediaPrices {
    let prices = |built_in: &BuiltIn| {
        let entry = built_in.registry.entry(&model.name);
        let bare = without_date(model.name.rsplit('/').next().unwrap_or(&model.name));
        let name = entry.map_or(bare, |entry| &entry.name).to_ascii_lowercase();
        built_in.media.prices(&name, version(&name), model.wire_format)
    };
    BUILT_IN.as_ref().ok().and_then(prices).unwrap_or_else(MediaPrices::none)
}

/// What is taken to hold for a model that is not known, by its family and version.
fn newer(name: &str) -> Option<ThinkingRule> {
    let name = without_date(name.rsplit('/').next().unwrap_or(name)).to_ascii_lowercase();
    let of_family = |newer: &&Newer| name.starts_with(&newer.begins) && version(&name) >= Some(newer.from);
    BUILT_IN.as_ref().ok()?.newer.iter().find(of_family).map(|newer| newer.thinking.clone())
}

/// The first number of a name, and the one right behind it: `claude-fable-5-3` is version 5.3.
fn version(name: &str) -> Option<(u32, u32)> {
    let at = name.find(|c: char| c.is_ascii_digit())?;
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        (text[..end].parse().ok(), text[end..].to_owned())
    };
    let (major, rest) = number(&name[at..]);
    let minor = rest.strip_prefix(['-', '.']).and_then(|rest| number(rest).0);
    Some((major?, minor.unwrap_or(0)))
}

/// A name without the date that a snapshot of a model bears: `gpt-4o-2024-08-06` is a `gpt-4o`.
fn without_date(name: &str) -> &str {
    ["-2024-08-06", "-20240806", "@20240806"]
        .into_iter()
        .find_map(|like| {
            let at = name.len().checked_sub(like.len()).filter(|at| *at > 0 && name.is_char_boundary(*at))?;
            let (model, date) = name.split_at(at);
            let same = |(byte, like): (u8, u8)| {
                if like.is_ascii_digit() { byte.is_ascii_digit() } else { byte == like }
            };
            date.bytes().zip(like.bytes()).all(same).then_some(model)
        })
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wire format without a table would count nothing around texts and demand nothing.
    #[test]
    fn each_wire_format_has_a_table() {
        let tables: Vec<WireFormat> = BUILT_IN.as_ref().unwrap().wire_format.keys().copied().collect();
        let mut all = WireFormat::ALL.to_vec();
        all.sort_unstable();
        assert_eq!(tables, all);
    }

    #[test]
    fn the_built_in_registry_is_sound() {
        let registry = Registry::built_in().unwrap();
        assert!(registry.entries().len() >= 80, "{} models", registry.entries().len());
        for entry in registry.entries() {
            let context = entry.context_len.unwrap();
            assert!(entry.max_output.is_none_or(|most| most < context), "{}", entry.name);
            assert!(entry.max_input.is_none_or(|most| most < context), "{}", entry.name);
            assert!(!entry.source.is_empty() && entry.date.starts_with("2026-"), "{}", entry.name);
            assert!(entry.tokenizer.is_some(), "{}", entry.name);
        }
        let providers: std::collections::BTreeSet<&str> =
            registry.entries().iter().map(|entry| entry.provider.as_str()).collect();
        for provider in
            ["openai", "anthropic", "google", "mistral", "meta", "alibaba", "deepseek", "moonshot", "zai"]
        {
            assert!(providers.contains(provider), "nothing of {provider}");
        }
    }

    #[test]
    fn an_input_limit_is_no_context_length() {
        let entry = Registry::built_in().unwrap().entry("gpt-5").unwrap();
        assert_eq!((entry.context_len, entry.max_input), (Some(400_000), Some(272_000)));
        assert_eq!(entry.max_output, Some(128_000));
    }

    #[test]
    fn a_snapshot_is_its_model() {
        let registry = Registry::built_in().unwrap();
        for name in
            ["gpt-4o-2024-08-06", "openai/gpt-4o", "openrouter/openai/GPT-4o-20240806", "gpt-4o@20240806"]
        {
            assert_eq!(registry.entry(name).map(|entry| entry.name.as_str()), Some("gpt-4o"), "{name}");
        }
        for name in ["gpt-4o-2024-08-0x", "-2024-08-06", "é2024-08-06", "", "/"] {
            assert!(registry.entry(name).is_none(), "{name}");
        }
        assert_eq!(registry.nearest("gpt4o"), Some("gpt-4o"));
        assert_eq!(registry.nearest("claude-sonet-4-5"), Some("claude-sonnet-4-5"));
        assert_eq!(registry.nearest("nobody-7b-instruct"), None);
    }

    #[test]
    fn a_registry_survives_being_written() {
        let registry = Registry::built_in().unwrap();
        let text = registry.to_toml().unwrap();
        assert_eq!(&Registry::from_toml(&text, "again").unwrap(), registry);
    }

    #[test]
    fn the_users_entry_holds() {
        let text = "[[model]]\nname = \"gpt-4o\"\nprovider = \"me\"\ncontext_len = 9\nsource = \"me\"\ndate = \"today\"\n";
        let own = Registry::from_toml(text, "own.toml").unwrap();
        let both = own.over(Registry::built_in().unwrap());
        assert_eq!(both.entry("gpt-4o").unwrap().provider, "me");
        assert!(both.entry("gpt-5").is_some());
    }
}
