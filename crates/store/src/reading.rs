//! The conversion of a session's rows into a conversation.

use super::{
    backend::Head,
    entry::{Row, SessionName},
    outline::{self, Outline},
};
use crate::error::{Error, Repr};
use context_window::{Conversation, Message, conversation::Entry, events::LogEvent, plan::Anchor};
use std::{collections::BTreeSet, ops::Range};

/// A reader that receives the rows of a session in order, and detects missing ones.
pub(super) struct Reading<'a> {
    pub(super) name: SessionName<'a>,
    /// The number of the first entry to read.
    first: u64,
    /// The number of the next expected entry.
    next: u64,
    /// The number of the newest prompt's entry so far.
    sent: Option<u64>,
}

impl<'a> Reading<'a> {
    /// Creates a reader that starts at entry `first`.
    pub(super) fn from(name: SessionName<'a>, first: u64) -> Self {
        Self { name, first, next: first, sent: None }
    }

    /// Advances to the next entry. Returns an error if the row is not the expected one.
    fn counts(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        if row.n != self.next {
            return Err(self.name.damaged(self.next, "is missing"));
        }
        // The row of the session is part of the same snapshot, so later entries would be damage.
        if row.n >= head.next {
            return Err(self.name.damaged(row.n, format!("comes after the last of {} entries", head.next)));
        }
        self.next += 1;
        Ok(())
    }

    /// Returns the entry of a row. The newest prompt includes its items.
    pub(super) fn entry(&mut self, head: &Head, row: &Row) -> Result<LogEvent, Error> {
        self.counts(head, row)?;
        let entry = self.name.entry(row)?;
        if entry.kind() != row.kind {
            return Err(self
                .name
                .damaged(row.n, format!("is not of the kind `{}` in its column `kind`", row.kind)));
        }
        if entry.kind() != "sent" {
            return Ok(entry);
        }
        self.sent = Some(row.n);
        match head.sent {
            Some(n) if n == row.n => Ok(entry.with_prompt(self.name.items(n, head.items.as_deref())?)),
            _ => Ok(entry),
        }
    }

    /// Returns a message without texts, built from its outline. Returns `None` for rows of events.
    fn outlined(&mut self, head: &Head, row: &Row) -> Result<Option<Message>, Error> {
        if row.kind != "message" {
            return Ok(None);
        }
        self.counts(head, row)?;
        let fault = |detail: &str| self.name.damaged(row.n, detail);
        let outline = row.outline.as_deref().ok_or_else(|| fault("has no outline"))?;
        let outline = Outline::read(row.n, outline).map_err(|detail| fault(&detail))?;
        let message = outline.into_message();
        if !outline::is_of(&message, &row.sum) {
            return Err(fault("its outline belongs to another entry"));
        }
        Ok(Some(message))
    }

    /// Checks after the last row that no entries are missing.
    pub(super) fn ends(&self, head: &Head) -> Result<(), Error> {
        if self.next != head.next {
            return Err(self.name.damaged(self.next, format!("is missing; expected {} entries", head.next)));
        }
        match head.sent {
            // If only a part of the session is read, the newest prompt may come before it.
            Some(n) if n >= self.first && self.sent != Some(n) => {
                Err(self.name.damaged(n, "is not the newest prompt, whose items are stored"))
            }
            _ => Ok(()),
        }
    }
}

/// A conversation that is built as its rows arrive.
pub(super) struct Loading<'a> {
    reading: Reading<'a>,
    pub(super) log: Conversation,
}

impl<'a> Loading<'a> {
    /// Creates an empty conversation for this session.
    pub(super) fn new(name: SessionName<'a>) -> Self {
        Self { reading: Reading::from(name, 0), log: Conversation::new() }
    }

    /// Adds a whole entry.
    pub(super) fn take(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        let entry = self.reading.entry(head, row)?;
        let name = self.reading.name;
        self.log.apply_event(entry).map_err(|error| name.damaged(row.n, error))
    }

    /// Adds an entry. A message is added from its outline.
    pub(super) fn take_outline(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        match self.reading.outlined(head, row)? {
            Some(message) => {
                self.log.push(message);
                Ok(())
            }
            None => self.take(head, row),
        }
    }

    /// Checks after the last row that no entries are missing.
    pub(super) fn ends(&self, head: &Head) -> Result<(), Error> {
        self.reading.ends(head)
    }
}

/// The messages of a conversation whose texts are not loaded. Each has its entry number and its position,
/// sorted by both.
pub(super) struct Left(Vec<(u64, u32)>);

impl Left {
    /// Finds all messages without loaded texts.
    pub(super) fn from_log(log: &Conversation) -> Self {
        let (mut left, mut position) = (Vec::new(), 0);
        for (n, entry) in (0..).zip(log.entries()) {
            if let Entry::Message(message) = entry {
                if !message.is_loaded() {
                    left.push((n, position));
                }
                // Entry numbers count events too, positions count messages only.
                position += 1;
            }
        }
        Self(left)
    }

    /// Finds the messages without loaded texts that a plan may need: active messages, pinned ones, and those
    /// in the newest prompt.
    pub(super) fn needed(log: &Conversation) -> Self {
        let items = log.anchor().and_then(Anchor::sent_items).unwrap_or_default();
        let held: BTreeSet<u32> = items.ids().filter_map(|id| log.position_of(id)).collect();
        let mut left = Self::from_log(log);
        left.0.retain(|(_, position)| log.may_be_sent(*position) || held.contains(position));
        left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entry numbers as ranges of consecutive numbers.
    pub(super) fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (n, _) in &self.0 {
            match runs.last_mut() {
                Some(last) if last.end == *n => last.end += 1,
                _ => runs.push(*n..n + 1),
            }
        }
        runs
    }

    /// Replaces the outlined message of a row by the full message.
    pub(super) fn put(&self, log: &mut Conversation, name: SessionName<'_>, row: &Row) -> Result<(), Error> {
        let entry = name.entry(row)?;
        // The list is sorted by entry number, so each lookup takes O(log n).
        let position = self.0.binary_search_by_key(&row.n, |(n, _)| *n).ok().map(|at| self.0[at].1);
        let (Some(position), Some(message)) = (position, entry.message()) else {
            return Err(name.damaged(row.n, "is not a message"));
        };
        // The session may have been deleted and created again since the outlines were read.
        if !outline::is_of(log.message(position), &row.sum) {
            return Err(name.fault(format!(
                "entry {}: differs from the loaded message; the session was deleted and created again",
                row.n
            )));
        }
        log.put_loaded(position, message.clone());
        Ok(())
    }

    /// Checks if all of these messages are loaded now.
    pub(super) fn are_loaded(&self, log: &Conversation) -> bool {
        self.0.iter().all(|(_, position)| log.message(*position).is_loaded())
    }
}

/// Returns an error if a message of the conversation is not loaded.
pub(super) fn all_loaded(log: &Conversation) -> Result<(), Error> {
    if Left::from_log(log).is_empty() { Ok(()) } else { Err(Error::new(Repr::NotLoaded)) }
}
