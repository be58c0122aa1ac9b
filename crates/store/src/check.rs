//! The check of a session: every entry is present, unchanged, and a valid successor of the entries before it.

use super::{
    backend::{Columns, Head},
    entry::{Row, SentPrompt, SessionName},
    outline::Outline,
    reading::Reading,
};
use crate::error::Error;
use context_window::Conversation;

/// The result of checking a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionCheck {
    /// The number of its entries.
    pub entries: u64,
    /// The number of messages among the entries.
    pub messages: u64,
    /// The faults found, as sentences that name the entry. The list is empty if the session is intact. The
    /// check stops at the first fault, because later faults would be consequences of it.
    pub faults: Vec<String>,
}

/// The state of a check while rows arrive.
pub(super) struct Checking<'a> {
    reading: Reading<'a>,
    log: Conversation,
    /// The newest prompt so far.
    sent: Option<SentPrompt>,
    faults: Vec<String>,
}

impl<'a> Checking<'a> {
    /// The columns that the check reads.
    pub(super) const COLUMNS: Columns = Columns::Entry;

    /// Creates a check of this session, before its first row.
    pub(super) fn new(name: SessionName<'a>) -> Self {
        let reading = Reading::from(name, 0);
        Self { reading, log: Conversation::new(), sent: None, faults: Vec::new() }
    }

    /// Checks the next row. Ignores rows after the first fault.
    pub(super) fn take(&mut self, head: &Head, row: &Row) {
        if self.faults.is_empty()
            && let Err(error) = self.entry(head, row)
        {
            self.faults.push(self.reading.name.without(&error));
        }
    }

    /// Checks a row and applies its entry to the conversation.
    fn entry(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        let name = self.reading.name;
        let entry = self.reading.entry(head, row)?;
        let outline = row.outline.as_deref().map(|outline| Outline::read(row.n, outline)).transpose();
        let outline = outline.map_err(|detail| name.damaged(row.n, detail))?;
        // A conversation without archived texts is loaded from outlines alone, so each must match its
        // message.
        if outline != entry.message().map(|message| Outline::from_message(message, &row.sum)) {
            return Err(name.damaged(row.n, "its outline does not match its message"));
        }
        self.sent = SentPrompt::from_entry(row.n, &entry, None).or(self.sent.take());
        self.log.apply_event(entry).map_err(|error| name.damaged(row.n, error))
    }

    /// Finishes the check after the last row. Compares the session's own row with the entries.
    pub(super) fn done(mut self, head: &Head) -> SessionCheck {
        let (name, messages) = (self.reading.name, self.log.messages().len() as u64);
        if self.faults.is_empty() {
            let counted = (head.messages != messages)
                .then(|| name.fault(format!("has the message count {}; expected {messages}", head.messages)));
            let sent = self.sent.as_ref();
            let listed = (head.model.as_deref(), head.tokens);
            let expected = (sent.and_then(|sent| sent.model.as_deref()), sent.map(|sent| sent.tokens));
            let listed = (listed != expected)
                .then(|| name.fault("has another model or token count than its newest prompt"));
            let ends = self.reading.ends(head).err();
            let found = [ends, counted, listed].into_iter().flatten();
            self.faults.extend(found.map(|error| name.without(&error)));
        }
        SessionCheck { entries: head.next, messages, faults: self.faults }
    }
}
