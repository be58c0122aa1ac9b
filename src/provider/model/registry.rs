//! Models by name: `config/models.toml`, and files of the same form that a user provides.

use super::{
    Model, ModelEntry, built_in, fault,
    names::{Reading, dashed},
};
use crate::{
    error::{Error, Repr},
    text::{file, plain},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path, sync::LazyLock};

/// The maximum size in bytes of a registry file. All models of both public catalogues take half a megabyte.
const MOST: u64 = 16 << 20;

/// The number of readings of an unknown name for which a similar name is searched.
const HINTS: usize = 8;

/// A set of models by name.
///
/// ```
/// use context_window::Registry;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let own = Registry::from_toml(
///     "[[model]]\nname = \"in-house\"\ncontext_len = 32_000\nmax_output = 4_000\ntokenizer = \"bytes\"\n",
///     "models.toml",
/// )?;
/// let registry = Registry::built_in()?.clone().with_fallback(&own);
/// assert_eq!(registry.model("in-house").tokenizer.as_deref(), Some("bytes"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Registry {
    model: Vec<ModelEntry>,
    /// The index of each entry by name and alias, in lower case.
    #[serde(skip)]
    by_name: BTreeMap<String, usize>,
    /// The same index with dashes for dots.
    #[serde(skip)]
    by_dashed_name: BTreeMap<String, usize>,
}

/// The contents of a registry file, with the position of each entry for errors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<toml::Spanned<ModelEntry>>,
}

static BUILT_IN: LazyLock<Result<Registry, Error>> =
    LazyLock::new(|| Registry::from_entries(built_in::entries()?, built_in::TEXT, built_in::ORIGIN));

/// Returns the name of the built-in entry for a name in use, or the name itself if there is none.
pub(super) fn known_name(name: &str) -> &str {
    let entry = Registry::built_in().ok().and_then(|registry| registry.entry(name));
    entry.map_or(name, |entry| &entry.name)
}

impl Registry {
    /// Returns the built-in registry.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Config` if the built-in file is invalid. A test ensures that it is valid.
    pub fn built_in() -> Result<&'static Self, Error> {
        BUILT_IN.as_ref().map_err(|error| {
            let (origin, detail) = (built_in::ORIGIN.into(), error.to_string());
            Error::new(Repr::ConfigFile { origin, detail })
        })
    }

    /// Parses a registry file; `origin` names it in errors.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Config` with line, column, caret and the allowed values. The causes are invalid
    /// TOML, unknown keys, duplicate names and impossible figures.
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, Error> {
        let file: File = toml::from_str(text).map_err(|error| fault::unreadable(text, origin, &error))?;
        Self::from_entries(file.model, text, origin)
    }

    /// Builds the registry of the given entries. `text` is their file, for errors.
    fn from_entries(
        entries: Vec<toml::Spanned<ModelEntry>>,
        text: &str,
        origin: &str,
    ) -> Result<Self, Error> {
        let mut registry = Self::default();
        for entry in entries {
            let span = entry.span();
            let entry = entry.into_inner();
            let wrong = entry.fault().or_else(|| registry.clash(&entry));
            if let Some(detail) = wrong {
                let name = plain::short(&entry.name);
                return Err(fault::at(text, origin, format!("model `{name}`: {detail}"), span));
            }
            registry.push(entry);
        }
        Ok(registry)
    }

    /// Reads a registry file from disk.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Registry::from_toml`], and an error if the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        let text = file::text(path, MOST, "models in TOML, written by hand or by `models import`");
        let text = text.map_err(|detail| Error::new(Repr::ConfigFile { origin: origin.clone(), detail }))?;
        Self::from_toml(&text, &origin)
    }

    /// Adds the models of another registry that this one lacks. If both contain a name, the entry of this
    /// registry is used.
    #[must_use]
    pub fn with_fallback(mut self, other: &Self) -> Self {
        // Entries of a catalogue have neither constraints nor reasoning rules, so they take those of the
        // other registry.
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
        // O(n * m) comparisons. Registries have at most a few thousand entries, and this runs once.
        for entry in &other.model {
            if !self.model.iter().any(|own| own.name.eq_ignore_ascii_case(&entry.name)) {
                self.push(entry.clone());
            }
        }
        self
    }

    /// Returns all entries, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[ModelEntry] {
        &self.model
    }

    /// Returns the entry of a name, or of a name that the name rules derive from it (model names, rule B7).
    /// They remove a provider in front (`openai/gpt-5`, `us.anthropic.claude-sonnet-4-5-20250929-v1:0`) and a
    /// date, version or variant at the end (`gpt-4o-2024-08-06`, `gpt-oss-120b:free`). Dots equal dashes, and
    /// case does not matter. Returns `None` if no rule leads to an entry.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&ModelEntry> {
        self.find(name, &built_in::readings(name)).map(|(entry, _)| entry)
    }

    /// Returns the entry of a name, and the context length that the name sets, if any.
    fn find(&self, name: &str, readings: &[Reading]) -> Option<(&ModelEntry, Option<u64>)> {
        // The exact name comes first, because a user's file may contain any names, even too long ones.
        let own = self.by_name.get(&name.to_ascii_lowercase()).map(|at| (&self.model[*at], None));
        own.or_else(|| {
            readings.iter().find_map(|Reading { name, context_len, .. }| {
                // An exact match wins over one that differs in dots and dashes, which may be another model.
                let exact = self.by_name.get(name.as_str());
                let at = exact.or_else(|| self.by_dashed_name.get(&*dashed(name)))?;
                Some((&self.model[*at], *context_len))
            })
        })
    }

    /// Returns the model with this name. An unknown name gets the configured defaults, and plans then have a
    /// notice.
    #[must_use]
    pub fn model(&self, name: &str) -> Model {
        let readings = built_in::readings(name);
        let Some((entry, set)) = self.find(name, &readings) else {
            let near = self.nearest(name).map(str::to_owned);
            // A newer model of a known family probably checks reasoning like its predecessors.
            let thinking = built_in::newer(&readings);
            return Model { unknown: true, estimated: true, near, thinking, ..Model::custom(name) };
        };
        Model {
            name: name.into(),
            provider: entry.provider.clone(),
            context_len: set.or(entry.context_len),
            // The registry's input limit belongs to its context length, so it does not apply to another one.
            max_input: entry.max_input.filter(|_| set.is_none()),
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

    /// Returns the most similar known name, or `None` if none is similar enough.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let readings = built_in::readings(name);
        readings.iter().take(HINTS).find_map(|reading| self.nearest_to(&reading.name))
    }

    fn nearest_to(&self, name: &str) -> Option<&str> {
        let bare = name.rsplit('/').next().unwrap_or(name);
        let names = || self.model.iter().map(|entry| entry.name.as_str());
        // A prefix of several names probably means the shortest one.
        let begun = || {
            names().filter(|known| bare.len() >= 4 && known.starts_with(bare)).min_by_key(|known| known.len())
        };
        plain::nearest(bare, names()).or_else(begun)
    }

    /// Returns the registry in the TOML form of a registry file.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Config` for numbers that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(self)
            .map_err(|error| Error::config("model", error, "numbers that TOML can represent"))
    }

    /// Returns the error text if a name of the entry is already in use.
    fn clash(&self, entry: &ModelEntry) -> Option<String> {
        let mut names = std::iter::once(&entry.name).chain(&entry.aliases);
        let taken = names.find(|name| self.by_name.contains_key(&name.to_ascii_lowercase()))?;
        let taken = plain::short(taken);
        Some(format!("the name `{taken}` is used twice; expected one entry for each"))
    }

    /// Adds an entry. The first entry with a name keeps it.
    pub(super) fn push(&mut self, entry: ModelEntry) {
        let at = self.model.len();
        for name in std::iter::once(&entry.name).chain(&entry.aliases) {
            self.by_name.entry(name.to_ascii_lowercase()).or_insert(at);
            self.by_dashed_name.entry(dashed(name).into_owned()).or_insert(at);
        }
        self.model.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_misspelt_name_has_a_hint() {
        let registry = Registry::built_in().unwrap();
        assert_eq!(registry.nearest("gpt4o"), Some("gpt-4o"));
        assert_eq!(registry.nearest("claude-sonet-4-5"), Some("claude-sonnet-4-5"));
        assert_eq!(registry.nearest("nobody-7b-instruct"), None);
    }

    #[test]
    fn no_two_entries_differ_in_dots_and_dashes_alone() {
        let registry = Registry::built_in().unwrap();
        for (at, entry) in registry.entries().iter().enumerate() {
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                assert_eq!(registry.by_dashed_name[&*dashed(name)], at, "{name}");
            }
        }
    }

    #[test]
    fn a_model_reads_its_own_reasoning_under_another_name() {
        let model = Registry::built_in().unwrap().model("us.anthropic.claude-fable-5-2-v1:0");
        let rule = model.thinking.clone().unwrap();
        for (by, reads) in [
            ("us.anthropic.claude-fable-5-2-v1:0", true),
            ("claude-fable-5.2[1m]", true),
            ("anthropic/claude-fable-5-2", true),
            ("gpt-5", false),
            ("nobody-7b", false),
        ] {
            assert_eq!(model.reads(&rule, by), reads, "{by}");
        }
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
        let both = own.with_fallback(Registry::built_in().unwrap());
        assert_eq!(both.entry("gpt-4o").unwrap().provider, "me");
        assert!(both.entry("gpt-5").is_some());
    }
}
