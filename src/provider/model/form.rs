//! Wire formats as data: `[wire_format]` in `config/models.toml`.

use super::constraints::ProviderConstraints;
use serde::{Deserialize, Serialize};

/// What a wire format counts around texts, in tokens, and what it demands: one `[wire_format.NAME]`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Form {
    /// A message, beside its role's name and its parts.
    pub(crate) message: u64,
    /// Whether the role's name is counted.
    pub(crate) role: bool,
    /// Each part of a message's content; a plain text is one part.
    pub(crate) part: u64,
    /// A speaker's name, beside its text.
    pub(crate) name: u64,
    /// A call, beside its name and arguments.
    pub(crate) call: u64,
    /// Whether a call is an item of its own, so that a message of calls alone is none.
    pub(crate) calls_apart: bool,
    /// Where the reply begins.
    pub(crate) priming: u64,
    /// What declaring any tool adds.
    pub(crate) tools: u64,
    pub(crate) constraints: ProviderConstraints,
}
