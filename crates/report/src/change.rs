//! A change between two plans, in the columns of a table.

use super::row::short;
use context_window::{
    analysis::{Cause, Change, Evidence, ItemState},
    plan::ExcludedCode,
};

/// The columns of [`change`].
pub const CHANGE_HEADINGS: [&str; 5] = ["item", "before", "after", "cause", "verified by"];

/// A change between two plans in words, one text for each of [`CHANGE_HEADINGS`].
#[must_use]
pub fn change(change: &Change) -> [String; 5] {
    let namespace = if change.document && change.shares_id { "rag:" } else { "" };
    let shown = match change.evidence {
        Evidence::Alone => "this change alone",
        Evidence::Needed => "all others",
        _ => "step by step",
    };
    [
        format!("{namespace}{}", short(change.id.as_str())),
        state(change.from),
        state(change.to) + if change.text_changed { ", text changed" } else { "" },
        cause(change.cause).into(),
        shown.into(),
    ]
}

/// The state of an item, as people read it.
fn state(state: ItemState) -> String {
    match state {
        ItemState::Absent => "not in session".into(),
        ItemState::Excluded(ExcludedCode::Budget) => "dropped: budget".into(),
        ItemState::Excluded(ExcludedCode::TtlExpired) => "expired".into(),
        ItemState::Excluded(ExcludedCode::Duplicate) => "duplicate".into(),
        ItemState::Excluded(ExcludedCode::Policy) => "skipped: policy".into(),
        ItemState::Excluded(ExcludedCode::Archived) => "archived".into(),
        other => other.to_string(),
    }
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
