//! What a provider edits of a prompt by itself, as data: `[context_editing]` in `config/models.toml`.

use serde::Deserialize;

/// What a provider does by itself where a request asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditingRule {
    /// How it leaves out old tool results.
    pub(crate) tool_results: Option<EditRule>,
    /// How it compacts.
    pub(crate) compaction: Option<EditRule>,
}

/// One kind of edit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditRule {
    /// Its type in the request.
    pub(crate) edit: String,
    /// A header that has to be sent: name and value.
    pub(crate) header: Option<(String, String)>,
    /// The least number of input tokens that it may wait for.
    #[serde(default)]
    pub(crate) least: u64,
}
