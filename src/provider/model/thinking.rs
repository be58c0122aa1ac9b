//! A provider's checks of reasoning that goes back to it, as data: `thinking` of a model in
//! `config/models.toml`.

use serde::{Deserialize, Serialize};

/// The rule by which a model treats reasoning that goes back to it (rules K1 to K4). A model without this
/// rule checks nothing. Model files set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThinkingRule {
    /// The accounts for which it compares the prompt before a block of reasoning with the prompt that the
    /// block was made for: tools, system texts and messages, reasoning and cache marks apart.
    pub(crate) check: PrefixCheck,
    /// Its reaction if they differ.
    pub(crate) mismatch: PrefixMismatch,
    /// The models whose reasoning it reads in addition to its own. A `*` at the end of a name matches any
    /// ending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reads: Vec<String>,
    /// The senders that a block is bound to: no other account, or end user, may send it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bound_to: Vec<BoundTo>,
    /// True if a prompt may add tools at its end, so that those before it stay as they were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) late_tools: bool,
}

/// The accounts for which a model checks the prefix of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrefixCheck {
    /// For accounts made since a date; planned for as if for all, because a plan does not know the account.
    NewAccounts,
    /// For everybody.
    Always,
}

/// A provider's reaction to reasoning whose prefix changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrefixMismatch {
    /// It refuses the request.
    Refused,
    /// It leaves the block and all later ones out, and reports that in its reply.
    Dropped,
}

/// The switch by which a request asks its provider to leave out reasoning that it would refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MismatchSwitch {
    /// The name of the HTTP header that has to be sent.
    pub(crate) header: String,
    /// Its value.
    pub(crate) value: String,
    /// JSON for the object `thinking` of the body, for the types `adaptive` and `enabled` only.
    pub(crate) thinking: String,
}

/// The sender that a block of reasoning is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoundTo {
    /// The account that it was made for.
    Account,
    /// The end user that the request named.
    EndUser,
}

impl ThinkingRule {
    /// Checks if a model of this rule and name reads the reasoning of another one.
    pub(crate) fn reads(&self, own: &str, other: &str) -> bool {
        let bare = |name: &str| name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let other = bare(other);
        let is = |pattern: &String| match pattern.strip_suffix('*') {
            Some(begins) => other.starts_with(begins),
            None => other == *pattern,
        };
        other == bare(own) || self.reads.iter().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_the_rest_of_a_name() {
        let rule = ThinkingRule {
            check: PrefixCheck::Always,
            mismatch: PrefixMismatch::Refused,
            reads: vec!["claude-opus-4*".into(), "claude-opus-5".into()],
            bound_to: Vec::new(),
            late_tools: false,
        };
        for (name, reads) in [
            ("claude-fable-9", true),
            ("anthropic/Claude-Fable-9", true),
            ("claude-opus-4-8", true),
            ("claude-opus-5", true),
            ("claude-opus-5-5", false),
            ("gpt-5", false),
        ] {
            assert_eq!(rule.reads("claude-fable-9", name), reads, "{name}");
        }
    }
}
