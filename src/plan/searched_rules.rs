//! The user's rules of a prompt.

use crate::{
    item::ItemId,
    standing_rule::{RuleSource, StandingRule},
};

/// The user's rules of a prompt, and the last message that was searched for them (rule R2).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SearchedRules {
    pub(crate) rules: Vec<StandingRule>,
    /// `None` if no message was searched.
    pub(crate) through: Option<ItemId>,
}

impl SearchedRules {
    /// Returns the rules that cue words show, which the next prompt does not search for again.
    pub(crate) fn found(&self) -> Vec<StandingRule> {
        let found = self.rules.iter().filter(|rule| rule.source == RuleSource::CueWords);
        found.filter(|_| self.through.is_some()).cloned().collect()
    }
}
