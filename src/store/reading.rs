//! Rows of a session → a conversation.

use super::{
    backend::Head,
    entry::{Row, SessionName},
    outline::Outline,
};
use crate::{
    conversation::Conversation,
    error::{Error, Repr},
    io::LogEvent,
    message::Message,
};
use std::ops::Range;

/// What takes the rows of a session in order, and finds what is missing.
pub(super) struct Reading<'a> {
    pub(super) name: SessionName<'a>,
    /// The number of the entry that comes next.
    pub(super) next: u64,
}

impl Reading<'_> {
    /// Takes one more row: the entry that comes next.
    fn counts(&mut self, row: &Row) -> Result<(), Error> {
        if row.n != self.next {
            return Err(self.name.damaged(self.next, "is missing"));
        }
        self.next += 1;
        Ok(())
    }

    /// The entry of a row, with its prompt where that is the newest.
    pub(super) fn entry(&mut self, head: &Head, row: &Row) -> Result<LogEvent, Error> {
        self.counts(row)?;
        let entry = self.name.entry(row)?;
        match &head.prompt {
            Some((n, items)) if *n == row.n => Ok(entry.with_prompt(self.name.items(*n, items)?)),
            _ => Ok(entry),
        }
    }

    /// The row of a message, of which only the outline was read; none where the whole entry was.
    fn outlined(&mut self, row: &Row) -> Result<Option<Message>, Error> {
        let (None, Some(outline)) = (&row.entry, &row.outline) else { return Ok(None) };
        self.counts(row)?;
        let outline = Outline::read(row.n, outline).map_err(|detail| self.name.damaged(row.n, detail))?;
        Ok(Some(outline.into_message()))
    }

    /// After the last row.
    pub(super) fn ends(&self, head: &Head) -> Result<(), Error> {
        if self.next != head.next {
            return Err(self.name.damaged(self.next, format!("is missing; expected {} entries", head.next)));
        }
        Ok(())
    }
}

/// A conversation, as its rows come.
pub(super) struct Loading<'a> {
    reading: Reading<'a>,
    pub(super) log: Conversation,
    /// The entry of each message whose text was left.
    left: Vec<u64>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(name: SessionName<'a>) -> Self {
        Self { reading: Reading { name, next: 0 }, log: Conversation::new(), left: Vec::new() }
    }

    pub(super) fn take(&mut self, head: &Head, row: &Row) -> Result<(), Error> {
        if let Some(message) = self.reading.outlined(row)? {
            self.left.push(row.n);
            self.log.push(message);
            return Ok(());
        }
        let entry = self.reading.entry(head, row)?;
        let name = self.reading.name;
        self.log.apply_event(entry).map_err(|error| name.damaged(row.n, error))
    }

    /// After the last row.
    pub(super) fn ends(&self, head: &Head) -> Result<(), Error> {
        self.reading.ends(head)
    }

    /// The entries of messages whose texts a plan may send, in runs.
    pub(super) fn needed(&self) -> Vec<Range<u64>> {
        let left = (0..).zip(&self.left);
        runs(left.filter(|(position, _)| self.log.may_be_sent(*position)).map(|(_, n)| *n))
    }

    /// Puts the text of a message in the place of its outline.
    pub(super) fn put(&mut self, row: &Row) -> Result<(), Error> {
        let position = self.left.binary_search(&row.n).ok().and_then(|at| u32::try_from(at).ok());
        put(&mut self.log, self.reading.name, position, row)
    }
}

/// Puts the message of a row in the place of the outline at a position.
pub(super) fn put(
    log: &mut Conversation,
    name: SessionName<'_>,
    position: Option<u32>,
    row: &Row,
) -> Result<(), Error> {
    let entry = name.entry(row)?;
    let (Some(position), Some(message)) = (position, entry.message()) else {
        return Err(name.damaged(row.n, "is no message"));
    };
    if Outline::of(log.message(position)) != Outline::of(message) {
        return Err(name.fault(format!("entry {}: is another message than the one that was loaded; the session was deleted and begun again, or damaged", row.n)));
    }
    log.put_loaded(position, message.clone());
    Ok(())
}

/// The entry of each message whose text is not here, with its position.
pub(super) fn left_out(log: &Conversation) -> Vec<(u64, u32)> {
    let mut left = Vec::new();
    let (messages, events) = log.lengths();
    let mut position = 0;
    for (n, entry) in (0..(messages + events) as u64).zip(log.entries()) {
        if let crate::conversation::Entry::Message(message) = entry {
            if !message.is_loaded() {
                left.push((n, position));
            }
            position += 1;
        }
    }
    left
}

/// Numbers in order → runs of numbers that follow each other.
pub(super) fn runs(numbers: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for n in numbers {
        match runs.last_mut() {
            Some(last) if last.end == n => last.end += 1,
            _ => runs.push(n..n + 1),
        }
    }
    runs
}

/// Whether every text is here.
pub(super) fn all_loaded(log: &Conversation) -> Result<(), Error> {
    match log.not_loaded().next() {
        None => Ok(()),
        Some(_) => Err(Error::new(Repr::NotLoaded)),
    }
}
