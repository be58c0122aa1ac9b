//! Rows of a session → a conversation.

use super::{
    backend::Head,
    entry::{Row, SessionName},
    outline::{self, Outline},
};
use crate::error::{Error, Repr};
use context_window::{Conversation, Message, conversation::Entry, events::LogEvent, plan::Anchor};
use std::{collections::BTreeSet, ops::Range};

/// What takes the rows of a session in order, and finds what is missing.
pub(super) struct Reading<'a> {
    pub(super) name: SessionName<'a>,
    first: u64,
    /// The number of the entry that comes next.
    next: u64,
    /// The entry of the newest prompt so far.
    sent: Option<u64>,
}

impl<'a> Reading<'a> {
    /// From this entry on.
    pub(super) fn from(name: SessionName<'a>, first: u64) -> Self {
        Self { name, first, next: first, sent: None }
    }

    /// Takes one more row: the entry that comes next.
    fn counts(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        if row.n != self.next {
            return Err(self.name.damaged(self.next, "is missing"));
        }
        if row.n >= head.next {
            return Err(self.name.damaged(row.n, format!("stands behind the last one of {}", head.next)));
        }
        self.next += 1;
        Ok(())
    }

    /// Returns the entry of a row, with its prompt where that is the newest.
    pub(super) fn entry(&mut self, head: &Head, row: &Row) -> Result<LogEvent, Error> {
        self.counts(head, row)?;
        let entry = self.name.entry(row)?;
        if entry.kind() != row.kind {
            return Err(self.name.damaged(row.n, format!("is no `{}`, as its column `kind` says", row.kind)));
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

    /// Returns a message, of which only the outline was read; none where the row is of anything else.
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
            return Err(fault("its outline is that of another entry"));
        }
        Ok(Some(message))
    }

    /// After the last row.
    pub(super) fn ends(&self, head: &Head) -> Result<(), Error> {
        if self.next != head.next {
            return Err(self.name.damaged(self.next, format!("is missing; expected {} entries", head.next)));
        }
        match head.sent {
            // Of a part of the session, the newest prompt may be before it.
            Some(n) if n >= self.first && self.sent != Some(n) => {
                Err(self.name.damaged(n, "is not the newest prompt, whose items are kept"))
            }
            _ => Ok(()),
        }
    }
}

/// A conversation, as its rows come.
pub(super) struct Loading<'a> {
    reading: Reading<'a>,
    pub(super) log: Conversation,
}

impl<'a> Loading<'a> {
    pub(super) fn new(name: SessionName<'a>) -> Self {
        Self { reading: Reading::from(name, 0), log: Conversation::new() }
    }

    /// A whole entry.
    pub(super) fn take(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        let entry = self.reading.entry(head, row)?;
        let name = self.reading.name;
        self.log.apply_event(entry).map_err(|error| name.damaged(row.n, error))
    }

    /// An entry, of a message its outline.
    pub(super) fn take_outline(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        match self.reading.outlined(head, row)? {
            Some(message) => {
                self.log.push(message);
                Ok(())
            }
            None => self.take(head, row),
        }
    }

    /// After the last row.
    pub(super) fn ends(&self, head: &Head) -> Result<(), Error> {
        self.reading.ends(head)
    }
}

/// The messages of a conversation whose texts are not here, by their entries.
pub(super) struct Left(Vec<(u64, u32)>);

impl Left {
    /// Creates all of them.
    pub(super) fn of(log: &Conversation) -> Self {
        let (mut left, mut position) = (Vec::new(), 0);
        for (n, entry) in (0..).zip(log.entries()) {
            if let Entry::Message(message) = entry {
                if !message.is_loaded() {
                    left.push((n, position));
                }
                position += 1;
            }
        }
        Self(left)
    }

    /// Those that a plan may look at: what is active, what a pin keeps, and what the newest prompt held.
    pub(super) fn needed(log: &Conversation) -> Self {
        let items = log.anchor().and_then(Anchor::sent_items).unwrap_or_default();
        let held: BTreeSet<u32> = items.ids().filter_map(|id| log.position_of(id)).collect();
        let mut left = Self::of(log);
        left.0.retain(|(_, position)| log.may_be_sent(*position) || held.contains(position));
        left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their entries, in runs.
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

    /// Puts the message of a row in the place of its outline.
    pub(super) fn put(&self, log: &mut Conversation, name: SessionName<'_>, row: &Row) -> Result<(), Error> {
        let entry = name.entry(row)?;
        let position = self.0.binary_search_by_key(&row.n, |(n, _)| *n).ok().map(|at| self.0[at].1);
        let (Some(position), Some(message)) = (position, entry.message()) else {
            return Err(name.damaged(row.n, "is no message"));
        };
        if !outline::is_of(log.message(position), &row.sum) {
            return Err(name.fault(format!(
                "entry {}: is another message than the one that was loaded; the session was deleted and begun again",
                row.n
            )));
        }
        log.put_loaded(position, message.clone());
        Ok(())
    }

    /// Checks if all of them are here now.
    pub(super) fn are_loaded(&self, log: &Conversation) -> bool {
        self.0.iter().all(|(_, position)| log.message(*position).is_loaded())
    }
}

/// Checks if every text is here.
pub(super) fn all_loaded(log: &Conversation) -> Result<(), Error> {
    if Left::of(log).is_empty() { Ok(()) } else { Err(Error::new(Repr::NotLoaded)) }
}
