//! The sizes of a crate's interface.

use std::collections::BTreeSet;

use libtest_mimic::Failed;
use rustdoc_types::{Id, Item, ItemEnum, Use, Visibility};

use crate::{crates::Published, document::Document, limits, listing::is_hidden};

/// Checks that a crate has no more public types, hidden items and names at its root than its limits allow.
pub(crate) fn check(published: &Published, document: &Document) -> Result<(), Failed> {
    let Some(limits) = limits::SIZES.iter().find(|limits| limits.name == published.name) else {
        return Err(
            format!("{} has no line in SIZES of tests/interface/src/limits.rs", published.name).into()
        );
    };
    let shown = document.shown();
    let types = document.own_items().filter(|item| is_type(item) && shown.contains(&item.id)).count();
    let hidden = document.own_items().filter(|item| is_hidden(item)).count();
    let mut above = Vec::new();
    for (what, count, limit) in [
        ("public types", types, limits.types),
        ("hidden items", hidden, limits.hidden),
        ("names at the root", document.root_names(), limits.root),
    ] {
        if count > limit {
            above.push(format!("{count} {what}, at most {limit} are allowed"));
        }
    }
    if above.is_empty() { Ok(()) } else { Err(format!("{}: {}", published.name, above.join("; ")).into()) }
}

fn is_type(item: &Item) -> bool {
    matches!(
        item.inner,
        ItemEnum::Struct(_)
            | ItemEnum::Enum(_)
            | ItemEnum::Union(_)
            | ItemEnum::Trait(_)
            | ItemEnum::TraitAlias(_)
            | ItemEnum::TypeAlias(_)
    )
}

impl Document {
    /// Returns the names of the types that the documentation shows.
    pub(crate) fn shown_types(&self) -> impl Iterator<Item = &str> {
        let shown = self.shown();
        let types = self.own_items().filter(move |item| is_type(item) && shown.contains(&item.id));
        types.filter_map(|item| item.name.as_deref())
    }

    /// Returns the ids of the items in the published documentation, which excludes hidden items and hidden
    /// modules.
    fn shown(&self) -> BTreeSet<Id> {
        let mut shown = BTreeSet::new();
        self.collect_shown(self.json.root, &mut shown);
        shown
    }

    fn collect_shown(&self, id: Id, shown: &mut BTreeSet<Id>) {
        let is_shown = |item: &&Item| item.visibility == Visibility::Public && !is_hidden(item);
        let Some(item) = self.item(id).filter(is_shown) else { return };
        match &item.inner {
            ItemEnum::Use(Use { id: Some(id), .. }) => self.collect_shown(*id, shown),
            ItemEnum::Module(module) if shown.insert(id) => {
                module.items.iter().for_each(|id| self.collect_shown(*id, shown));
            }
            _ => {
                shown.insert(id);
            }
        }
    }

    /// Returns the number of public names in the crate's root module. A glob is one name.
    fn root_names(&self) -> usize {
        let Some(Item { inner: ItemEnum::Module(root), .. }) = self.item(self.json.root) else {
            return 0;
        };
        let items = root.items.iter().filter_map(|&id| self.item(id));
        items.filter(|item| item.visibility == Visibility::Public && !is_hidden(item)).count()
    }
}
