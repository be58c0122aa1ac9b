//! A change between two plans, in the columns of a table.

use context_window::{
    analysis::{Cause, Change, Evidence},
    report,
};

/// What is above them.
pub(crate) const HEADINGS: [&str; 5] = ["item", "before", "after", "cause", "verified by"];

pub(crate) fn cells(change: &Change) -> [String; 5] {
    let namespace = if change.document { "rag:" } else { "" };
    let shown = match change.shown {
        Evidence::Alone => "this change alone",
        Evidence::Needed => "all others",
        _ => "step by step",
    };
    [
        format!("{namespace}{}", report::brief(change.id.as_str())),
        state(&change.from),
        state(&change.to),
        cause(change.cause).into(),
        shown.into(),
    ]
}

/// What became of an item, as people read it.
fn state(text: &str) -> String {
    let (state, changed) = match text.strip_suffix(", another text") {
        Some(state) => (state, ", text changed"),
        None => (text, ""),
    };
    let state = match state {
        "absent" => "not in session",
        "out: budget" => "dropped: budget",
        "out: ttl_expired" => "expired",
        "out: duplicate" => "duplicate",
        "out: policy" => "skipped: policy",
        "out: archived" => "archived",
        other => other,
    };
    format!("{state}{changed}")
}

fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::NewItem => "new item",
        Cause::RemovedItem => "removed item",
        Cause::ChangedItem => "changed text",
        Cause::Expiry => "TTL",
        Cause::Repair => "repaired history",
        Cause::Config => "options",
        Cause::LastPrompt => "different previous prompt",
        other => other.name(),
    }
}
