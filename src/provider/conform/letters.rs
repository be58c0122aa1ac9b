//! Names and ids in the letters that a target takes.

use super::TargetProfile;
use crate::message::{Role, WireFormat};
use std::borrow::Cow;

/// The longest function name (mcp-use#90), id (openclaw#117789) and speaker's name (`OpenAI`'s API reference).
pub(super) const MOST: usize = 64;

/// Digits of the hash that replaces what was cut off or renamed.
const DIGITS: usize = 16;

impl TargetProfile {
    /// A function's name in the letters that providers take. Another name ends in a hash of itself, so that no two become
    /// one.
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

    /// The speaker's name as this target takes it; none where it takes none. `OpenAI` takes no white space and none of
    /// `<|\/>`.
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

/// The text with `_` for every letter that is none of a word.
pub(super) fn word(text: &str) -> String {
    text.chars().map(|c| if is_of_a_word(c) { c } else { '_' }).collect()
}

/// The text, cut where it has to be, and a hash of the whole: at most `most` characters.
pub(super) fn hashed(text: &str, whole: &str, most: usize) -> String {
    let begin = text.chars().take(most - DIGITS - 1);
    begin.chain(['_']).chain(hash(whole).chars().take(DIGITS)).collect()
}

pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
