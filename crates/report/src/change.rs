//! A change between two plans as the cells of a table row.

use super::row::short;
use context_window::{
    analysis::{Cause, Change, Evidence, ItemState},
    plan::ExcludedCode,
};

/// The description of a change between two plans, one field per table column.
///
/// ```
/// use context_window::{
///     ContextWindowManager, Conversation, Message, PlanRequest, RagItem, RequestLimits, analysis::Diff,
/// };
/// use context_window_report as report;
///
/// # fn main() -> Result<(), context_window::Error> {
/// let manager = ContextWindowManager::for_model("gpt-4o")?;
/// let log = Conversation::from([Message::user("How long do refunds take?")]);
/// let request = PlanRequest::new(&log).with_rag([RagItem::new("refunds", 0.9, "Refunds take 5 days.")]);
/// let smaller = request.clone().with_limits(RequestLimits::prompt_budget(20));
/// let diff = Diff::between(&manager.explainer(&request), &manager.explainer(&smaller))?;
/// let change = report::change(&diff.changes[0]);
/// assert_eq!((change.item.as_str(), change.after.as_str()), ("refunds", "dropped: budget"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeText {
    /// The id of the item. A document that shares its id with another item has the prefix `rag:`.
    pub item: String,
    /// The item's state in the earlier plan.
    pub before: String,
    /// The item's state in the later plan, with a note if its text changed.
    pub after: String,
    /// The cause of the change.
    pub cause: String,
    /// The check that confirmed the cause.
    pub verified_by: String,
}

impl ChangeText {
    /// The column headings of the table, in the order of [`ChangeText::into_cells`].
    pub const HEADINGS: [&str; 5] = ["item", "before", "after", "cause", "verified by"];

    /// Converts the change into the cells of a table row.
    #[must_use]
    pub fn into_cells(self) -> [String; 5] {
        let Self { item, before, after, cause, verified_by } = self;
        [item, before, after, cause, verified_by]
    }
}

/// Builds the description of a change between two plans.
#[must_use]
pub fn change(change: &Change) -> ChangeText {
    // Documents have ids of their own, so only a shared id is ambiguous (namespaces, rule O5).
    let namespace = if change.document && change.shares_id { "rag:" } else { "" };
    let shown = match change.evidence {
        Evidence::Alone => "this change alone",
        Evidence::Needed => "all others",
        _ => "step by step",
    };
    ChangeText {
        item: format!("{namespace}{}", short(change.id.as_str())),
        before: state(change.from),
        after: state(change.to) + if change.text_changed { ", text changed" } else { "" },
        cause: cause(change.cause).into(),
        verified_by: shown.into(),
    }
}

/// Returns the name of an item's state for people.
fn state(state: ItemState) -> String {
    match state {
        ItemState::Absent => "not in session".into(),
        ItemState::Excluded(ExcludedCode::Budget) => "dropped: budget".into(),
        ItemState::Excluded(ExcludedCode::TtlExpired) => "expired".into(),
        ItemState::Excluded(ExcludedCode::Duplicate) => "duplicate".into(),
        ItemState::Excluded(ExcludedCode::NearDuplicate) => "near duplicate".into(),
        ItemState::Excluded(ExcludedCode::InWindow) => "in the window".into(),
        ItemState::Excluded(ExcludedCode::Repeats) => "repeats another text".into(),
        ItemState::Excluded(ExcludedCode::Policy) => "skipped: policy".into(),
        ItemState::Excluded(ExcludedCode::Archived) => "archived".into(),
        other => other.to_string(),
    }
}

/// Returns the name of a cause for people.
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
