//! Entries of a conversation as rows, each with its number, a checksum and its versioned JSON.

use super::outline::{self, Outline};
use crate::error::{Error, Repr};
use context_window::{
    conversation::{Entry, Event},
    events::LogEvent,
    events::checksum::{checksum, has_checksum},
    plan::SentItems,
};
use std::fmt;

/// The maximum size of an entry in bytes. The limits of both databases are higher.
const ENTRY_BYTES: usize = 500_000_000;

/// An entry to write.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) n: u64,
    pub(super) kind: &'static str,
    pub(super) sum: String,
    /// The outline of a message; `None` for an event.
    pub(super) outline: Option<String>,
    pub(super) entry: String,
}

/// An entry that was read.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) n: u64,
    pub(super) kind: String,
    pub(super) sum: String,
    /// The outline of a message; `None` for an event.
    pub(super) outline: Option<String>,
    /// The JSON of the entry. `None` if only the outline was requested.
    pub(super) entry: Option<String>,
}

/// Entries that are written together, with the resulting changes of the session's row.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<NewRow>,
    /// The number of messages among the rows.
    pub(super) messages: u64,
    /// The newest prompt among the rows.
    pub(super) sent: Option<SentPrompt>,
}

/// A sent prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SentPrompt {
    /// The number of its entry.
    pub(super) n: u64,
    /// The name of the model, without NUL characters.
    pub(super) model: Option<String>,
    /// The tokens that the plan counted.
    pub(super) tokens: u64,
    /// Its items with their checksum. `None` if they are unknown.
    pub(super) items: Option<String>,
}

impl SentPrompt {
    /// Returns the sent prompt of an entry, or `None` for other entries.
    pub(super) fn from_entry(n: u64, entry: &LogEvent, items: Option<String>) -> Option<Self> {
        let Some(Event::Sent { counted, anchor, .. }) = entry.event() else { return None };
        // The model is a column that lists show, and PostgreSQL cannot store NUL characters in text.
        let model = anchor.model().map(|model| model.replace('\0', ""));
        Some(Self { n, model, tokens: counted, items })
    }

    /// Parses a stored entry and returns its sent prompt, or `None` for other entries.
    pub(super) fn from_stored(n: u64, entry: &str) -> Option<Self> {
        Self::from_entry(n, &serde_json::from_str(entry).ok()?, None)
    }
}

impl Batch {
    /// Creates a batch of entries whose first one has the number `first`.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotLoaded` for a message whose text was not loaded; `Input` if an entry is too large or
    /// cannot be serialized.
    pub(super) fn from_events(first: u64, events: impl IntoIterator<Item = LogEvent>) -> Result<Self, Error> {
        let mut batch = Self::default();
        for (n, event) in (first..).zip(events) {
            if event.message().is_some_and(|message| !message.is_loaded()) {
                return Err(Error::new(Repr::NotLoaded));
            }
            let place = || format!("entry {n} ({})", event.kind());
            let json = |error: serde_json::Error| Error::input(place(), error.to_string());
            // The items are stored once per session, not with every prompt: they are large, and only those of
            // the newest prompt are needed.
            let (entry, items) = event.clone().without_prompt();
            let text = serde_json::to_string(&entry).map_err(json)?;
            let sum = checksum(n, &text);
            let outline =
                entry.message().map(|message| Outline::from_message(message, &sum).written(n)).transpose();
            let outline = outline.map_err(json)?;
            batch.messages += u64::from(outline.is_some());
            let items = items.map(|items| serde_json::to_string(&items)).transpose().map_err(json)?;
            let items = items.map(|items| format!("{} {items}", checksum(n, &items)));
            // Checked before anything is sent to the database, so that the error names the entry.
            if text.len() > ENTRY_BYTES {
                let detail =
                    "is larger than 500,000,000 bytes as JSON, more than a database can store; expected less";
                return Err(Error::input(place(), detail));
            }
            batch.sent = SentPrompt::from_entry(n, &entry, items).or(batch.sent);
            batch.rows.push(NewRow { n, kind: entry.kind(), sum, outline, entry: text });
        }
        Ok(batch)
    }

    /// Returns the session's number of entries after this batch.
    pub(super) fn next(&self, first: u64) -> u64 {
        first + self.rows.len() as u64
    }
}

/// Checks if an entry of a conversation equals the stored one. The conversation keeps some details only for
/// its newest prompt, so these are ignored. A message whose text was not loaded is compared by its outline.
pub(super) fn is_stored_as(ours: Entry<'_>, theirs: &LogEvent, row: &Row) -> bool {
    match (ours, theirs.message(), theirs.event()) {
        (Entry::Message(ours), Some(theirs), _) if ours.is_loaded() => ours == theirs,
        (Entry::Message(ours), Some(_), _) => outline::is_outline_of(ours, &row.sum),
        (Entry::Event(ours), _, Some(theirs)) => {
            without_derived_fields(ours.clone()) == without_derived_fields(theirs)
        }
        _ => false,
    }
}

/// Returns the event without the details that only the newest prompt keeps.
fn without_derived_fields(mut event: Event) -> Event {
    if let Event::Sent { anchor, .. } = &mut event {
        anchor.forget_details();
    }
    event
}

/// The name of a session and its store, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionName<'a> {
    pub(super) store: &'a str,
    pub(super) id: &'a str,
}

impl SessionName<'_> {
    /// Returns an error about the session.
    pub(super) fn fault(&self, detail: impl fmt::Display) -> Error {
        Error::new(Repr::Store {
            place: self.store.into(),
            detail: format!("session `{}` {detail}", self.id.escape_debug()),
        })
    }

    /// Returns the text of an error without the name of the session, for places that name it already.
    pub(super) fn without_prefix(&self, error: &Error) -> String {
        let text = error.to_string();
        let named = self.fault("").to_string();
        text.strip_prefix(&named).map_or(text.clone(), str::to_owned)
    }

    /// Returns an error about a damaged entry.
    pub(super) fn damaged(&self, n: u64, detail: impl fmt::Display) -> Error {
        self.fault(format!("entry {n}: {detail}; the store was changed or damaged; restore it from a copy"))
    }

    /// Returns the entry of a row.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Store` if the checksum does not match or the JSON cannot be parsed.
    pub(super) fn entry(&self, row: &Row) -> Result<LogEvent, Error> {
        let text = self.intact(row)?;
        // The checksum matches, so the text is intact and only a later version can have written it.
        serde_json::from_str(text).map_err(|error| {
            let n = row.n;
            self.fault(format!("entry {n}: cannot be read ({error}); it was written by a later version"))
        })
    }

    /// Returns the JSON of a row.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Store` if the checksum does not match.
    pub(super) fn intact<'r>(&self, row: &'r Row) -> Result<&'r str, Error> {
        let text = row.entry.as_deref().unwrap_or_default();
        if has_checksum(row.n, text, &row.sum) {
            Ok(text)
        } else {
            Err(self.damaged(row.n, "does not match its checksum"))
        }
    }

    /// Returns the items of the newest prompt, whose entry has the number `n`. Fails if they are missing or
    /// damaged.
    pub(super) fn items(&self, n: u64, items: Option<&str>) -> Result<SentItems, Error> {
        let fault = |what: &str| self.damaged(n, format!("the items of its prompt {what}"));
        let (sum, json) = items.ok_or_else(|| fault("are missing"))?.split_once(' ').unwrap_or_default();
        if !has_checksum(n, json, sum) {
            return Err(fault("do not match their checksum"));
        }
        serde_json::from_str(json).map_err(|error| fault(&format!("cannot be read ({error})")))
    }
}
