//! The edits that a provider makes to a prompt itself, as data: `[context_editing]` in `config/models.toml`.

use serde::Deserialize;

/// The edits that a provider makes itself if a request enables them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditingRule {
    /// The removal of old tool results.
    pub(crate) tool_results: Option<EditRule>,
    /// The compaction of the prompt.
    pub(crate) compaction: Option<EditRule>,
}

/// A kind of edit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditRule {
    /// The type of the edit in the request.
    pub(crate) edit: String,
    /// The required HTTP header: name and value.
    pub(crate) header: Option<(String, String)>,
    /// The minimum threshold in input tokens that the request may set.
    #[serde(default)]
    pub(crate) least: u64,
}
