//! Sessions in a database, for many writers.

use crate::error::{Error, Repr};
use crate::journal::Journal;
use context_window::{Conversation, conversation::Entry, events::LogEvent};
use std::{fmt, path::Path};

use crate::address::Address;
use crate::backend::{Backend, Columns, Each, Forked, Head, Known, Written};
use crate::check::{Checking, SessionCheck};
use crate::conflict::Conflict;
use crate::entry::{Batch, Row, SessionName};
use crate::reading::{Left, Loading, Reading};
use crate::summary::{ListOptions, SessionSummary};

/// How often a change is tried again that others overtook. Each time somebody else's was written.
const TRIES: u32 = 1_000;

/// More entries than any session has, and few enough for the numbers of both databases.
const MOST_ENTRIES: u64 = 1 << 62;

/// The longest id of a session, in bytes: what every database takes as the key of an index.
const ID_BYTES: usize = 1_000;

/// Sessions in SQLite or PostgreSQL.
///
/// One value is one connection, for one thread at a time; other threads and processes open their own. What a call confirmed
/// is on disk, and a call that failed wrote nothing, unless its error says that this is not known. Revisions are numbers of
/// entries: a session that holds `n` entries is at revision `n`.
pub struct SessionStore {
    backend: Box<dyn Backend>,
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionStore").field(&self.backend.name()).finish()
    }
}

impl SessionStore {
    /// Opens a store, and makes it where there is none: `sqlite:FILE` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    /// Only its owner may read a new file.
    /// Tables of an earlier version are brought to today's form; while one program does, others wait.
    ///
    /// PostgreSQL: version 13 or later, a database in UTF8. Without the feature `postgres-tls` nothing is encrypted on the
    /// way, and `sslmode=require` is an error.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Store` where the address is not understood or this program was built without its database; where the file
    /// or the server cannot be opened; and where the tables are of a later version, which changes nothing. No error quotes a
    /// password.
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

    /// Opens a store that is there, and writes nothing to it: no tables are made. Beside the file of an SQLite store, SQLite may
    /// leave its helper files `-wal` and `-shm`.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::open`]; also where it holds no sessions, or tables of an earlier version.
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

    /// What names the store in errors: the file, or the server and the database. No user and no password is in it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// Whether a text is the address of a store rather than the name of a file.
    #[must_use]
    pub fn is_address(text: &str) -> bool {
        Address::is_one(text)
    }

    /// Appends entries to a session that holds `expected` of them, all or none, and gives its new revision. 0 begins it.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Conflict` where it holds more or fewer ([`Error::conflict`] says how many); `Input` for an id that is
    /// empty, longer than 1,000 bytes or has a NUL character; `NotLoaded` for a message whose text is not here; `Store` where
    /// the database refuses, or its file was deleted or replaced while it was open. Nothing is written then, unless the error
    /// says that this is not known. Entries are not compared with those before them: [`SessionStore::save`]
    /// writes what a conversation is known to allow.
    pub fn append(
        &mut self,
        id: &str,
        expected: u64,
        events: impl IntoIterator<Item = LogEvent>,
    ) -> Result<u64, Error> {
        self.append_to(id, Known { key: None, next: expected }, events)
    }

    fn append_to(
        &mut self,
        id: &str,
        known: Known,
        events: impl IntoIterator<Item = LogEvent>,
    ) -> Result<u64, Error> {
        check_id(id)?;
        let expected = known.next;
        if expected > MOST_ENTRIES {
            return Err(conflict(id, expected, self.next_of(id)?));
        }
        let batch = Batch::of(expected, events)?;
        if batch.rows.is_empty() {
            self.backend.ensure_named()?;
            let found = self.next_of(id)?;
            return if found == expected { Ok(expected) } else { Err(conflict(id, expected, found)) };
        }
        self.write(id, known, &batch)
    }

    fn write(&mut self, id: &str, known: Known, batch: &Batch) -> Result<u64, Error> {
        match self.backend.append(id, known, batch)? {
            Written::Yes => Ok(batch.next(known.next)),
            Written::No(found) => Err(conflict(id, known.next, found)),
        }
    }

    /// How many entries a session holds; 0 where there is none.
    fn next_of(&mut self, id: &str) -> Result<u64, Error> {
        Ok(self.backend.head(id)?.map_or(0, |head| head.next))
    }

    /// Appends what a conversation has beyond `revision`, which is where it was loaded or saved last, and gives the new
    /// revision.
    ///
    /// Where another writer came first and both can stand one after the other, the conversation takes in what that writer
    /// wrote, and its own entries come behind it. They can where no item is touched by both, at most one of them has
    /// messages, compactions or rewinds, at most one a sent prompt, and at most one changes the level of use: a pin beside a
    /// reply, a report beside a question.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::append`]: a conflict where they cannot. `ErrorKind::Input` where the entry before `revision` is another
    /// one than in the session, or the conversation has fewer. The conversation is as it was then.
    pub fn save(&mut self, id: &str, log: &mut Conversation, revision: u64) -> Result<u64, Error> {
        check_id(id)?;
        let key = self.check_continues(id, log, revision)?;
        let ours: Vec<LogEvent> = log.events_from(index(revision)).collect();
        let (mut known, mut merged) = (Known { key, next: revision }, None);
        for _ in 0..TRIES {
            match self.append_to(id, known, ours.iter().cloned()) {
                Ok(next) => {
                    if let Some(merged) = merged {
                        *log = merged;
                    }
                    return Ok(next);
                }
                Err(error) if is_behind(&error, revision) => {
                    let (theirs, head) = self.since(id, revision)?;
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

    /// Loads a session, changes it and saves it; where another writer came first, the change is made again, to what is there
    /// now. A session that is not there is a new conversation. Gives the conversation and its revision.
    ///
    /// # Errors
    ///
    /// What `change` fails with: nothing is written then. As [`SessionStore::load`] and [`SessionStore::append`]; a conflict
    /// only where 1,000 tries in a row were overtaken.
    pub fn update(
        &mut self,
        id: &str,
        mut change: impl FnMut(&mut Conversation) -> Result<(), Error>,
    ) -> Result<(Conversation, u64), Error> {
        check_id(id)?;
        let (mut base, mut known) = self.load_known(id)?;
        let mut last = None;
        for _ in 0..TRIES {
            let mut log = base.clone();
            change(&mut log)?;
            match self.append_to(id, known, log.events_from(index(known.next))) {
                Ok(next) => return Ok((log, next)),
                Err(error) if error.conflict().is_some() => last = Some(error),
                Err(error) => return Err(error),
            }
            // What is new, where it is still the same session.
            let new = match known.key {
                Some(_) => self.since(id, known.next).ok(),
                None => None,
            };
            match new.filter(|(_, head)| Some(head.key) == known.key) {
                Some((theirs, head)) => {
                    theirs.into_iter().try_for_each(|event| base.apply_event(event))?;
                    known.next = head.next;
                }
                None => (base, known) = self.load_known(id)?,
            }
        }
        Err(last.unwrap_or_else(|| conflict(id, known.next, known.next)))
    }

    /// A session and its revision.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where there is none of this id; `Store` where the database cannot be read, or an entry is missing
    /// or damaged.
    pub fn load(&mut self, id: &str) -> Result<(Conversation, u64), Error> {
        let (log, head) = self.load_whole(id)?.ok_or_else(|| self.missing(id))?;
        Ok((log, head.next))
    }

    /// A session and its revision, or a new conversation at revision 0.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::load`], but for `NotFound`; `ErrorKind::Input` for what can be no id.
    pub fn load_or_new(&mut self, id: &str) -> Result<(Conversation, u64), Error> {
        check_id(id)?;
        let (log, known) = self.load_known(id)?;
        Ok((log, known.next))
    }

    /// The entries that a session got since a revision, and its revision now. [`Conversation::apply_event`] takes them.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::load`]; a conflict where the session holds fewer entries than `revision`.
    pub fn load_since(&mut self, id: &str, revision: u64) -> Result<(Vec<LogEvent>, u64), Error> {
        let (events, head) = self.since(id, revision)?;
        Ok((events, head.next))
    }

    fn since(&mut self, id: &str, revision: u64) -> Result<(Vec<LogEvent>, Head), Error> {
        let mut events = Vec::new();
        let store = self.backend.name().to_owned();
        let mut reading = Reading::from(SessionName { store: &store, id }, revision);
        let mut take = |head: &Head, row: Row| {
            events.push(reading.entry(head, &row)?);
            Ok(())
        };
        let head = self.read(id, revision, Columns::Entry, &mut take)?;
        let head = head.ok_or_else(|| self.missing(id))?;
        if head.next < revision {
            return Err(conflict(id, revision, head.next));
        }
        reading.ends(&head)?;
        Ok((events, head))
    }

    /// A session without the texts of what is archived, and its revision. Plans, usage and compactions are those of the whole
    /// session; what needs one of the texts that were left
    /// ([`Message::is_loaded`](context_window::Message::is_loaded)) fails with `ErrorKind::NotLoaded`, until
    /// [`SessionStore::load_rest`] brought them: pinning an archived message, undoing a compaction, going
    /// back to before one, a replay. Reports and screens say where a text was left.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::load`].
    pub fn load_active(&mut self, id: &str) -> Result<(Conversation, u64), Error> {
        let store = self.backend.name().to_owned();
        let name = SessionName { store: &store, id };
        let mut loading = Loading::new(name);
        let mut take = |head: &Head, row: Row| loading.take_outline(head, &row);
        let head = self.read(id, 0, Columns::Outlines, &mut take)?;
        let head = head.ok_or_else(|| self.missing(id))?;
        loading.ends(&head)?;
        let mut log = loading.log;
        let needed = Left::needed(&log);
        self.backend.rows(&head, &needed.runs(), &mut |_, row| needed.put(&mut log, name, &row))?;
        if !needed.are_loaded(&log) {
            return Err(name.fault("was deleted while it was loaded; nothing of it is left"));
        }
        Ok((log, head.next))
    }

    /// Brings the texts that [`SessionStore::load_active`] left.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::load`]; `ErrorKind::Store` where the session is another one than the conversation. The conversation
    /// is as it was then.
    pub fn load_rest(&mut self, id: &str, log: &mut Conversation) -> Result<(), Error> {
        let left = Left::of(log);
        if left.is_empty() {
            return Ok(());
        }
        let store = self.backend.name().to_owned();
        let name = SessionName { store: &store, id };
        let head = self.backend.head(id)?.ok_or_else(|| self.missing(id))?;
        let mut whole = log.clone();
        self.backend.rows(&head, &left.runs(), &mut |_, row| left.put(&mut whole, name, &row))?;
        if !left.are_loaded(&whole) {
            return Err(name.fault("has fewer entries than the conversation; it was deleted and begun again"));
        }
        *log = whole;
        Ok(())
    }

    /// Sessions, the one that was written last first. [`ListOptions::after`] gets the next page.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Store` where the database cannot be read.
    pub fn list(&mut self, options: &ListOptions) -> Result<Vec<SessionSummary>, Error> {
        self.backend.list(options)
    }

    /// What a list says of one session; none where there is none of this id.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::list`].
    pub fn summary(&mut self, id: &str) -> Result<Option<SessionSummary>, Error> {
        if check_id(id).is_err() { Ok(None) } else { self.backend.summary(id) }
    }

    /// Begins a session `new` with the first `at` entries of another one, which is not changed. As in
    /// [`Conversation::as_of`], what its newest prompt held is known only where that is the newest of the other one too.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where there is no session `id`; `Input` where it has fewer entries, or `new` is taken or no id;
    /// `Store` where the database refuses. Nothing is written then.
    pub fn fork(&mut self, id: &str, at: u64, new: &str) -> Result<(), Error> {
        check_id(new)?;
        self.check_known(id)?;
        match self.backend.fork(id, at, new)? {
            Forked::Done => Ok(()),
            Forked::Missing => Err(self.missing(id)),
            Forked::Shorter(next) => {
                let detail = format!("has {next} entries; expected {at} or more to fork it there");
                Err(Error::input(format!("session `{}`", id.escape_debug()), detail))
            }
            Forked::Taken => Err(taken(new)),
        }
    }

    /// Puts a session away: it is in [`ListOptions::archived`] lists only. Everything else works as before.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where there is none of this id; `Store` where the database refuses.
    pub fn archive(&mut self, id: &str) -> Result<(), Error> {
        self.put_away(id, true)
    }

    /// Takes a session back that was put away.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::archive`].
    pub fn unarchive(&mut self, id: &str) -> Result<(), Error> {
        self.put_away(id, false)
    }

    fn put_away(&mut self, id: &str, archived: bool) -> Result<(), Error> {
        self.check_known(id)?;
        if self.backend.set_archived(id, archived)? { Ok(()) } else { Err(self.missing(id)) }
    }

    /// Deletes a session and all of its entries, for good. Nothing is ever deleted but by this.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where there is none of this id; `Store` where the database refuses.
    pub fn delete(&mut self, id: &str) -> Result<(), Error> {
        self.check_known(id)?;
        if self.backend.delete(id)? { Ok(()) } else { Err(self.missing(id)) }
    }

    /// Begins a session with a conversation that is there already, and gives its revision.
    ///
    /// # Errors
    ///
    /// `ErrorKind::Input` where the id is taken; otherwise as [`SessionStore::append`].
    pub fn import(&mut self, id: &str, log: &Conversation) -> Result<u64, Error> {
        check_id(id)?;
        crate::reading::all_loaded(log)?;
        if self.backend.head(id)?.is_some() {
            return Err(taken(id));
        }
        let written = self.write(id, Known { key: None, next: 0 }, &Batch::of(0, log.events())?);
        written.map_err(|error| if error.conflict().is_some() { taken(id) } else { error })
    }

    /// Begins a session with a log on disk, and gives its revision. The file is only read; an unfinished end that a crash left
    /// is not part of it.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::import`] and [`Journal::read`].
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
    /// As [`SessionStore::load`] and [`Journal::create`].
    pub fn export_journal(&mut self, id: &str, path: impl AsRef<Path>) -> Result<(), Error> {
        let (log, _) = self.load(id)?;
        Journal::create(path, &log).map(drop)
    }

    /// Looks at every entry of a session: numbers, checksums, outlines, whether each can have followed those before it, and
    /// what the session's row says of them. Whole entries that stand in another session are not found.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` where there is none of this id; `Store` where the database cannot be read. Damage is no error
    /// here: [`SessionCheck::faults`].
    pub fn check(&mut self, id: &str) -> Result<SessionCheck, Error> {
        let store = self.backend.name().to_owned();
        let mut checking = Checking::new(SessionName { store: &store, id });
        let mut take = |head: &Head, row: Row| {
            checking.take(head, &row);
            Ok(())
        };
        match self.read(id, 0, Checking::COLUMNS, &mut take)? {
            Some(head) => Ok(checking.done(&head)),
            None => Err(self.missing(id)),
        }
    }

    fn load_whole(&mut self, id: &str) -> Result<Option<(Conversation, Head)>, Error> {
        let store = self.backend.name().to_owned();
        let mut loading = Loading::new(SessionName { store: &store, id });
        let mut take = |head: &Head, row: Row| loading.take(head, &row);
        let Some(head) = self.read(id, 0, Columns::Entry, &mut take)? else { return Ok(None) };
        loading.ends(&head)?;
        Ok(Some((loading.log, head)))
    }

    /// A session, or a new one, and what is known of it.
    fn load_known(&mut self, id: &str) -> Result<(Conversation, Known), Error> {
        let loaded = self.load_whole(id)?;
        Ok(loaded.map_or((Conversation::new(), Known { key: None, next: 0 }), |(log, head)| {
            (log, Known { key: Some(head.key), next: head.next })
        }))
    }

    /// The rows of a session; none where there can be no such session.
    fn read(
        &mut self,
        id: &str,
        from: u64,
        columns: Columns,
        each: &mut Each<'_>,
    ) -> Result<Option<Head>, Error> {
        if check_id(id).is_err() { Ok(None) } else { self.backend.read(id, from, columns, each) }
    }

    /// What can be no id is the id of no session.
    fn check_known(&self, id: &str) -> Result<(), Error> {
        check_id(id).map_err(|_| self.missing(id))
    }

    /// Whether a conversation goes on from what a session holds: its last entry that was saved is the one that is there. Gives
    /// the session's number in the database.
    fn check_continues(&mut self, id: &str, log: &Conversation, revision: u64) -> Result<Option<i64>, Error> {
        let place = || format!("conversation of session `{}`", id.escape_debug());
        let count = log.event_count() as u64;
        if count < revision {
            let detail = format!("has {count} entries; expected {revision} or more, as it was loaded");
            return Err(Error::input(place(), detail));
        }
        let Some(last) = revision.checked_sub(1) else { return Ok(None) };
        let Some((key, row)) = self.backend.row(id, last)? else {
            return Err(conflict(id, revision, self.next_of(id)?));
        };
        let theirs = SessionName { store: self.backend.name(), id }.entry(&row)?;
        let (messages, events) = log.split_at(index(last));
        let ours = log.entries_from(messages, events).next();
        if !ours.is_some_and(|ours| crate::entry::is_stored_as(ours, &theirs, &row)) {
            let detail =
                "is another one than the store holds; expected the conversation that was loaded from it";
            return Err(Error::input(place(), detail));
        }
        Ok(Some(key))
    }

    fn missing(&self, id: &str) -> Error {
        let place = self.backend.name().to_owned();
        Error::new(Repr::NoSession { place, id: id.escape_debug().to_string() })
    }
}

/// What both writers make of a conversation, where theirs and ours can stand one after the other.
fn merge(
    log: &Conversation,
    revision: u64,
    theirs: Vec<LogEvent>,
    ours: &[LogEvent],
) -> Option<Conversation> {
    let known = log.split_at(index(revision)).0 as u64;
    if !crate::commuting::commute(known, &theirs, ours) {
        return None;
    }
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

/// Whether an error says that others wrote after this revision.
fn is_behind(error: &Error, revision: u64) -> bool {
    error.conflict().is_some_and(|conflict| conflict.found > revision)
}

fn check_id(id: &str) -> Result<(), Error> {
    let detail = match id {
        "" => "is empty; expected a name",
        _ if id.len() > ID_BYTES => "is longer than 1,000 bytes; expected a shorter name",
        _ if id.contains('\0') => "holds a NUL character; expected a name without",
        _ => return Ok(()),
    };
    Err(Error::input("id of a session", detail))
}

fn conflict(id: &str, expected: u64, found: u64) -> Error {
    Error::new(Repr::Conflict(Conflict { session: id.into(), expected, found }))
}

fn taken(id: &str) -> Error {
    let detail = "is there already; expected a new id";
    Error::input(format!("session `{}`", id.escape_debug()), detail)
}

/// The number of an entry in memory. No conversation has more than this.
fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
