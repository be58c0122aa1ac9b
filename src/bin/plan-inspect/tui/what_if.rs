//! What-ifs: another budget, pins, lifetimes. The session itself does not change.

use super::subject::Subject;
use crate::input;
use anyhow::{Result, anyhow, ensure};
use context_window::{Conversation, Priority, Ttl, report};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WhatIf {
    /// The prompt budget, where it is another one.
    pub(crate) budget: Option<u64>,
    /// Items whose pin is turned round: whether each is pinned now.
    pub(crate) pins: BTreeMap<String, bool>,
    /// Items whose TTL is turned round: whether each has expired now.
    pub(crate) expired: BTreeMap<String, bool>,
}

impl WhatIf {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn apply(&self, log: &mut Conversation) {
        for (id, pinned) in &self.pins {
            if *pinned {
                // An id that is no message's was refused before it came here.
                let _ = log.pin_message(id.as_str(), Priority::High);
            } else {
                log.unpin(id.as_str());
            }
        }
        for (id, expired) in &self.expired {
            let ttl = if *expired { Ttl::NoneRemaining } else { Ttl::turns(1) };
            let _ = log.set_ttl(id.as_str(), ttl);
        }
    }

    /// How many things differ.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.budget.is_some()) + self.pins.len() + self.expired.len()
    }
}

/// A what-if as it is written to a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Saved {
    /// The file of the session, and what it is called: for who reads this.
    pub(crate) file: String,
    pub(crate) session: String,
    /// The number of the prompt it was tried at, the first being 1.
    pub(crate) prompt: usize,
    /// Null where it is the session's own.
    pub(crate) prompt_budget: Option<u64>,
    pub(crate) pinned: BTreeMap<String, bool>,
    pub(crate) expired: BTreeMap<String, bool>,
}

impl Saved {
    /// Reads such a file, and looks whether this session has what it is about.
    pub(crate) fn read(path: &Path, subject: &Subject) -> Result<Self> {
        let (at, text) = input::text(path)?;
        let saved: Self = serde_json::from_str(&text).map_err(|error| {
            let (line, column, said) = (error.line(), error.column(), error.to_string());
            let said = said.rsplit_once(" at line ").map_or(&*said, |(said, _)| said);
            anyhow!("{at}:{line}:{column}: {said}; expected a file saved by the key `w`")
        })?;
        let is_message = |id: &str| subject.message(id).is_some();
        let is_pinned = |id: &str| subject.session().log.is_pinned(id);
        let name = &subject.name;
        for (id, pinned) in &saved.pinned {
            let (is_there, id) = (is_message(id) || !pinned && is_pinned(id), report::printable(id));
            let what = if *pinned { "message" } else { "message or note" };
            ensure!(is_there, "{at}: pinned.{id}: {name} has no {what} with that id");
        }
        for id in saved.expired.keys() {
            let (is_there, id) = (is_message(id) || is_pinned(id), report::printable(id));
            ensure!(is_there, "{at}: expired.{id}: {name} has no message or note with that id");
        }
        ensure!(saved.prompt_budget != Some(0), "{at}: prompt_budget: expected tokens from 1 up, or null");
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
        WhatIf { budget: self.prompt_budget, pins: self.pinned, expired: self.expired }
    }
}
