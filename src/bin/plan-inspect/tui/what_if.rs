//! What somebody tries: another budget, pins, lifetimes. The session itself stays as it is.

use context_window::{Conversation, Priority, Ttl};
use serde_json::{Value, json};
use std::collections::BTreeMap;

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

    /// For a file: of which session and prompt, and what differs. `prompt_budget` is null where it is the session's own.
    pub(crate) fn to_json(&self, file: &str, session: &str, prompt: usize) -> Value {
        json!({
            "file": file,
            "session": session,
            "prompt": prompt,
            "prompt_budget": self.budget,
            "pinned": self.pins,
            "expired": self.expired,
        })
    }
}
