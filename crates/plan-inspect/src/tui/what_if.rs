//! A file of what-if changes: a budget, pins, expired and excluded items.

use super::subject::Subject;
use crate::input;
use anyhow::{Result, anyhow, ensure};
use context_window::{ItemId, text::plain};
use context_window_ratatui::WhatIf;
use context_window_report as report;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The tried changes as written to a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// The path and the name of the session, for people who read the file.
    pub(crate) file: String,
    pub(crate) session: String,
    /// The number of the prompt that the changes were tried at, starting at 1.
    pub(crate) prompt: usize,
    /// The prompt budget in tokens. `None` for the session's own.
    pub(crate) prompt_budget: Option<u64>,
    pub(crate) pinned: BTreeMap<ItemId, bool>,
    pub(crate) expired: BTreeMap<ItemId, bool>,
    /// The excluded documents.
    #[serde(default)]
    pub(crate) excluded: BTreeSet<ItemId>,
}

impl Saved {
    /// Reads tried changes from a file. Returns an error if this session lacks an item or the prompt that
    /// they name.
    pub(crate) fn read(path: &Path, subject: &Subject) -> Result<Self> {
        let (at, text) = input::text(path)?;
        let saved: Self = serde_json::from_str(&text).map_err(|error| {
            let (line, column, said) = (error.line(), error.column(), error.to_string());
            // The position is already part of the message.
            let said = said.rsplit_once(" at line ").map_or(&*said, |(said, _)| said);
            let said = plain::without_long_value(said);
            anyhow!("{at}:{line}:{column}: {said}; expected a file saved by the key `w`")
        })?;
        let is_message = |id: &str| subject.message(id).is_some();
        let is_pinned = |id: &str| subject.session().log.is_pinned(id);
        let name = &subject.name;
        for (id, pinned) in &saved.pinned {
            let (is_there, id) = (
                // A note exists only as a pin, so it can be unpinned but not pinned.
                is_message(id.as_str()) || !pinned && is_pinned(id.as_str()),
                report::printable(&plain::short(id.as_str())),
            );
            let what = if *pinned { "message" } else { "message or note" };
            ensure!(is_there, "{at}: pinned.{id}: {name} has no {what} with that id");
        }
        for id in saved.expired.keys() {
            let (is_there, id) = (
                is_message(id.as_str()) || is_pinned(id.as_str()),
                report::printable(&plain::short(id.as_str())),
            );
            ensure!(is_there, "{at}: expired.{id}: {name} has no message or note with that id");
        }
        for id in &saved.excluded {
            let is_there = subject.session().rag.iter().any(|document| document.id() == id);
            let id = report::printable(&plain::short(id.as_str()));
            ensure!(is_there, "{at}: excluded: {name} has no document `{id}`");
        }
        ensure!(saved.prompt_budget != Some(0), "{at}: prompt_budget: expected 1 token or more, or null");
        // The session can have been shortened since the file was written.
        let prompts = subject.prompts;
        ensure!(
            (1..=prompts).contains(&saved.prompt),
            "{at}: prompt: {} has prompts 1 to {prompts}, not {}",
            subject.name,
            saved.prompt
        );
        Ok(saved)
    }

    pub(crate) fn what_if(self) -> WhatIf {
        let what_if = WhatIf::new().with_budget(self.prompt_budget);
        let what_if = self.pinned.into_iter().fold(what_if, |tried, (id, pinned)| tried.with_pin(id, pinned));
        let what_if =
            self.expired.into_iter().fold(what_if, |tried, (id, expired)| tried.with_expired(id, expired));
        self.excluded.into_iter().fold(what_if, |tried, id| tried.with_excluded(id, true))
    }
}
