//! What a database does for the store. Each call is one transaction: whole, or not at all.

use super::{
    entry::{Batch, Row},
    summary::{ListOptions, SessionSummary},
};
use crate::error::Error;
use std::ops::Range;

/// What the row of a session says.
#[derive(Debug)]
pub(super) struct Head {
    /// Its number in the database; a session that is deleted and begun again has another one.
    pub(super) key: i64,
    /// How many entries it has.
    pub(super) next: u64,
    /// How many of them are messages.
    pub(super) messages: u64,
    /// The number of the entry of the newest prompt whose items are known.
    pub(super) sent: Option<u64>,
    /// Those items, with their checksum.
    pub(super) items: Option<String>,
    /// Model and tokens of the newest prompt.
    pub(super) model: Option<String>,
    pub(super) tokens: Option<u64>,
}

/// What a writer knows of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Its number in the database, where the writer has read it.
    pub(super) key: Option<i64>,
    /// How many entries it has.
    pub(super) next: u64,
}

/// What is read of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// The whole entry.
    Entry,
    /// Of a message its outline only, of anything else the whole entry.
    Outlines,
}

/// Whether something was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    Yes,
    /// The session holds so many entries, not the number that was expected.
    No(u64),
}

/// What takes the rows of a session, one after another.
pub(super) type Each<'a> = dyn FnMut(&Head, Row) -> Result<(), Error> + 'a;

pub(super) trait Backend: Send {
    /// What names the store in errors: no password is in it.
    fn name(&self) -> &str;

    /// Checks that the name of the store still leads to the files that are open.
    fn ensure_named(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Appends to a session that is as the writer knows it; begins it where that has no entry.
    fn append(&mut self, id: &str, known: Known, batch: &Batch) -> Result<Written, Error>;

    /// The row of a session, if there is one.
    fn head(&mut self, id: &str) -> Result<Option<Head>, Error>;

    /// The rows of a session from this entry on, as of one moment; none where there is no such session.
    fn read(
        &mut self,
        id: &str,
        from: u64,
        columns: Columns,
        each: &mut Each<'_>,
    ) -> Result<Option<Head>, Error>;

    /// The rows of these entries of a session. Entries never change, so they may be read after its row.
    fn rows(&mut self, head: &Head, entries: &[Range<u64>], each: &mut Each<'_>) -> Result<(), Error>;

    /// The row of one entry, if it is there, and the number of its session in the database.
    fn row(&mut self, id: &str, n: u64) -> Result<Option<(i64, Row)>, Error>;

    fn list(&mut self, options: &ListOptions) -> Result<Vec<SessionSummary>, Error>;

    fn summary(&mut self, id: &str) -> Result<Option<SessionSummary>, Error>;

    /// Copies the first `at` entries of a session into a new one.
    fn fork(&mut self, id: &str, at: u64, new: &str) -> Result<Forked, Error>;

    /// Whether there was such a session.
    fn set_archived(&mut self, id: &str, archived: bool) -> Result<bool, Error>;

    /// Whether there was such a session.
    fn delete(&mut self, id: &str) -> Result<bool, Error>;
}

/// What came of a fork.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Forked {
    Done,
    /// There is no session to fork.
    Missing,
    /// The session has only so many entries.
    Shorter(u64),
    /// The new id is taken.
    Taken,
}
