//! The current branch of a conversation of `ChatGPT`.

use crate::foreign::node::{Fault, Fields, Node, Reading};
use context_window::text::plain;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the messages of the current branch, the oldest first.
pub(super) fn branch<'a>(fields: &Fields<'a>, reading: &mut Reading) -> Result<Vec<Node<'a>>, Fault> {
    let mapping = fields.need("mapping")?.object()?;
    let names: Vec<String> = mapping.names().map(str::to_owned).collect();
    let mut nodes = BTreeMap::new();
    for (name, node) in names.iter().zip(mapping.values()) {
        let own = node.object()?;
        own.ignore(&["id"]);
        let (message, parent) = (own.get("message"), own.name("parent")?);
        own.ignore(&["children"]);
        own.finish(reading)?;
        nodes.insert(name.as_str(), (message, parent));
    }
    mapping.ignore_all();
    let said = nodes.values().filter(|(message, _)| message.is_some()).count();
    let parents: BTreeSet<&str> = nodes.values().filter_map(|(_, parent)| parent.as_deref()).collect();
    // If no node is marked as current, the branch ends at the newest leaf.
    let time = |name: &str| {
        let time = nodes.get(name).and_then(|(message, _)| message.as_ref()?.as_object());
        time.and_then(|message| message.get("create_time")?.parse::<f64>().ok()).unwrap_or_default()
    };
    let leaves = || names.iter().filter(|name| !parents.contains(name.as_str()));
    let newest = || leaves().max_by(|one, other| time(one).total_cmp(&time(other))).cloned();
    let mut at = fields.name("current_node")?.or_else(newest);
    let mut branch = Vec::new();
    while let Some(name) = at {
        // Each node is removed when it is visited, so a cycle of parents ends in this error.
        let Some((message, parent)) = nodes.remove(name.as_str()) else {
            let name = plain::short(&name);
            return Err(mapping.node().fault(format!(
                "has no node `{name}`, although another node refers to it, or the node is its own parent"
            )));
        };
        branch.extend(message);
        at = parent;
    }
    reading.note_count(
        said - branch.len(),
        "message of another branch is left out",
        "messages of other branches are left out",
    );
    branch.reverse();
    Ok(branch)
}
