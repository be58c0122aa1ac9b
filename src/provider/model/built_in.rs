//! The file that is built in, `config/models.toml`: models, rules of names, and demands of providers.

use super::{
    EditingRule, MismatchSwitch, ModelEntry, OnDemandRule, ProviderConstraints, ThinkingRule, WireFormat,
    constraints::ProviderEntry,
    fault,
    form::Form,
    names::{NameRules, Reading},
};
use crate::{
    error::{Error, Repr},
    provider::media_prices::{MediaPrices, MediaTable},
};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::LazyLock};

/// The form of the file that is built in: models, wire formats, and what providers demand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuiltInFile {
    #[serde(default)]
    names: NameRules,
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

/// The text of the file, and its name in errors.
pub(super) const TEXT: &str = include_str!("../../../config/models.toml");
pub(super) const ORIGIN: &str = "config/models.toml";

static BUILT_IN: LazyLock<Result<BuiltInFile, Error>> =
    LazyLock::new(|| toml::from_str(TEXT).map_err(|error| fault::unreadable(TEXT, ORIGIN, &error)));

/// Returns the entries of the file with their places.
///
/// # Errors
///
/// `ErrorKind::Config` if the file cannot be read, which a test rules out.
pub(super) fn entries() -> Result<Vec<toml::Spanned<ModelEntry>>, Error> {
    BUILT_IN.as_ref().map(|file| file.model.clone()).map_err(|error| {
        let (origin, detail) = (ORIGIN.into(), error.to_string());
        Error::new(Repr::ConfigFile { origin, detail })
    })
}

/// Returns the readings of a name: the name itself, then those that the rules of names lead to.
pub(super) fn readings(name: &str) -> Vec<Reading> {
    BUILT_IN.as_ref().map(|file| file.names.readings(name)).unwrap_or_default()
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

/// Returns the prices of media for a model, by the reading of its name that needs the most rules: it has neither a provider
/// before it nor a date behind it.
pub(super) fn media_prices(name: &str, wire_format: WireFormat) -> MediaPrices {
    let readings = readings(name);
    let name = readings.last().map_or(name, |reading| &reading.name).to_ascii_lowercase();
    let own = |file: &BuiltInFile| file.media.prices(&name, version(&name), wire_format);
    BUILT_IN.as_ref().ok().and_then(own).unwrap_or_else(MediaPrices::none)
}

/// Returns the rule of reasoning that is taken to hold for a model that is not known, by its family and
/// version.
pub(super) fn newer(readings: &[Reading]) -> Option<ThinkingRule> {
    let newer = &BUILT_IN.as_ref().ok()?.newer;
    let rule = |Reading { name, .. }: &Reading| {
        newer.iter().find(|newer| name.starts_with(&newer.begins) && version(name) >= Some(newer.from))
    };
    // The reading with the most rules has neither a provider before the name nor a date behind it.
    readings.iter().rev().find_map(rule).map(|newer| newer.thinking.clone())
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
}
