//! Names and ids in the characters that a target accepts.

use super::TargetProfile;
use crate::message::{Role, WireFormat};
use std::borrow::Cow;

/// The maximum length in characters of a function name (mcp-use#90), an id (openclaw#117789) and the author's
/// name of a message (`OpenAI`'s API reference).
pub(super) const MOST: usize = 64;

/// The number of hash digits that replace truncated or changed characters.
const DIGITS: usize = 16;

impl TargetProfile {
    /// Returns a function name in the characters that providers accept. A changed name ends in a hash of the
    /// original name, so that two names never become equal.
    pub(super) fn function<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if name.is_empty() {
            return if self.wire_format == WireFormat::Plain { name.into() } else { "unnamed".into() };
        }
        let free = matches!(self.wire_format, WireFormat::ChatTemplate | WireFormat::Plain);
        if free || name.len() <= MOST && name.chars().all(is_of_a_word) {
            return name.into();
        }
        hashed(&word(name), name, MOST).into()
    }

    /// Returns the author's name as this target accepts it, or `None` if it accepts no names. `OpenAI`
    /// refuses white space and the characters `<|\/>`.
    pub(super) fn name_of<'n>(&self, role: Role, name: &'n str) -> Option<Cow<'n, str>> {
        if !self.accepts.names || role == Role::Tool || name.is_empty() {
            return None;
        }
        let refused = |c: char| c.is_whitespace() || "<|\\/>".contains(c);
        let long = name.chars().count() > MOST;
        if self.wire_format != WireFormat::OpenAiChat || !long && !name.contains(refused) {
            return Some(name.into());
        }
        Some(name.chars().take(MOST).map(|c| if refused(c) { '_' } else { c }).collect::<String>().into())
    }
}

fn is_of_a_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Replaces every character that may not occur in a function name by `_`.
pub(super) fn word(text: &str) -> String {
    text.chars().map(|c| if is_of_a_word(c) { c } else { '_' }).collect()
}

/// Returns the text, truncated if necessary, with a hash of `whole`: at most `most` characters.
pub(super) fn hashed(text: &str, whole: &str, most: usize) -> String {
    let begin = text.chars().take(most - DIGITS - 1);
    begin.chain(['_']).chain(hash(whole).chars().take(DIGITS)).collect()
}

pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
