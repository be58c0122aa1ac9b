//! The sizes of a crate's interface.

use libtest_mimic::Failed;
use rustdoc_types::{Item, ItemEnum, Visibility};

use crate::{crates::Published, document::Document, limits, listing::is_hidden};

/// Checks that a crate has no more public types, hidden items and names at its root than its limits allow.
pub(crate) fn check(published: &Published, document: &Document) -> Result<(), Failed> {
    let Some(limits) = limits::SIZES.iter().find(|limits| limits.name == published.name) else {
        return Err(
            format!("{} has no line in SIZES of tests/interface/src/limits.rs", published.name).into()
        );
    };
    let types = document.own_items().filter(|item| is_type(item)).count();
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
    /// Returns the number of public names in the crate's root module. A glob is one name.
    fn root_names(&self) -> usize {
        let Some(Item { inner: ItemEnum::Module(root), .. }) = self.item(self.json.root) else {
            return 0;
        };
        let items = root.items.iter().filter_map(|&id| self.item(id));
        items.filter(|item| item.visibility == Visibility::Public && !is_hidden(item)).count()
    }
}
