//! Foreign types in a crate's interface.

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::Failed;
use rustdoc_types::{Id, Item, ItemEnum};
use serde_json::Value;

use crate::{crates::Published, document::Document, limits};

/// Checks that public items name types of unstable crates only if `limits.rs` allows it. Each release of such
/// a crate may break programs that use the item.
pub(crate) fn check(published: &Published, document: &Document) -> Result<(), Failed> {
    let allowed: &[&str] =
        limits::FOREIGN.iter().find(|(name, _)| *name == published.name).map_or(&[], |(_, allowed)| allowed);
    let named = document.foreign_crates()?;
    let mut wrong = Vec::new();
    for (library, items) in &named {
        let unstable = published.unstable_version(library)?;
        if let Some(version) = unstable.filter(|_| !allowed.contains(&library.as_str())) {
            let items: Vec<_> = items.iter().map(|item| format!("    {item}")).collect();
            wrong.push(format!("{library} {version} is named by\n{}", items.join("\n")));
        }
    }
    for library in allowed.iter().filter(|library| !named.contains_key(**library)) {
        wrong.push(format!(
            "{library} is named by no item: take it out of FOREIGN in tests/interface/src/limits.rs"
        ));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}: {}", published.name, wrong.join("\n")).into()) }
}

impl Published {
    /// Returns an unstable version of a library: one before 1.0, or a pre-release. Members of the workspace
    /// have the version of the crate itself, so they are not foreign.
    fn unstable_version(&self, library: &str) -> Result<Option<String>, Failed> {
        let Some(versions) = self.dependencies.get(library) else {
            return if self.members.contains(library) {
                Ok(None)
            } else {
                Err(format!("{library} is not among the dependencies of {}", self.name).into())
            };
        };
        let unstable = versions.iter().find(|version| version.major == 0 || !version.pre.is_empty());
        Ok(unstable.map(ToString::to_string))
    }
}

impl Document {
    /// Returns the libraries whose types, traits or modules public items name, each with these items. The
    /// standard library is not foreign.
    fn foreign_crates(&self) -> Result<BTreeMap<String, BTreeSet<String>>, Failed> {
        let lines: BTreeMap<u32, String> =
            self.interface.items().map(|item| (item.id().0, item.to_string())).collect();
        let mut found = BTreeMap::<String, BTreeSet<String>>::new();
        for item in self.own_items() {
            for id in references(item)? {
                if let Some(library) = self.library(id)? {
                    let line = lines.get(&item.id.0).cloned().unwrap_or_default();
                    found.entry(library).or_default().insert(line);
                }
            }
        }
        Ok(found)
    }

    /// Returns the name of the library that an item is from, or `None` if it is this one or the standard one.
    fn library(&self, id: Id) -> Result<Option<String>, Failed> {
        let Some(summary) = self.json.paths.get(&id) else {
            // Parts of this crate without their own path, such as the items of an import.
            return if self.item(id).is_some() {
                Ok(None)
            } else {
                Err(format!("item {} has no path", id.0).into())
            };
        };
        if summary.crate_id == 0 {
            return Ok(None);
        }
        let origin = self.json.external_crates.get(&summary.crate_id);
        let origin = origin.ok_or_else(|| format!("crate {} has no name", summary.crate_id))?;
        let is_standard = origin.path.components().any(|part| part.as_os_str() == "rustlib");
        Ok((!is_standard).then(|| origin.name.clone()))
    }
}

/// Returns the ids that an item's signature names.
fn references(item: &Item) -> Result<BTreeSet<Id>, Failed> {
    let mut found = BTreeSet::new();
    if let ItemEnum::Use(import) = &item.inner {
        found.extend(import.id);
    } else {
        collect_paths(&serde_json::to_value(&item.inner)?, &mut found);
    }
    Ok(found)
}

/// Collects the ids of all paths in a part of the JSON. A path is an object with an id and its text.
fn collect_paths(value: &Value, found: &mut BTreeSet<Id>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_paths(value, found)),
        Value::Object(fields) => {
            if let (Some(id), Some(Value::String(_))) =
                (fields.get("id").and_then(Value::as_u64), fields.get("path"))
            {
                found.extend(u32::try_from(id).map(Id));
            }
            fields.values().for_each(|value| collect_paths(value, found));
        }
        _ => {}
    }
}
