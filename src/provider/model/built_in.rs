//! The built-in registry file `config/models.toml`: models, name rules, and the constraints of providers.

use super::{
    EditingRule, MismatchSwitch, ModelEntry, OnDemandRule, ProviderConstraints, ThinkingRule, WireFormat,
    constraints::ProviderEntry,
    fault,
    names::{NameReading, NameRules},
    wire_format_costs::WireFormatCosts,
};
use crate::{
    error::{Error, Repr},
    provider::media_prices::{MediaPrices, MediaTable},
};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::LazyLock};

/// The contents of the built-in registry file.
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
    /// The HTTP header, name and value, that tools at the end of a prompt require.
    #[serde(default)]
    late_tools: BTreeMap<WireFormat, (String, String)>,
    #[serde(default)]
    context_editing: BTreeMap<String, EditingRule>,
    media: MediaTable,
    wire_format: BTreeMap<WireFormat, WireFormatCosts>,
    provider: BTreeMap<String, ProviderEntry>,
    model: Vec<toml::Spanned<ModelEntry>>,
}

/// A rule for models of a family that are newer than the registry.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Newer {
    /// The beginning of the model names.
    begins: String,
    /// The first version that the rule applies to, major and minor.
    from: (u32, u32),
    thinking: ThinkingRule,
}

/// The text of the file.
pub(super) const TEXT: &str = include_str!("../../../config/models.toml");
/// The name of the file in errors.
pub(super) const ORIGIN: &str = "config/models.toml";

/// The parsed file. It is parsed once and shared; the error is kept as well, so that every caller gets it.
static BUILT_IN: LazyLock<Result<BuiltInFile, Error>> =
    LazyLock::new(|| toml::from_str(TEXT).map_err(|error| fault::unreadable(TEXT, ORIGIN, &error)));

/// Returns the entries of the file with their positions in it.
///
/// # Errors
///
/// Returns `ErrorKind::Config` if the file is invalid. A test ensures that it is valid.
pub(super) fn entries() -> Result<Vec<toml::Spanned<ModelEntry>>, Error> {
    BUILT_IN.as_ref().map(|file| file.model.clone()).map_err(|error| {
        let (origin, detail) = (ORIGIN.into(), error.to_string());
        Error::new(Repr::ConfigFile { origin, detail })
    })
}

/// Returns the readings of a name: the name itself, then the names that the name rules derive from it.
pub(super) fn readings(name: &str) -> Vec<NameReading> {
    BUILT_IN.as_ref().map(|file| file.names.readings(name)).unwrap_or_default()
}

impl WireFormatCosts {
    /// Returns the token counts and constraints of a wire format.
    pub(crate) fn from_wire_format(wire_format: WireFormat) -> Self {
        let built_in = BUILT_IN.as_ref().ok();
        built_in.and_then(|file| file.wire_format.get(&wire_format)).copied().unwrap_or_default()
    }
}

/// Returns the constraints of a provider's models in a wire format.
pub(super) fn provider_constraints(provider: &str, wire_format: WireFormat) -> ProviderConstraints {
    let built_in = BUILT_IN.as_ref().ok();
    let entry = built_in.and_then(|file| file.provider.get(provider));
    entry.filter(|entry| entry.wire_format == wire_format).map(|entry| entry.constraints).unwrap_or_default()
}

/// Returns the switch by which a request makes the provider drop reasoning that it would refuse. Returns
/// `None` if the wire format has no such switch.
pub(super) fn mismatch_switch(wire_format: WireFormat) -> Option<MismatchSwitch> {
    BUILT_IN.as_ref().ok()?.mismatch_switch.get(&wire_format).cloned()
}

/// Returns the rule for requesting a compaction from a provider, or `None` if it offers none.
pub(super) fn on_demand_compaction(provider: &str) -> Option<OnDemandRule> {
    BUILT_IN.as_ref().ok()?.on_demand_compaction.get(provider).cloned()
}

/// Returns the header that tools at the end of a prompt require in a wire format, or `None` if none is
/// required.
pub(super) fn late_tools_header(wire_format: WireFormat) -> Option<(String, String)> {
    BUILT_IN.as_ref().ok()?.late_tools.get(&wire_format).cloned()
}

/// Returns the edits that a provider makes to a prompt itself, or `None` if it makes none.
pub(super) fn context_editing(provider: &str) -> Option<EditingRule> {
    BUILT_IN.as_ref().ok()?.context_editing.get(provider).cloned()
}

/// Returns the media prices of a model. The price rules are matched with the last reading of its name, to
/// which the most name rules were applied. It has no provider in front and no date at the end.
pub(super) fn media_prices(name: &str, wire_format: WireFormat) -> MediaPrices {
    let readings = readings(name);
    let name = readings.last().map_or(name, |reading| &reading.name).to_ascii_lowercase();
    let own = |file: &BuiltInFile| file.media.prices(&name, version(&name), wire_format);
    BUILT_IN.as_ref().ok().and_then(own).unwrap_or_else(MediaPrices::none)
}

/// Returns the reasoning rule for an unknown model, by its family and version, or `None` if no rule matches.
pub(super) fn newer(readings: &[NameReading]) -> Option<ThinkingRule> {
    let newer = &BUILT_IN.as_ref().ok()?.newer;
    let rule = |NameReading { name, .. }: &NameReading| {
        newer.iter().find(|newer| name.starts_with(&newer.begins) && version(name) >= Some(newer.from))
    };
    // The last reading has no provider in front of the name and no date at its end.
    readings.iter().rev().find_map(rule).map(|newer| newer.thinking.clone())
}

/// Returns the first number of a name and the number right after it: `claude-fable-5-3` has version 5.3.
/// Returns `None` if the name has no number.
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

    /// A wire format without a table would have no tokens around texts and no constraints.
    #[test]
    fn each_wire_format_has_a_table() {
        let tables: Vec<WireFormat> = BUILT_IN.as_ref().unwrap().wire_format.keys().copied().collect();
        let mut all = WireFormat::ALL.to_vec();
        all.sort_unstable();
        assert_eq!(tables, all);
    }
}
