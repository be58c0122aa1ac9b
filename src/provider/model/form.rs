//! Wire formats as data: `[wire_format]` in `config/models.toml`.

use super::constraints::ProviderConstraints;
use serde::{Deserialize, Serialize};

/// The tokens that a wire format adds around texts, and its constraints: one `[wire_format.NAME]`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Form {
    /// The tokens of a message, apart from its role's name and its parts.
    pub(crate) message: u64,
    /// True if the role's name is counted.
    pub(crate) role: bool,
    /// The tokens of each part of a message's content; a plain text is one part.
    pub(crate) part: u64,
    /// The tokens of an author's name, apart from its text.
    pub(crate) name: u64,
    /// The tokens of a call, apart from its name and arguments.
    pub(crate) call: u64,
    /// True if calls are separate items, so that a message of calls alone has no tokens of its own.
    pub(crate) calls_apart: bool,
    /// The tokens at the start of the reply.
    pub(crate) priming: u64,
    /// The tokens that the declaration of any tools adds.
    pub(crate) tools: u64,
    pub(crate) constraints: ProviderConstraints,
}
