//! The operations of a database for the store. Each call is one transaction, which is applied completely or
//! not at all.

use super::{
    entry::{Batch, Row},
    summary::{ListOptions, SessionSummary},
};
use crate::error::Error;
use std::ops::Range;

/// The row of a session.
#[derive(Debug)]
pub(super) struct SessionRow {
    /// The session's key in the database. A session that is deleted and created again has another key.
    pub(super) key: i64,
    /// The number of its entries, which is also the number of the next entry.
    pub(super) next: u64,
    /// The number of messages among the entries.
    pub(super) messages: u64,
    /// The entry number of the newest prompt, if its items are stored.
    pub(super) sent: Option<u64>,
    /// The items of that prompt, with their checksum.
    pub(super) items: Option<String>,
    /// The model of the newest prompt.
    pub(super) model: Option<String>,
    /// The tokens of the newest prompt.
    pub(super) tokens: Option<u64>,
}

/// A writer's last known state of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownState {
    /// The session's key in the database. `None` if the writer has not read the session.
    pub(super) key: Option<i64>,
    /// The number of its entries.
    pub(super) next: u64,
}

/// The columns to read for each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// The whole entry.
    Entry,
    /// The whole entry without its outline.
    Texts,
    /// Only the outline for a message, the whole entry for an event.
    Outlines,
}

/// The outcome of an append.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AppendOutcome {
    Appended,
    /// Nothing was written. The session has this number of entries instead of the expected number.
    Conflict(u64),
}

/// A callback that receives the rows of a session in order.
pub(super) type RowCallback<'a> = dyn FnMut(&SessionRow, Row) -> Result<(), Error> + 'a;

pub(super) trait Backend: Send {
    /// Returns the name of the store for errors. It contains no password.
    fn name(&self) -> &str;

    /// Checks that the store's name still refers to the open files.
    fn ensure_named(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Appends to a session if its state is as the writer knows it. Creates the session if the writer expects
    /// no entries.
    fn append(&mut self, id: &str, known: KnownState, batch: &Batch) -> Result<AppendOutcome, Error>;

    /// Returns the row of a session, or `None` if it does not exist.
    fn head(&mut self, id: &str) -> Result<Option<SessionRow>, Error>;

    /// Passes the rows of a session from entry `from` on to `each`, all from one snapshot. Returns `None` if
    /// the session does not exist.
    fn read(
        &mut self,
        id: &str,
        from: u64,
        columns: Columns,
        each: &mut RowCallback<'_>,
    ) -> Result<Option<SessionRow>, Error>;

    /// Passes the rows of these entries of a session to `each`, without outlines. Entries never change, so
    /// they may be read later than the session's row.
    fn rows(
        &mut self,
        head: &SessionRow,
        entries: &[Range<u64>],
        each: &mut RowCallback<'_>,
    ) -> Result<(), Error>;

    /// Returns the row of one entry and the key of its session, or `None` if there is no such entry.
    fn row(&mut self, id: &str, n: u64) -> Result<Option<(i64, Row)>, Error>;

    /// Lists sessions, the last written first.
    fn list(&mut self, options: &ListOptions) -> Result<Vec<SessionSummary>, Error>;

    /// Returns the summary of a session, or `None` if it does not exist.
    fn summary(&mut self, id: &str) -> Result<Option<SessionSummary>, Error>;

    /// Copies the first `at` entries of a session into a new session `new`.
    fn fork(&mut self, id: &str, at: u64, new: &str) -> Result<Forked, Error>;

    /// Archives or unarchives a session. Returns false if it does not exist.
    fn set_archived(&mut self, id: &str, archived: bool) -> Result<bool, Error>;

    /// Deletes a session. Returns false if it does not exist.
    fn delete(&mut self, id: &str) -> Result<bool, Error>;
}

/// The outcome of a fork.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Forked {
    Done,
    /// The session to fork does not exist.
    Missing,
    /// The session has only this number of entries.
    Shorter(u64),
    /// The new id is in use.
    Taken,
}
