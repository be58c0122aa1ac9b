//! How a provider is asked to compact, as data: `[on_demand_compaction]` in `config/models.toml`.

use serde::Deserialize;

/// How a provider is asked to compact.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnDemandRule {
    /// Where the request goes.
    pub(crate) path: String,
    /// A header that has to be sent: name and value.
    pub(crate) header: Option<(String, String)>,
    /// What is added to the ordinary body: its key, and its JSON.
    pub(crate) body: Option<(String, String)>,
}
