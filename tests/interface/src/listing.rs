//! The listing of a crate's public items, and its comparison with the reviewed file.

use std::{collections::BTreeSet, path::PathBuf};

use libtest_mimic::Failed;
use public_api::PublicItem;
use rustdoc_types::{Attribute, Id, Impl, Item, ItemEnum};
use similar::TextDiff;

use crate::{
    crates::{Published, Workspace},
    document::Document,
};

const UPDATE: &str = "UPDATE_INTERFACE";

/// Checks that a crate's public items equal those of its reviewed file, or writes the file on request.
pub(crate) fn check(published: &Published, document: &Document) -> Result<(), Failed> {
    let path = folder().join(format!("{}.txt", published.name));
    let found = document.list();
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        return std::fs::write(&path, found).map_err(|error| format!("{}: {error}", path.display()).into());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    if reviewed == found {
        return Ok(());
    }
    let diff = TextDiff::from_lines(&reviewed, &found);
    let file = format!("tests/interface/{}.txt", published.name);
    let diff = diff.unified_diff().context_radius(1).header(&file, "today").to_string();
    let accept = format!("{UPDATE}=1 cargo test -p context-window-interface -- {}::listing", published.name);
    let how = format!("If this is wanted, accept it and review the file:\n    {accept}\n");
    Err(format!("the public interface changed:\n\n{diff}\n{how}").into())
}

/// Checks that there are published crates, and no listing without a crate.
pub(crate) fn check_files(workspace: &Workspace) -> Result<(), Failed> {
    let names: BTreeSet<String> = workspace.published().into_iter().map(|published| published.name).collect();
    if names.is_empty() {
        return Err("no member of the workspace is a published library".into());
    }
    for entry in std::fs::read_dir(folder())? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name.strip_suffix(".txt").is_some_and(|name| !names.contains(name)) {
            return Err(format!("tests/interface/{name}: no published library has this name").into());
        }
    }
    Ok(())
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

impl Document {
    /// Returns one line for each public item at each of its paths. Its parts are listed at the first path
    /// only.
    fn list(&self) -> String {
        let (mut seen, mut lines) = (BTreeSet::new(), BTreeSet::new());
        let mut list = String::new();
        for item in self.listed() {
            let is_part = item.parent_id().is_some_and(|parent| !self.is_module(parent));
            if !seen.insert(item.id()) && is_part {
                continue;
            }
            let hidden = if self.item(item.id()).is_some_and(is_hidden) { "#[doc(hidden)] " } else { "" };
            let line = format!("{hidden}{item}{}\n", self.origin(item.id()));
            // The functions of a type are in several blocks, but each block gives the same line.
            if lines.insert(line.clone()) {
                list.push_str(&line);
            }
        }
        list
    }

    /// Returns the source path of a re-export from another crate.
    fn origin(&self, id: Id) -> String {
        match self.item(id).map(|item| &item.inner) {
            Some(ItemEnum::Use(import)) => format!(" = {}", import.source),
            _ => String::new(),
        }
    }

    /// Returns the public items that programs can use, without lines that carry no information. These are
    /// functions of implemented traits (the trait lists them, and the standard library adds some with each
    /// compiler) and implementations of the compiler's own traits.
    fn listed(&self) -> impl Iterator<Item = &PublicItem> {
        self.interface.items().filter(|item| {
            let of_trait = item.parent_id().is_some_and(|parent| self.implements_trait(parent));
            let is_said_by_trait = of_trait && self.is_function(item.id());
            !(is_said_by_trait || self.implements_compiler_trait(item.id()))
        })
    }

    /// Returns the item with this id if it belongs to the documented crate, or to a trait that the crate
    /// implements.
    pub(crate) fn item(&self, id: Id) -> Option<&Item> {
        self.json.index.get(&id)
    }

    fn implements_trait(&self, id: Id) -> bool {
        self.implemented_trait(id).is_some()
    }

    /// Returns true if the item is an implementation that a derived `Clone` or `PartialEq` adds for the
    /// compiler.
    fn implements_compiler_trait(&self, id: Id) -> bool {
        let name = self.implemented_trait(id).and_then(|path| path.rsplit("::").next());
        matches!(name, Some("StructuralPartialEq" | "TrivialClone"))
    }

    fn implemented_trait(&self, id: Id) -> Option<&str> {
        match &self.item(id)?.inner {
            ItemEnum::Impl(Impl { trait_: Some(implemented), .. }) => Some(&implemented.path),
            _ => None,
        }
    }

    fn is_module(&self, id: Id) -> bool {
        self.item(id).is_some_and(|item| matches!(item.inner, ItemEnum::Module(_)))
    }

    fn is_function(&self, id: Id) -> bool {
        self.item(id).is_some_and(|item| matches!(item.inner, ItemEnum::Function(_)))
    }

    /// Returns the crate's own public items, each once.
    pub(crate) fn own_items(&self) -> impl Iterator<Item = &Item> {
        let ids: BTreeSet<u32> = self.listed().map(|item| item.id().0).collect();
        ids.into_iter().filter_map(|id| self.item(Id(id))).filter(|item| item.crate_id == 0)
    }
}

/// Returns true if the published documentation hides an item.
pub(crate) fn is_hidden(item: &Item) -> bool {
    item.attrs.iter().any(|attribute| matches!(attribute, Attribute::Other(text) if text == "#[doc(hidden)]"))
}
