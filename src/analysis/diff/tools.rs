//! The difference between the declared tools of two prompts.

use crate::message::Tool;
use serde::Serialize;
use std::collections::BTreeMap;

/// The difference between the declared tools of two prompts, by tool name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolsChange {
    /// Tools that only the second prompt declares.
    pub added: Vec<String>,
    /// Tools that only the first prompt declares.
    pub removed: Vec<String>,
    /// Tools that both prompts declare, with different definitions.
    pub changed: Vec<String>,
    /// True if the tools that both prompts declare are in a different order.
    pub reordered: bool,
}

impl ToolsChange {
    /// Returns the difference between two lists of tools, or `None` if they are equal.
    pub(super) fn between(before: &[Tool], after: &[Tool]) -> Option<Self> {
        if before == after {
            return None;
        }
        let (was, is) = (numbered(before), numbered(after));
        let [in_was, in_is]: [BTreeMap<_, _>; 2] = [&was, &is].map(|tools| tools.iter().copied().collect());
        let only = |here: &Numbered<'_>, there: &BTreeMap<_, _>| {
            let names = here.iter().filter(|(key, _)| !there.contains_key(key));
            names.map(|((name, _), _)| (*name).to_owned()).collect()
        };
        let shared = |here: &Numbered<'_>, there: &BTreeMap<_, _>| -> Vec<(String, usize)> {
            let keys = here.iter().filter(|(key, _)| there.contains_key(key));
            keys.map(|((name, nth), _)| ((*name).to_owned(), *nth)).collect()
        };
        let changed = is.iter().filter(|(key, tool)| in_was.get(key).is_some_and(|was| was != tool));
        Some(Self {
            added: only(&is, &in_was),
            removed: only(&was, &in_is),
            changed: changed.map(|((name, _), _)| (*name).to_owned()).collect(),
            reordered: shared(&was, &in_is) != shared(&is, &in_was),
        })
    }

    /// Returns true if only the order differs.
    #[must_use]
    pub fn is_order_only(&self) -> bool {
        self.reordered && self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Tools by name and by their number, from 1, among the tools of that name.
type Numbered<'a> = Vec<((&'a str, usize), &'a Tool)>;

fn numbered<'a>(tools: &'a [Tool]) -> Numbered<'a> {
    let mut seen: BTreeMap<&'a str, usize> = BTreeMap::new();
    // Names need not be unique. The number keeps two tools of one name apart.
    let number = |tool: &'a Tool| {
        let count = seen.entry(tool.name.as_str()).or_default();
        *count += 1;
        ((tool.name.as_str(), *count), tool)
    };
    tools.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_changes_distinguish_order_names_and_definitions() {
        let tool = |name: &str| Tool::new(name, name, "");
        let (a, b, c) = (tool("a"), tool("b"), tool("c"));
        let between = |before: &[Tool], after: &[Tool]| ToolsChange::between(before, after);
        assert_eq!(between(&[a.clone(), b.clone()], &[a.clone(), b.clone()]), None);
        let reordered =
            between(&[a.clone(), b.clone(), c.clone()], &[c.clone(), a.clone(), b.clone()]).unwrap();
        assert!(reordered.is_order_only());
        let added = between(&[a.clone(), b.clone()], &[c.clone(), a.clone(), b.clone()]).unwrap();
        assert_eq!((added.added, added.reordered), (vec!["c".to_owned()], false));
        let removed = between(&[a.clone(), b.clone(), c.clone()], &[b.clone(), c.clone()]).unwrap();
        assert_eq!((removed.removed, removed.reordered), (vec!["a".to_owned()], false));
        let changed = between(&[a.clone(), b.clone()], &[Tool::new("b", "new", ""), a.clone()]).unwrap();
        assert_eq!((changed.changed.clone(), changed.reordered), (vec!["b".to_owned()], true));
        assert!(!changed.is_order_only());
        // Two tools of one name are distinguished by their order.
        let twins = [a.clone(), Tool::new("a", "second", "")];
        let turned = [twins[1].clone(), twins[0].clone()];
        assert_eq!(between(&twins, &turned).unwrap().changed, ["a", "a"]);
    }
}
