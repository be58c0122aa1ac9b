//! A provider's checks of reasoning that is sent back, as data: `thinking` of a model in
//! `config/models.toml`.

use serde::{Deserialize, Serialize};

/// The rule by which a model treats reasoning that is sent back (reasoning, rules K1 to K4). A model without
/// this rule checks nothing. Model files set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThinkingRule {
    /// The accounts for which the model checks the prompt before a block of reasoning. It must equal the
    /// prompt that the block was made for: tools, system texts and messages, apart from reasoning and cache
    /// marks.
    pub(crate) check: PrefixCheck,
    /// The reaction if the prompts differ.
    pub(crate) mismatch: PrefixMismatch,
    /// The models whose reasoning it reads in addition to its own. A `*` at the end of a name matches any
    /// suffix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reads: Vec<String>,
    /// The senders that a block is bound to: no other account or end user may send it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bound_to: Vec<BoundTo>,
    /// True if a prompt may add tools at its end, so that those before them stay unchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) late_tools: bool,
}

/// The accounts for which a model checks the prefix of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrefixCheck {
    /// Accounts created since a date. Plans treat this like `Always`, because they do not know the account.
    NewAccounts,
    /// All accounts.
    Always,
}

/// A provider's reaction to reasoning whose prefix has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PrefixMismatch {
    /// The provider refuses the request.
    Refused,
    /// The provider drops the block and all later ones, and reports that in its reply.
    Dropped,
}

/// The switch by which a request makes its provider drop reasoning that it would refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MismatchSwitch {
    /// The name of the required HTTP header.
    pub(crate) header: String,
    /// The value of the header.
    pub(crate) value: String,
    /// JSON for the object `thinking` of the body, only for the types `adaptive` and `enabled`.
    pub(crate) thinking: String,
}

/// The sender that a block of reasoning is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoundTo {
    /// The account that the block was made for.
    Account,
    /// The end user that the request named.
    EndUser,
}

impl ThinkingRule {
    /// Returns true if a model with this rule and the name `own` reads the reasoning of the model `other`.
    pub(crate) fn reads(&self, own: &str, other: &str) -> bool {
        // The same model may have a provider in front of its name, which does not matter here.
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
