//! A change between two plans, in the columns of a table.

use context_window::{Change, Shown, report};

/// What stands above them.
pub(crate) const HEADINGS: [&str; 5] = ["item", "before", "after", "cause", "shown by planning with"];

pub(crate) fn cells(change: &Change) -> [String; 5] {
    let namespace = if change.document { "rag:" } else { "" };
    let shown = match change.shown {
        Shown::Alone => "only that changed",
        Shown::Needed => "all but that changed",
        _ => "one change after the other",
    };
    [
        format!("{namespace}{}", report::brief(change.id.as_str())),
        change.from.clone(),
        change.to.clone(),
        change.cause.name().into(),
        shown.into(),
    ]
}
