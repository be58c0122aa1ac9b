//! Whether a session is whole: every entry there, as it was written, and one that can have followed the others.

use super::{
    backend::{Columns, Head},
    entry::{Row, SentPrompt, SessionName},
    outline::Outline,
    reading::Reading,
};
use crate::error::Error;
use context_window::Conversation;

/// What was found in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionCheck {
    /// How many entries it has.
    pub entries: u64,
    /// How many of them are messages.
    pub messages: u64,
    /// What is wrong with it, as sentences that name the entry; empty where it is whole. Behind the first fault nothing is
    /// looked at: what follows would only follow from it.
    pub faults: Vec<String>,
}

/// The state of a check, as rows come.
pub(super) struct Checking<'a> {
    reading: Reading<'a>,
    log: Conversation,
    /// The newest prompt.
    sent: Option<SentPrompt>,
    faults: Vec<String>,
}

impl<'a> Checking<'a> {
    /// What of an entry has to be read for this.
    pub(super) const COLUMNS: Columns = Columns::Entry;

    pub(super) fn new(name: SessionName<'a>) -> Self {
        let reading = Reading::from(name, 0);
        Self { reading, log: Conversation::new(), sent: None, faults: Vec::new() }
    }

    pub(super) fn take(&mut self, head: &Head, row: &Row) {
        if self.faults.is_empty()
            && let Err(error) = self.entry(head, row)
        {
            self.faults.push(self.reading.name.without(&error));
        }
    }

    fn entry(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        let name = self.reading.name;
        let entry = self.reading.entry(head, row)?;
        let outline = row.outline.as_deref().map(|outline| Outline::read(row.n, outline)).transpose();
        let outline = outline.map_err(|detail| name.damaged(row.n, detail))?;
        if outline != entry.message().map(|message| Outline::of(message, &row.sum)) {
            return Err(name.damaged(row.n, "its outline is not that of its message"));
        }
        self.sent = SentPrompt::of(row.n, &entry, None).or(self.sent.take());
        self.log.apply_event(entry).map_err(|error| name.damaged(row.n, error))
    }

    /// After the last row: what the session's own row says is compared too.
    pub(super) fn done(mut self, head: &Head) -> SessionCheck {
        let (name, messages) = (self.reading.name, self.log.messages().len() as u64);
        if self.faults.is_empty() {
            let counted = (head.messages != messages).then(|| {
                name.fault(format!("says that it has {} messages; expected {messages}", head.messages))
            });
            let sent = self.sent.as_ref();
            let listed = (head.model.as_deref(), head.tokens);
            let expected = (sent.and_then(|sent| sent.model.as_deref()), sent.map(|sent| sent.tokens));
            let listed = (listed != expected)
                .then(|| name.fault("says another model or other tokens than its newest prompt has"));
            let ends = self.reading.ends(head).err();
            let found = [ends, counted, listed].into_iter().flatten();
            self.faults.extend(found.map(|error| name.without(&error)));
        }
        SessionCheck { entries: head.next, messages, faults: self.faults }
    }
}
