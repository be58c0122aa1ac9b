//! Entries of a conversation as rows: each with its number, a checksum and its versioned JSON.

use super::outline::{self, Outline};
use crate::error::{Error, Repr};
use context_window::{
    conversation::{Entry, Event},
    events::LogEvent,
    events::checksum::checksum,
    plan::SentItems,
};
use std::fmt;

/// The largest entry, in bytes: both databases end somewhere above it.
const ENTRY_BYTES: usize = 500_000_000;

/// An entry to write.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) n: u64,
    pub(super) kind: &'static str,
    pub(super) sum: String,
    /// Of a message.
    pub(super) outline: Option<String>,
    pub(super) entry: String,
}

/// An entry that was read.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) n: u64,
    pub(super) kind: String,
    pub(super) sum: String,
    /// Of a message.
    pub(super) outline: Option<String>,
    /// None where only the outline was asked for.
    pub(super) entry: Option<String>,
}

/// Entries that are written together, and what the row of their session says after them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<NewRow>,
    /// Number of messages among them.
    pub(super) messages: u64,
    /// The newest prompt among them.
    pub(super) sent: Option<SentPrompt>,
}

/// A prompt that was sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SentPrompt {
    /// The number of its entry.
    pub(super) n: u64,
    pub(super) model: Option<String>,
    /// Tokens that the plan counted.
    pub(super) tokens: u64,
    /// Its items, with their checksum, where they are known.
    pub(super) items: Option<String>,
}

impl SentPrompt {
    /// Of an entry, where it is one of a sent prompt.
    pub(super) fn of(n: u64, entry: &LogEvent, items: Option<String>) -> Option<Self> {
        let Some(Event::Sent { counted, anchor, .. }) = entry.event() else { return None };
        // A column of a list: PostgreSQL has no text with a NUL character.
        let model = anchor.model().map(|model| model.replace('\0', ""));
        Some(Self { n, model, tokens: counted, items })
    }

    /// Of the text of an entry that is in the store.
    pub(super) fn of_stored(n: u64, entry: &str) -> Option<Self> {
        Self::of(n, &serde_json::from_str(entry).ok()?, None)
    }
}

impl Batch {
    /// Entries that follow the first so many.
    pub(super) fn of(first: u64, events: impl IntoIterator<Item = LogEvent>) -> Result<Self, Error> {
        let mut batch = Self::default();
        for (n, event) in (first..).zip(events) {
            if event.message().is_some_and(|message| !message.is_loaded()) {
                return Err(Error::new(Repr::NotLoaded));
            }
            let place = || format!("entry {n} ({})", event.kind());
            let json = |error: serde_json::Error| Error::input(place(), error.to_string());
            let (entry, items) = event.clone().without_prompt();
            let text = serde_json::to_string(&entry).map_err(json)?;
            let sum = checksum(n, &text);
            let outline = entry.message().map(|message| Outline::of(message, &sum).written(n)).transpose();
            let outline = outline.map_err(json)?;
            batch.messages += u64::from(outline.is_some());
            let items = items.map(|items| serde_json::to_string(&items)).transpose().map_err(json)?;
            let items = items.map(|items| format!("{} {items}", checksum(n, &items)));
            if text.len() > ENTRY_BYTES {
                let detail =
                    "is larger than 500,000,000 bytes as JSON, which no database takes; expected less";
                return Err(Error::input(place(), detail));
            }
            batch.sent = SentPrompt::of(n, &entry, items).or(batch.sent);
            batch.rows.push(NewRow { n, kind: entry.kind(), sum, outline, entry: text });
        }
        Ok(batch)
    }

    /// Number of entries of the session after them.
    pub(super) fn next(&self, first: u64) -> u64 {
        first + self.rows.len() as u64
    }
}

/// Whether an entry of a conversation is the one that is stored. Of a sent prompt that is not the newest, a
/// conversation does not know everything any more; of a message that was not loaded, its outline only.
pub(super) fn is_stored_as(ours: Entry<'_>, theirs: &LogEvent, row: &Row) -> bool {
    match (ours, theirs.message(), theirs.event()) {
        (Entry::Message(ours), Some(theirs), _) if ours.is_loaded() => ours == theirs,
        (Entry::Message(ours), Some(_), _) => outline::is_of(ours, &row.sum),
        (Entry::Event(ours), _, Some(theirs)) => forgotten(ours.clone()) == forgotten(theirs),
        _ => false,
    }
}

/// Returns an event as it is once it is not the newest of its kind.
fn forgotten(mut event: Event) -> Event {
    if let Event::Sent { anchor, .. } = &mut event {
        anchor.forget_details();
    }
    event
}

/// The name of a session in its store, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionName<'a> {
    pub(super) store: &'a str,
    pub(super) id: &'a str,
}

impl SessionName<'_> {
    /// Returns the fault of it.
    pub(super) fn fault(&self, detail: impl fmt::Display) -> Error {
        Error::new(Repr::Store {
            place: self.store.into(),
            detail: format!("session `{}` {detail}", self.id.escape_debug()),
        })
    }

    /// Returns a fault of it where everybody knows which session is meant.
    pub(super) fn without(&self, error: &Error) -> String {
        let said = error.to_string();
        let named = self.fault("").to_string();
        said.strip_prefix(&named).map_or(said.clone(), str::to_owned)
    }

    /// Returns the fault of one of its entries.
    pub(super) fn damaged(&self, n: u64, detail: impl fmt::Display) -> Error {
        self.fault(format!("entry {n}: {detail}; the store was changed or damaged, restore it from a copy"))
    }

    /// Returns the entry of a row, if it is whole.
    pub(super) fn entry(&self, row: &Row) -> Result<LogEvent, Error> {
        let text = row.entry.as_deref().unwrap_or_default();
        if checksum(row.n, text) != row.sum {
            return Err(self.damaged(row.n, "does not match its checksum"));
        }
        serde_json::from_str(text).map_err(|error| {
            let n = row.n;
            self.fault(format!("entry {n}: cannot be read ({error}); it was written by a later version"))
        })
    }

    /// Returns the items of the newest prompt, whose entry has this number.
    pub(super) fn items(&self, n: u64, items: Option<&str>) -> Result<SentItems, Error> {
        let fault = |what: &str| self.damaged(n, format!("the items of its prompt {what}"));
        let (sum, json) = items.ok_or_else(|| fault("are missing"))?.split_once(' ').unwrap_or_default();
        if checksum(n, json) != sum {
            return Err(fault("do not match their checksum"));
        }
        serde_json::from_str(json).map_err(|error| fault(&format!("cannot be read ({error})")))
    }
}
