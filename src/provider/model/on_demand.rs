//! The rule for requesting a compaction from a provider, as data: `[on_demand_compaction]` in
//! `config/models.toml`.

use serde::Deserialize;

/// The rule for requesting a compaction from a provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnDemandRule {
    /// The path of the request.
    pub(crate) path: String,
    /// The required HTTP header: name and value.
    pub(crate) header: Option<(String, String)>,
    /// The addition to the ordinary body: its key and its JSON value.
    pub(crate) body: Option<(String, String)>,
}
