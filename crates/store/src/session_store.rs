//! Sessions in a database, for several concurrent writers.

use crate::error::{Error, Repr};
use crate::journal::Journal;
use context_window::{Conversation, conversation::Entry, events::LogEvent};
use std::{fmt, path::Path};

use crate::address::Address;
use crate::backend::{AppendOutcome, Backend, Columns, Forked, KnownState, RowCallback, SessionRow};
use crate::check::{Checking, SessionCheck};
use crate::conflict::Conflict;
use crate::entry::{Batch, Row, SessionName};
use crate::reading::{Loading, Reading, UnloadedMessages};
use crate::summary::{ListOptions, SessionSummary};

/// The maximum number of attempts for a change that other writers overtake. Each failed attempt means that
/// another writer succeeded.
pub(crate) const MAX_TRIES: u32 = 1_000;

/// A limit above the number of entries of any session, and within the integer range of both databases.
const MAX_ENTRIES: u64 = 1 << 62;

/// The maximum length of a session id in bytes. Every database accepts it as an index key.
const ID_BYTES: usize = 1_000;

/// Sessions in SQLite or PostgreSQL.
///
/// A `SessionStore` is one connection, for one thread at a time. Other threads and processes open their own.
/// After a call succeeds, its changes are on disk. A failed call changes nothing, unless its error reports
/// that this is unknown.
///
/// A revision is a number of entries: a session with `n` entries is at revision `n`.
pub struct SessionStore {
    pub(crate) backend: Box<dyn Backend>,
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionStore").field(&self.backend.name()).finish()
    }
}

impl SessionStore {
    /// Opens a store, or creates it if it does not exist. The address is `sqlite:FILE` or
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Only its owner may read a new file. Tables of an
    /// earlier version are migrated, and other programs wait in the meantime.
    ///
    /// PostgreSQL needs version 13 or later and a database in UTF8. Without the feature `postgres-tls`,
    /// connections are not encrypted, and `sslmode=require` is an error.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Store` in these cases. No error contains a password:
    ///
    /// - The address is invalid, or this program was built without its database.
    /// - The file or the server cannot be opened.
    /// - The tables have a later version. They stay unchanged.
    pub fn open(address: &str) -> Result<Self, Error> {
        match Address::parse(address)? {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) => Ok(Self { backend: Box::new(crate::sqlite::Sqlite::open(&path)?) }),
            #[cfg(feature = "postgres")]
            Address::Postgres(address) => {
                Ok(Self { backend: Box::new(crate::postgres::Postgres::open(&address)?) })
            }
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            other => Err(other.not_built()),
        }
    }

    /// Opens an existing store for reading only, and creates no tables. SQLite may leave its helper files
    /// `-wal` and `-shm` next to the file of an SQLite store.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::open`]. Also fails if the store has no sessions table, or tables
    /// of an earlier version.
    pub fn open_read_only(address: &str) -> Result<Self, Error> {
        match Address::parse(address)? {
            #[cfg(feature = "sqlite")]
            Address::Sqlite(path) => {
                Ok(Self { backend: Box::new(crate::sqlite::Sqlite::open_read_only(&path)?) })
            }
            #[cfg(feature = "postgres")]
            Address::Postgres(address) => {
                Ok(Self { backend: Box::new(crate::postgres::Postgres::open_read_only(&address)?) })
            }
            #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
            other => Err(other.not_built()),
        }
    }

    /// Returns the store's name for errors: the file, or the server and the database. It contains no user and
    /// no password.
    #[must_use]
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Returns true if the text is the address of a store rather than the name of a file.
    #[must_use]
    pub fn is_address(text: &str) -> bool {
        Address::is_address(text)
    }

    /// Appends all entries or none to a session with `expected` entries, and returns its new revision. If
    /// `expected` is 0, the session is created.
    ///
    /// # Errors
    ///
    /// All errors except an unknown outcome mean that nothing was written:
    ///
    /// - `ErrorKind::Conflict` if the session has another number of entries. [`Error::conflict`] returns both
    ///   numbers.
    /// - `Input` for an id that is empty, longer than 1,000 bytes, or contains a NUL character.
    /// - `NotLoaded` for a message whose text is not loaded.
    /// - `Store` if the database refuses, or its file was deleted or replaced while it was open. The error
    ///   reports if the outcome is unknown.
    ///
    /// The entries are not validated against earlier ones. Use [`SessionStore::save`] to write the entries of
    /// a valid conversation.
    pub fn append(
        &mut self,
        id: &str,
        expected: u64,
        events: impl IntoIterator<Item = LogEvent>,
    ) -> Result<u64, Error> {
        self.append_to(id, KnownState { key: None, next: expected }, events)
    }

    /// Appends entries if the session is as the writer knows it.
    pub(crate) fn append_to(
        &mut self,
        id: &str,
        known: KnownState,
        events: impl IntoIterator<Item = LogEvent>,
    ) -> Result<u64, Error> {
        check_id(id)?;
        let expected = known.next;
        // Larger numbers could overflow the integers of the databases.
        if expected > MAX_ENTRIES {
            return Err(conflict(id, expected, self.next_of(id)?));
        }
        let batch = Batch::from_events(expected, events)?;
        // An empty append writes nothing, but still has to confirm the number of entries.
        if batch.rows.is_empty() {
            self.backend.ensure_named()?;
            let found = self.next_of(id)?;
            return if found == expected { Ok(expected) } else { Err(conflict(id, expected, found)) };
        }
        self.write(id, known, &batch)
    }

    /// Appends a batch. Returns the new revision, or a conflict.
    fn write(&mut self, id: &str, known: KnownState, batch: &Batch) -> Result<u64, Error> {
        match self.backend.append(id, known, batch)? {
            AppendOutcome::Appended => Ok(batch.next(known.next)),
            AppendOutcome::Conflict(found) => Err(conflict(id, known.next, found)),
        }
    }

    /// Returns the session's number of entries, or 0 if it does not exist.
    fn next_of(&mut self, id: &str) -> Result<u64, Error> {
        Ok(self.backend.head(id)?.map_or(0, |head| head.next))
    }

    /// Appends the entries of a conversation after `revision`, and returns the new revision. `revision` is
    /// the one at which the conversation was last loaded or saved.
    ///
    /// If another writer appended first, the entries of both are merged if possible. The conversation then
    /// contains the other writer's entries, followed by its own. Merging is possible if all of these hold:
    ///
    /// - No item is changed by both.
    /// - At most one of them has messages, compactions or rewinds.
    /// - At most one of them has a sent prompt.
    /// - At most one of them changes the level of use.
    ///
    /// Examples are a pin and a reply, or a report and a question.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::append`], with a conflict if merging is impossible. Returns
    /// `ErrorKind::Input` if the entry before `revision` differs from the stored one, or if the conversation
    /// has fewer entries. The conversation is unchanged then.
    pub fn save(&mut self, id: &str, log: &mut Conversation, revision: u64) -> Result<u64, Error> {
        check_id(id)?;
        let key = self.check_continues(id, log, revision)?;
        // Cloned once, because each attempt appends the same entries, possibly at a later position.
        let ours: Vec<LogEvent> = log.events_from(index(revision)).collect();
        let (mut known, mut merged) = (KnownState { key, next: revision }, None);
        for _ in 0..MAX_TRIES {
            match self.append_to(id, known, ours.iter().cloned()) {
                Ok(next) => {
                    if let Some(merged) = merged {
                        *log = merged;
                    }
                    return Ok(next);
                }
                Err(error) if is_behind(&error, revision) => {
                    let (theirs, head) = self.since(id, revision)?;
                    // Another key means that the session was deleted and created again, so merging would mix
                    // two conversations.
                    if key.is_some_and(|key| key != head.key) {
                        return Err(error);
                    }
                    merged = Some(merge(log, revision, theirs, &ours).ok_or(error)?);
                    known.next = head.next;
                }
                Err(error) => return Err(error),
            }
        }
        Err(conflict(id, revision, known.next))
    }

    /// Loads a session, changes it and saves it. If another writer was faster, applies the change again to
    /// the new state. A session that does not exist starts as a new conversation. Returns the conversation
    /// and its revision.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`, and writes nothing then. Also returns the errors of
    /// [`SessionStore::load`] and [`SessionStore::append`]. Returns a conflict only after 1,000 failed
    /// attempts in a row.
    pub fn update(
        &mut self,
        id: &str,
        mut change: impl FnMut(&mut Conversation) -> Result<(), Error>,
    ) -> Result<(Conversation, u64), Error> {
        check_id(id)?;
        let (mut base, mut known) = self.load_known(id)?;
        let mut last = None;
        for _ in 0..MAX_TRIES {
            // The change works on a copy, because it must start from the stored state at each attempt.
            let mut log = base.clone();
            change(&mut log)?;
            match self.append_to(id, known, log.events_from(index(known.next))) {
                Ok(next) => return Ok((log, next)),
                Err(error) if error.conflict().is_some() => last = Some(error),
                Err(error) => return Err(error),
            }
            // Only the new entries are read, if it is still the same session.
            let new = match known.key {
                Some(_) => self.since(id, known.next).ok(),
                None => None,
            };
            match new.filter(|(_, head)| Some(head.key) == known.key) {
                Some((theirs, head)) => {
                    theirs.into_iter().try_for_each(|event| base.apply_event(event))?;
                    known.next = head.next;
                }
                // The session was created or replaced by another writer, so it is loaded as a whole.
                None => (base, known) = self.load_known(id)?,
            }
        }
        Err(last.unwrap_or_else(|| conflict(id, known.next, known.next)))
    }

    /// Loads a session. Returns the conversation and its revision.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::NotFound` if there is no session with this id. Returns `Store` if the database
    /// cannot be read, or if an entry is missing or damaged.
    pub fn load(&mut self, id: &str) -> Result<(Conversation, u64), Error> {
        let (log, head) = self.load_whole(id)?.ok_or_else(|| self.missing_error(id))?;
        Ok((log, head.next))
    }

    /// Loads a session, or creates a conversation at revision 0 if it does not exist. Returns the
    /// conversation and its revision.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load`] except `NotFound`. Returns `ErrorKind::Input` for an
    /// invalid id.
    pub fn load_or_new(&mut self, id: &str) -> Result<(Conversation, u64), Error> {
        check_id(id)?;
        let (log, known) = self.load_known(id)?;
        Ok((log, known.next))
    }

    /// Returns the entries of a session after `revision`, and its current revision. Apply them with
    /// [`Conversation::apply_event`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load`]. Returns a conflict if the session has fewer entries than
    /// `revision`.
    pub fn load_since(&mut self, id: &str, revision: u64) -> Result<(Vec<LogEvent>, u64), Error> {
        let (events, head) = self.since(id, revision)?;
        Ok((events, head.next))
    }

    /// Reads the entries after `revision` and the session's row.
    fn since(&mut self, id: &str, revision: u64) -> Result<(Vec<LogEvent>, SessionRow), Error> {
        let mut events = Vec::new();
        let store = self.backend.name().to_owned();
        let mut reading = Reading::from(SessionName { store: &store, id }, revision);
        let mut take = |head: &SessionRow, row: Row| {
            events.push(reading.entry(head, &row)?);
            Ok(())
        };
        let head = self.read(id, revision, Columns::Entry, &mut take)?;
        let head = head.ok_or_else(|| self.missing_error(id))?;
        if head.next < revision {
            return Err(conflict(id, revision, head.next));
        }
        reading.check_end(&head)?;
        Ok((events, head))
    }

    /// Loads a session without the texts of archived messages. Returns the conversation and its revision.
    /// Plans, usage and compactions are the same as those of the whole session.
    ///
    /// Some operations need a text that was not loaded
    /// ([`Message::is_loaded`](context_window::Message::is_loaded)). They fail with `ErrorKind::NotLoaded`
    /// until you call [`SessionStore::load_rest`]. Examples are pinning an archived message, undoing a
    /// compaction, rewinding to before a compaction, and a replay. Reports and screens mark these texts.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load`].
    pub fn load_active(&mut self, id: &str) -> Result<(Conversation, u64), Error> {
        let store = self.backend.name().to_owned();
        let name = SessionName { store: &store, id };
        let mut loading = Loading::new(name);
        let mut take = |head: &SessionRow, row: Row| loading.push_outline(head, &row);
        let head = self.read(id, 0, Columns::Outlines, &mut take)?;
        let head = head.ok_or_else(|| self.missing_error(id))?;
        loading.check_end(&head)?;
        let mut log = loading.log;
        let needed = UnloadedMessages::needed_by(&log);
        // Entries never change, so a second read is safe. Only a deletion in between can remove them.
        self.backend
            .rows(&head, &needed.entry_ranges(), &mut |_, row| needed.load_row(&mut log, name, &row))?;
        if !needed.are_loaded(&log) {
            return Err(name.fault("was deleted while it was loaded"));
        }
        Ok((log, head.next))
    }

    /// Loads the texts that [`SessionStore::load_active`] did not load.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load`]. Returns `ErrorKind::Store` if the session is not the one
    /// of the conversation. The conversation is unchanged then.
    pub fn load_rest(&mut self, id: &str, log: &mut Conversation) -> Result<(), Error> {
        let left = UnloadedMessages::from_log(log);
        if left.is_empty() {
            return Ok(());
        }
        let store = self.backend.name().to_owned();
        let name = SessionName { store: &store, id };
        let head = self.backend.head(id)?.ok_or_else(|| self.missing_error(id))?;
        // A copy, so that an error leaves the caller's conversation as it is.
        let mut whole = log.clone();
        self.backend
            .rows(&head, &left.entry_ranges(), &mut |_, row| left.load_row(&mut whole, name, &row))?;
        if !left.are_loaded(&whole) {
            return Err(name.fault(
                "has fewer entries than the conversation; the session was deleted and created again",
            ));
        }
        *log = whole;
        Ok(())
    }

    /// Lists sessions, the last written first. [`ListOptions::after`] selects the next page.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Store` if the database cannot be read.
    pub fn list(&mut self, options: &ListOptions) -> Result<Vec<SessionSummary>, Error> {
        self.backend.list(options)
    }

    /// Returns the list row of one session, or `None` if there is no session with this id.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::list`].
    pub fn summary(&mut self, id: &str) -> Result<Option<SessionSummary>, Error> {
        if check_id(id).is_err() { Ok(None) } else { self.backend.summary(id) }
    }

    /// Creates a session `new` with the first `at` entries of session `id`, which is not changed. The items
    /// of the new session's newest prompt are known only if it is also the newest prompt of session `id`, as
    /// in [`Conversation::as_of`].
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::NotFound` if there is no session `id`. Returns `Input` if it has fewer entries, or
    /// if `new` is in use or invalid. Returns `Store` if the database refuses. Nothing is written then.
    pub fn fork(&mut self, id: &str, at: u64, new: &str) -> Result<(), Error> {
        check_id(new)?;
        self.check_known(id)?;
        match self.backend.fork(id, at, new)? {
            Forked::Done => Ok(()),
            Forked::Missing => Err(self.missing_error(id)),
            Forked::Shorter(next) => {
                let detail = format!("has {next} entries; expected at least {at} to fork it there");
                Err(Error::input(format!("session `{}`", id.escape_debug()), detail))
            }
            Forked::Taken => Err(id_taken_error(new)),
        }
    }

    /// Archives a session. It then appears only in [`ListOptions::archived`] lists. Everything else works as
    /// before.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::NotFound` if there is no session with this id, and `Store` if the database
    /// refuses.
    pub fn archive(&mut self, id: &str) -> Result<(), Error> {
        self.set_archived_flag(id, true)
    }

    /// Unarchives a session.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::archive`].
    pub fn unarchive(&mut self, id: &str) -> Result<(), Error> {
        self.set_archived_flag(id, false)
    }

    fn set_archived_flag(&mut self, id: &str, archived: bool) -> Result<(), Error> {
        self.check_known(id)?;
        if self.backend.set_archived(id, archived)? { Ok(()) } else { Err(self.missing_error(id)) }
    }

    /// Deletes a session and all of its entries permanently. No other call deletes anything.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::NotFound` if there is no session with this id, and `Store` if the database
    /// refuses.
    pub fn delete(&mut self, id: &str) -> Result<(), Error> {
        self.check_known(id)?;
        if self.backend.delete(id)? { Ok(()) } else { Err(self.missing_error(id)) }
    }

    /// Creates a session with an existing conversation, and returns its revision.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::Input` if the id is in use, and otherwise the errors of [`SessionStore::append`].
    pub fn import(&mut self, id: &str, log: &Conversation) -> Result<u64, Error> {
        check_id(id)?;
        crate::reading::all_loaded(log)?;
        if self.backend.head(id)?.is_some() {
            return Err(id_taken_error(id));
        }
        let written =
            self.write(id, KnownState { key: None, next: 0 }, &Batch::from_events(0, log.events())?);
        // Another writer may have created the session since the check above.
        written.map_err(|error| if error.conflict().is_some() { id_taken_error(id) } else { error })
    }

    /// Creates a session from a log on disk, and returns its revision. The file is only read. An incomplete
    /// last record, left by a crash, is ignored.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::import`] and [`Journal::read`].
    pub fn import_journal(&mut self, id: &str, path: impl AsRef<Path>) -> Result<u64, Error> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let text = std::fs::read(path).map_err(|error| {
            Error::new(Repr::Journal { place: place.clone(), detail: format!("cannot be read: {error}") })
        })?;
        self.import(id, &Journal::read(&place, &text)?.0)
    }

    /// Writes a session to a new log on disk.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SessionStore::load`] and [`Journal::create`].
    pub fn export_journal(&mut self, id: &str, path: impl AsRef<Path>) -> Result<(), Error> {
        let (log, _) = self.load(id)?;
        Journal::create(path, &log).map(drop)
    }

    /// Checks every entry of a session: its number, checksum and outline, and that it is a valid successor of
    /// the entries before it. Also compares the session's row with the entries. Intact entries that were
    /// moved to another session are not detected.
    ///
    /// # Errors
    ///
    /// Returns `ErrorKind::NotFound` if there is no session with this id, and `Store` if the database cannot
    /// be read. Damage is not an error here: see [`SessionCheck::faults`].
    pub fn check(&mut self, id: &str) -> Result<SessionCheck, Error> {
        let store = self.backend.name().to_owned();
        let mut checking = Checking::new(SessionName { store: &store, id });
        let mut take = |head: &SessionRow, row: Row| {
            checking.push(head, &row);
            Ok(())
        };
        match self.read(id, 0, Checking::COLUMNS, &mut take)? {
            Some(head) => Ok(checking.finish(&head)),
            None => Err(self.missing_error(id)),
        }
    }

    /// Loads a whole session. Returns `None` if it does not exist.
    fn load_whole(&mut self, id: &str) -> Result<Option<(Conversation, SessionRow)>, Error> {
        let store = self.backend.name().to_owned();
        let mut loading = Loading::new(SessionName { store: &store, id });
        let mut take = |head: &SessionRow, row: Row| loading.push(head, &row);
        let Some(head) = self.read(id, 0, Columns::Entry, &mut take)? else { return Ok(None) };
        loading.check_end(&head)?;
        Ok(Some((loading.log, head)))
    }

    /// Loads a session, or creates an empty conversation, together with its known state.
    pub(crate) fn load_known(&mut self, id: &str) -> Result<(Conversation, KnownState), Error> {
        let loaded = self.load_whole(id)?;
        Ok(loaded.map_or((Conversation::new(), KnownState { key: None, next: 0 }), |(log, head)| {
            (log, KnownState { key: Some(head.key), next: head.next })
        }))
    }

    /// Passes the rows of a session to `each`. Returns `None` if the session does not exist or its id is
    /// invalid.
    fn read(
        &mut self,
        id: &str,
        from: u64,
        columns: Columns,
        each: &mut RowCallback<'_>,
    ) -> Result<Option<SessionRow>, Error> {
        if check_id(id).is_err() { Ok(None) } else { self.backend.read(id, from, columns, each) }
    }

    /// Returns `ErrorKind::NotFound` for an invalid id, because no session can have it.
    fn check_known(&self, id: &str) -> Result<(), Error> {
        check_id(id).map_err(|_| self.missing_error(id))
    }

    /// Checks that a conversation continues a stored session: its last saved entry equals the stored one.
    /// Returns the session's key in the database, or `None` at revision 0.
    fn check_continues(&mut self, id: &str, log: &Conversation, revision: u64) -> Result<Option<i64>, Error> {
        let place = || format!("conversation of session `{}`", id.escape_debug());
        let count = log.event_count() as u64;
        if count < revision {
            let detail = format!("has {count} entries; expected at least {revision}, the number loaded");
            return Err(Error::input(place(), detail));
        }
        // The last saved entry identifies the session. A full comparison would read the whole session.
        let Some(last) = revision.checked_sub(1) else { return Ok(None) };
        let Some((key, row)) = self.backend.row(id, last)? else {
            return Err(conflict(id, revision, self.next_of(id)?));
        };
        let theirs = SessionName { store: self.backend.name(), id }.entry(&row)?;
        let (messages, events) = log.split_at(index(last));
        let ours = log.entries_from(messages, events).next();
        if !ours.is_some_and(|ours| crate::entry::is_stored_as(ours, &theirs, &row)) {
            let detail = "differs from the stored session; expected the conversation that was loaded from it";
            return Err(Error::input(place(), detail));
        }
        Ok(Some(key))
    }

    fn missing_error(&self, id: &str) -> Error {
        let place = self.backend.name().to_owned();
        Error::new(Repr::NoSession { place, id: id.escape_debug().to_string() })
    }
}

/// Merges the entries of both writers into one conversation. Returns `None` if they do not commute or the
/// conversation rejects them.
fn merge(
    log: &Conversation,
    revision: u64,
    theirs: Vec<LogEvent>,
    ours: &[LogEvent],
) -> Option<Conversation> {
    let known = log.split_at(index(revision)).0 as u64;
    if !crate::commuting::can_merge(known, &theirs, ours) {
        return None;
    }
    // The common entries are copied, then theirs come before ours, because theirs are already stored.
    let mut merged = Conversation::new();
    for entry in log.entries().take(index(revision)) {
        match entry {
            Entry::Message(message) => drop(merged.push(message.clone())),
            Entry::Event(event) => merged.record(event.clone()),
        }
    }
    let mut all = theirs.into_iter().chain(ours.iter().cloned());
    all.try_for_each(|event| merged.apply_event(event)).ok()?;
    Some(merged)
}

/// Returns true if the error is a conflict with a writer who appended after this revision.
fn is_behind(error: &Error, revision: u64) -> bool {
    error.conflict().is_some_and(|conflict| conflict.found > revision)
}

pub(crate) fn check_id(id: &str) -> Result<(), Error> {
    let detail = match id {
        "" => "is empty; expected 1 to 1,000 bytes",
        _ if id.len() > ID_BYTES => "is longer than 1,000 bytes; expected 1 to 1,000 bytes",
        _ if id.contains('\0') => "contains a NUL character; expected an id without it",
        _ => return Ok(()),
    };
    Err(Error::input("id of a session", detail))
}

pub(crate) fn conflict(id: &str, expected: u64, found: u64) -> Error {
    Error::new(Repr::Conflict(Conflict { session: id.into(), expected, found }))
}

fn id_taken_error(id: &str) -> Error {
    let detail = "exists already; expected a new id";
    Error::input(format!("session `{}`", id.escape_debug()), detail)
}

/// Converts the number of an entry to an index in memory. No conversation has more entries than `usize::MAX`.
fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
