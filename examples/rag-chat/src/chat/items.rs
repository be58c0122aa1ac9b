//! Actions of keys on an item of the prompt: pin it, or exclude it from now on.

use super::Chat;
use context_window::plan::PlannedItem;
use context_window::{IncludedReason, ItemId, ItemKind, Priority};
use context_window_ratatui::WhatIf;
use context_window_report as report;

impl Chat {
    /// Pins a message, or removes the pin of a message or note. Returns a printable sentence about it.
    pub fn toggle_pin(&mut self, id: &ItemId, is_document: bool) -> String {
        let name = report::brief(id.as_str());
        let said = if is_document {
            return format!("{name} is a document: documents cannot be pinned");
        } else if self.log.has_note(id) {
            self.log.unpin(id);
            format!("{name} is unpinned: the note is removed, /pin TEXT creates it again")
        } else if self.log.is_pinned(id.as_str()) {
            self.log.unpin(id);
            format!("{name} is unpinned")
        } else if self.log.pin_message(id, Priority::Normal).is_ok() {
            format!("{name} and its exchange are pinned, p again unpins them")
        } else {
            return format!("{name} is not a message or note: it cannot be pinned");
        };
        self.changed();
        said
    }

    /// Excludes an item from now on: a document is not sent again, a message or note expires. Returns a
    /// printable sentence about it.
    pub fn exclude(&mut self, id: &ItemId, is_document: bool) -> String {
        let name = report::brief(id.as_str());
        if is_document {
            self.leave_document_out(id.as_str());
            self.changed();
            return format!("{name} is excluded from now on, /drop {} restores it", end(id));
        }
        let is_it = |item: &&PlannedItem| item.id == *id && item.kind != ItemKind::Document;
        let Some(item) = self.plan.included.iter().find(is_it) else {
            return format!("{name} is already excluded");
        };
        let is_note = self.log.has_note(id);
        if item.reason == IncludedReason::Required || !is_note && self.log.position_of(id).is_none() {
            return format!("{name} is required: it cannot be excluded");
        }
        WhatIf::new().with_expired(id.clone(), true).apply(&mut self.log);
        self.changed();
        let back = if is_note { format!("/ttl {name} 3") } else { "p".into() };
        format!("{name} is excluded from now on, {back} restores it")
    }

    /// Excludes a document, or includes an excluded one again. Returns true if it is excluded now.
    pub(super) fn leave_document_out(&mut self, id: &str) -> bool {
        let is_out = !self.left_out.excluded().contains(&ItemId::from(id));
        self.left_out = std::mem::take(&mut self.left_out).with_excluded(id, is_out);
        is_out
    }
}

/// Returns the end of an id, by which `/drop` finds it. A short id is returned whole.
fn end(id: &ItemId) -> String {
    const SHOWN: usize = 60;
    let all = id.as_str();
    let from = all.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
    report::printable(&all[from..])
}
