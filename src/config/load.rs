//! Options in layers. Later layers override earlier ones, and each value remembers its origin.

use super::{Config, fault::Fault, presets, shares};
use crate::{
    error::{Error, Repr, Snippet},
    text::{file, plain},
};
use serde::Deserialize;
use std::{collections::BTreeMap, ops::Range, path::Path, sync::LazyLock};
use toml::de::{DeTable, DeValue};

/// The prefix of this crate's environment variables.
const ENVIRONMENT: &str = "CONTEXT_WINDOW_";

/// Maximum bytes of a configuration file.
const MAX_BYTES: u64 = 1 << 20;

/// Variables that are not options: those of the tests, and the path of the configuration file.
const NOT_OPTIONS: [&str; 6] = ["DATA", "TOKENIZERS", "BODIES", "PAGES", "SKIPPED", "CONFIG"];

/// Options in layers: defaults, then a preset, then each added layer. Later layers override earlier ones.
///
/// ```
/// let loaded = context_window::config::ConfigLayers::new()
///     .with_text("mine.toml", "preset = \"agent\"\n[rag]\nmax_items = 5\n")
///     .with_pairs("flag --set", [("rag.max_items", "7")])
///     .load()?;
/// assert_eq!(loaded.config.rag.max_items, Some(7));
/// assert_eq!(loaded.origin("rag.max_items"), "flag --set rag.max_items");
/// # Ok::<(), context_window::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ConfigLayers {
    layers: Vec<Layer>,
}

/// Merged options with the origin of each value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoadedConfig {
    /// The options.
    pub config: Config,
    layers: Vec<Layer>,
    /// The layer and the position of each key that was set.
    places: BTreeMap<String, Found>,
}

/// One source of options as TOML text.
#[derive(Debug, Clone)]
struct Layer {
    /// The name in errors and origins.
    name: String,
    text: String,
    /// True for a file or text, whose errors have line numbers. False for a single value.
    has_lines: bool,
}

/// The position of a value.
#[derive(Debug, Clone)]
struct Found {
    /// The index of the layer.
    layer: usize,
    /// The byte range in the layer's text.
    span: Range<usize>,
}

impl ConfigLayers {
    /// Creates layers with only the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds TOML text. `name` is used in errors and origins.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: impl Into<String>) -> Self {
        self.layers.push(Layer { name: name.into(), text: text.into(), has_lines: true });
        self
    }

    /// Adds a TOML file.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` if the file cannot be read or is not UTF-8.
    pub fn with_file(self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        let text = file::read_text(path, MAX_BYTES, "options in TOML");
        let text = text.map_err(|detail| Error::new(Repr::ConfigFile { origin: origin.clone(), detail }))?;
        Ok(self.with_text(&origin, text))
    }

    /// Adds single values by dotted keys: `("rag.max_items", "7")`. A value is TOML or a bare word. `name`
    /// and the key are used in errors and origins.
    #[must_use]
    pub fn with_pairs<K: AsRef<str>, V: AsRef<str>>(
        mut self,
        name: &str,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        for (key, value) in pairs {
            let key = key.as_ref();
            let full = if names(name, key) { name.to_owned() } else { format!("{name} {key}") };
            self.layers.push(pair(full, key, value.as_ref()));
        }
        self
    }

    /// Adds the variables whose names start with `CONTEXT_WINDOW_`, and ignores others.
    /// `CONTEXT_WINDOW_RAG__MAX_ITEMS=7` sets `rag.max_items`.
    #[must_use]
    pub fn with_environment<K: AsRef<str>, V: AsRef<str>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let ours = variables.into_iter().filter_map(|(name, value)| {
            let key = name.as_ref().strip_prefix(ENVIRONMENT)?;
            let option = !NOT_OPTIONS.contains(&key);
            option.then(|| {
                (name.as_ref().to_owned(), key.to_lowercase().replace("__", "."), value.as_ref().to_owned())
            })
        });
        // Sorted, because the order of environment variables is arbitrary and later layers override earlier
        // ones.
        let mut ours: Vec<(String, String, String)> = ours.collect();
        ours.sort();
        for (name, key, value) in ours {
            self.layers.push(pair(format!("environment {name}"), &key, &value));
        }
        self
    }

    /// Merges the layers and validates the result.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Config` for invalid TOML, unknown keys and presets, wrong types and values out of range.
    /// The error shows the file, the line, the key, a caret and the allowed values.
    pub fn load(mut self) -> Result<LoadedConfig, Error> {
        self.add_preset()?;
        let mut merged = toml::Table::new();
        let mut places = BTreeMap::new();
        for (number, layer) in self.layers.iter().enumerate() {
            // Each layer is checked alone first, so that an error names the layer and the line.
            layer.check()?;
            merge(&mut merged, layer.table()?);
            layer.places(number, &mut places)?;
        }
        // Serialised to text and parsed again to reuse the deserialiser of a layer. Another deserialiser type
        // would compile the code of all options a second time.
        let config: Config = toml::from_str(&merged.to_string())
            .map_err(|error| Error::config("(all)", error.message(), "options that fit together"))?;
        let loaded = LoadedConfig { config, layers: self.layers, places };
        match loaded.config.check() {
            Ok(()) => Ok(loaded),
            Err(fault) => Err(loaded.fault_error(&fault)),
        }
    }

    /// Inserts the preset below all layers. The last layer with a preset determines it.
    fn add_preset(&mut self) -> Result<(), Error> {
        let mut chosen = None;
        for layer in &self.layers {
            let table = layer.parsed()?;
            if let Some(value) = table.get_ref().get("preset")
                && let DeValue::String(name) = value.get_ref()
            {
                let Some(text) = presets::text(name) else {
                    let near = plain::nearest(name, presets::names());
                    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    let names: Vec<&str> = presets::names().collect();
                    let name = plain::short(name);
                    let detail = format!("unknown preset `{name}`; expected {}{near}", names.join(", "));
                    return Err(layer.error("preset", &detail, value.span()));
                };
                chosen = Some((format!("preset {name}"), text));
            }
        }
        if let Some((name, text)) = chosen {
            self.layers.insert(0, Layer { name, text: text.into(), has_lines: true });
        }
        Ok(())
    }
}

impl LoadedConfig {
    /// Returns every key in the order of `config/default.toml`, including keys that are unset by default.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        KEYS.iter().map(String::as_str)
    }

    /// Returns the origin of a key's value: `default`, a file and line, a preset and line, a variable or a
    /// flag.
    #[must_use]
    pub fn origin(&self, key: &str) -> String {
        let Some(found) = self.places.get(key) else { return "default".into() };
        let layer = &self.layers[found.layer];
        let line = Snippet::line_of(&layer.text, found.span.start);
        if layer.has_lines { format!("{}:{line}", layer.name) } else { layer.name.clone() }
    }

    /// Creates the error for a value out of range, at the place that set the last of the fault's keys.
    fn fault_error(&self, fault: &Fault) -> Error {
        let places = fault.keys.iter().filter_map(|key| Some((self.places.get(*key)?, *key)));
        // The later layer decides, and within a layer the later position.
        let last = places.max_by_key(|(found, _)| (found.layer, found.span.start));
        let detail = format!("{}; expected {}", fault.found, fault.expected);
        match last {
            Some((found, key)) => self.layers[found.layer].error(key, &detail, found.span.clone()),
            None => Error::config(fault.keys.join(", "), &fault.found, fault.expected),
        }
    }
}

/// Returns the keys of `config/default.toml`. A line `#key = value` is a key that is unset by default.
static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut table = "";
    let mut keys = Vec::new();
    for line in include_str!("../../config/default.toml").lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = name;
        } else if let Some((key, _)) = line.trim_start_matches('#').split_once(" = ")
            && !key.starts_with(' ')
        {
            let dot = if table.is_empty() { "" } else { "." };
            keys.push(format!("{table}{dot}{key}"));
        }
    }
    keys
});

/// Returns true if the name of a layer already ends with the key.
fn names(layer: &str, key: &str) -> bool {
    layer.rsplit([' ', '-']).next() == Some(key)
}

/// Creates a layer for one value, which is TOML or a bare word. A bare word becomes a string.
fn pair(name: String, key: &str, value: &str) -> Layer {
    let literal = format!("{key} = {value}");
    // A bare word such as `agent` is not valid TOML, so it is quoted.
    let quoted = || format!("{key} = {}", toml::Value::String(value.into()));
    let text = if DeTable::parse(&literal).is_ok() { literal } else { quoted() };
    Layer { name, text, has_lines: false }
}

impl Layer {
    /// Parses the text as TOML.
    fn parsed(&self) -> Result<toml::Spanned<DeTable<'_>>, Error> {
        DeTable::parse(&self.text).map_err(|error| self.fault(&error, ""))
    }

    /// Parses the text as [`Layer::parsed`] does, and converts every share to a whole number in its unit.
    fn in_units(&self) -> Result<toml::Spanned<DeTable<'_>>, Error> {
        let mut table = self.parsed()?;
        match shares::replace_shares(table.get_mut()) {
            Ok(()) => Ok(table),
            Err(bad) => Err(self.error(&bad.key, &bad.detail, bad.span)),
        }
    }

    /// Checks for unknown keys and wrong types.
    fn check(&self) -> Result<(), Error> {
        let deserializer = toml::de::Deserializer::from(self.in_units()?);
        match Config::deserialize(deserializer) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.fault(&error, &self.path(&error)?)),
        }
    }

    /// Returns the layer as a table for the merge.
    fn table(&self) -> Result<toml::Table, Error> {
        let table = toml::Table::deserialize(toml::de::Deserializer::from(self.in_units()?));
        table.map_err(|error| self.fault(&error, ""))
    }

    /// Returns the dotted key of the value that a type error refers to. `.` means the whole layer.
    fn path(&self, error: &toml::de::Error) -> Result<String, Error> {
        let (text, message) = (error.to_string(), error.message());
        let keys = text[message.len()..].trim_matches('\n');
        let keys = keys.strip_prefix("in `").and_then(|keys| keys.strip_suffix('`'));
        let within = |key: &str| keys.map_or_else(|| key.to_owned(), |keys| format!("{keys}.{key}"));
        let (table, span) = (self.parsed()?, error.span().unwrap_or_default());
        let entries = entries(table.get_ref());
        // The error names only the table; the unknown key is in its message.
        let unknown =
            message.strip_prefix("unknown field `").and_then(|rest| rest.rsplit_once("`, expected "));
        // For a choice written as a table, such as `repair = { drop = 1 }`, the error names the option but
        // refers to its only key.
        let choice = entries.iter().filter(|(key, value)| {
            message.starts_with("expected ") && value.span() == span && key.starts_with(&within(""))
        });
        let choice = choice.map(|(key, _)| key.clone()).min_by_key(String::len);
        let path = unknown.map(|(key, _)| within(key)).or(choice);
        let mut path = path.unwrap_or_else(|| keys.unwrap_or(".").to_owned());
        // Positions in arrays are missing in the key. `[[key]]` is the position of both the array and the
        // table in it.
        let is_table = message.starts_with("invalid type: map");
        for (key, mut value) in entries {
            let Some(rest) = path.strip_prefix(&key).map(str::to_owned) else { continue };
            let mut positions = String::new();
            while let DeValue::Array(items) = value.get_ref()
                && (value.span() != span || is_table)
                && let Some(at) = items.iter().position(|item| holds(item, &span))
            {
                positions.extend(["[", &at.to_string(), "]"]);
                value = &items[at];
            }
            path = format!("{key}{positions}{rest}");
        }
        Ok(path)
    }

    /// Records the position of each key of this layer. Later layers overwrite earlier positions.
    fn places(&self, layer: usize, places: &mut BTreeMap<String, Found>) -> Result<(), Error> {
        for (key, value) in entries(self.parsed()?.get_ref()) {
            if !matches!(value.get_ref(), DeValue::Table(_)) {
                places.insert(key, Found { layer, span: value.span() });
            }
        }
        Ok(())
    }

    /// Converts a TOML error to an error of this crate, with plain words.
    fn fault(&self, error: &toml::de::Error, path: &str) -> Error {
        let message = match (self.suggested_key(path), error.message()) {
            (Some(key), _) => format!("no such option; did you mean `{key}`?"),
            (None, "duplicate key") => {
                let key = error.span().and_then(|span| self.text.get(span)).unwrap_or_default();
                format!("the key `{}` appears twice; expected it once", plain::short(key))
            }
            (None, message) => plain::words(&message.replace('\n', ", ")),
        };
        self.error(if path == "." { "" } else { path }, &message, error.span().unwrap_or_default())
    }

    /// Returns the option that a variable or flag probably means. Recognises a key without its table, and a
    /// single underscore in place of two.
    fn suggested_key(&self, path: &str) -> Option<String> {
        let means = |key: &&str| {
            let name = key.rsplit('.').next();
            *key != path && (name == Some(path) || key.replace('.', "_") == path)
        };
        // Only for variables and flags, because a file states its tables.
        let key = LoadedConfig::keys().find(means).filter(|_| !self.has_lines)?;
        let variable = || format!("{ENVIRONMENT}{}", key.replace('.', "__").to_uppercase());
        Some(if self.name.contains(ENVIRONMENT) { variable() } else { key.into() })
    }

    /// Creates an error with a snippet of the layer's text.
    fn error(&self, key: &str, detail: &str, span: Range<usize>) -> Error {
        let snippet = Snippet::from_span(&self.text, span);
        let place = if self.has_lines {
            format!("{}:{}:{}", self.name, snippet.line, snippet.column)
        } else {
            plain::short_path(&self.name).into_owned()
        };
        // The name of a single value's layer already ends with the key.
        let is_named_by_layer = key.is_empty() || (!self.has_lines && names(&self.name, key));
        let key = if is_named_by_layer { String::new() } else { format!("{}: ", plain::short_path(key)) };
        // A file may contain anything, so control characters that a terminal would interpret are replaced.
        let detail = format!("{key}{detail}").replace(char::is_control, "?");
        Error::new(Repr::ConfigValue { place, detail, snippet })
    }
}

/// Returns all values of a table and of its nested tables, with their dotted keys.
fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(String, &'t toml::Spanned<DeValue<'i>>)> {
    let mut entries = Vec::new();
    let mut open = vec![(String::new(), table)];
    while let Some((prefix, table)) = open.pop() {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                open.push((format!("{key}."), inner));
            }
            entries.push((key, value));
        }
    }
    entries
}

/// Returns true if a value, or a key or value inside of it, is at `span`.
fn holds(value: &toml::Spanned<DeValue<'_>>, span: &Range<usize>) -> bool {
    value.span() == *span
        || match value.get_ref() {
            DeValue::Table(table) => {
                table.iter().any(|(key, value)| key.span() == *span || holds(value, span))
            }
            DeValue::Array(items) => items.iter().any(|item| holds(item, span)),
            _ => false,
        }
}

/// Merges tables key by key. Other values, including arrays, are replaced as a whole.
fn merge(into: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(toml::Value::Table(known)), toml::Value::Table(new)) => merge(known, new),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_equals_that_of_a_tracking_deserializer() {
        const VALUES: &str = "7 -7 70000 0.5 true \"x\" [] [1] {} {a=1} {drop=1} {keep=[]} {drop={b.c=1}} {drop={},keep={}} \
            1979-05-27 [[1]] [{a=1}] [[],1]";
        let (mut texts, mut wrong) = (vec!["\"a`, expected b\" = 1".to_owned(), "\"\" = 1".to_owned()], 0);
        for key in LoadedConfig::keys().chain(["compaction.models.\"a.b\".trigger", "rag", "sections.rag"]) {
            texts.extend(VALUES.split(' ').map(|value| format!("{key} = {value}")));
            texts.extend(["drop", "drop.a.b", "keep"].iter().map(|name| format!("[{key}.{name}]\nc = 1")));
            texts.push(format!("[[{key}]]\na = 1"));
            texts.push(format!("{key}.drop.b = 1"));
            texts.push(format!("{key}x = 1"));
        }
        for text in texts {
            let layer = Layer { name: "x".into(), text, has_lines: true };
            let read = || toml::de::Deserializer::from(layer.parsed().unwrap());
            let tracked: Result<Config, _> = serde_path_to_error::deserialize(read());
            let Err(tracked) = tracked else { continue };
            let error = Config::deserialize(read()).unwrap_err();
            assert_eq!(layer.path(&error).unwrap(), tracked.path().to_string(), "{error} in {}", layer.text);
            wrong += 1;
        }
        assert!(wrong > 500, "{wrong}");
    }
}
