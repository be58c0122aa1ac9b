//! Sessions in one SQLite file, with a write-ahead log that is synced at each commit. There is one writer at
//! a time.

use super::{
    backend::{AppendOutcome, Backend, Columns, Forked, KnownState, RowCallback, SessionRow},
    entry::{Batch, Row, SentPrompt},
    schema,
    summary::{ListOptions, SessionSummary},
};
use crate::{
    error::{Error, Repr},
    named_file::{NamedFile, create_private, ensure_regular, keep_private_at},
};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior::Immediate, params,
};
use std::{
    fmt::Write as _,
    fs, io,
    ops::Range,
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

/// The maximum time to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between attempts to switch a new file to a write-ahead log. If two programs create the file at
/// once, SQLite fails at once instead of waiting.
const BEGIN_PAUSE: Duration = Duration::from_millis(10);
/// The maximum number of these attempts. All pauses together equal `PATIENCE`.
const BEGIN_TRIES: u32 = 1_000;

/// The advice in an error that leaves open if the transaction is on disk.
const NOT_KNOWN: &str = "The entries may or may not be stored: open the store again, load the session and compare it before you save again";

/// Bytes of a page of a new file. Pages of 4,096 bytes, the default, hold entries of up to 1,002 bytes, and a
/// larger one takes a page of its own.
const PAGE_SIZE: u32 = 8_192;

/// The SQL for the current time of the database's clock, in milliseconds.
const NOW: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";

#[derive(Debug)]
pub(super) struct Sqlite {
    name: String,
    connection: Connection,
    /// The files of a writable store with their identities, because another program may delete or replace
    /// them.
    files: Vec<NamedFile>,
    /// The state of the file when it was opened, if it is read without locks because its folder is not
    /// writable.
    unlocked: Option<Unlocked>,
}

/// A file that is read without locks. Another program may change it unnoticed.
#[derive(Debug)]
struct Unlocked {
    path: String,
    /// The length and modification time of the file, and the length of its write-ahead log.
    seen: (u64, Option<SystemTime>, u64),
}

impl Unlocked {
    fn from_path(path: &str) -> Self {
        let file = fs::metadata(path).ok();
        let length = |data: &fs::Metadata| data.len();
        let log = fs::metadata(format!("{path}-wal")).map_or(0, |log| log.len());
        let (len, time) = (file.as_ref().map_or(0, length), file.and_then(|data| data.modified().ok()));
        Self { path: path.into(), seen: (len, time, log) }
    }

    fn has_changed(&self) -> bool {
        Self::from_path(&self.path).seen != self.seen
    }
}

impl Sqlite {
    /// Opens or creates a file, and migrates its tables to the current version.
    pub(super) fn open(path: &str) -> Result<Self, Error> {
        let name = format!("sqlite:{path}");
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let is_new = !Path::new(path).exists();
        if is_new {
            // SQLite copies the permissions of this file to `-wal` and `-shm`. If creation fails, SQLite
            // reports the reason.
            drop(create_private(Path::new(path)));
        }
        let mut store = Self::connect_by_name(&name, path, flags)?;
        if is_new {
            keep_private_at(Path::new(path));
        }
        store.migrate()?;
        // SQLite places its helper files next to the target of a symbolic link.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let beside = ["-wal", "-shm"].map(|end| {
            let mut name = real.clone().into_os_string();
            name.push(end);
            NamedFile::at(Path::new(&name))
        });
        store.files.extend(beside.into_iter().flatten());
        store.check_names("nothing was written")?;
        Ok(store)
    }

    /// Connects to a file, and records its identity.
    fn connect_by_name(name: &str, path: &str, flags: OpenFlags) -> Result<Self, Error> {
        // On a layered file system (overlayfs), the file's identity may change once when it is first opened
        // for writing. A second attempt finds it stable.
        for _ in 0..2 {
            let before = NamedFile::at(Path::new(path));
            let store = Self::connect(name.into(), path, flags)?;
            let file = NamedFile::at(Path::new(path));
            if file.is_some() && file == before {
                return Ok(Self { files: file.into_iter().collect(), ..store });
            }
        }
        let detail = "was replaced by another file while it was opened; try again".into();
        Err(Error::new(Repr::Store { place: name.into(), detail }))
    }

    /// Checks that the names of the store's files still refer to the open files.
    fn check_names(&self, so_far: &str) -> Result<(), Error> {
        self.files.iter().try_for_each(NamedFile::check).map_err(|fault| {
            let detail = format!("{fault}; {so_far}: open the store again and save the conversation there");
            Error::new(Repr::Store { place: self.name.clone(), detail })
        })
    }

    /// Opens an existing file for reading only.
    pub(super) fn open_read_only(path: &str) -> Result<Self, Error> {
        let name = format!("sqlite:{path}");
        if let Err(error) = fs::metadata(path) {
            let detail = match error.kind() {
                io::ErrorKind::NotFound => "does not exist; expected the file of a store".into(),
                _ => format!("cannot be read: {error}"),
            };
            return Err(Error::new(Repr::Store { place: name, detail }));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Self::connect(name.clone(), path, flags)?;
        let version = match store.version() {
            // The index of the write-ahead log cannot be created in a folder that is not writable. Without a
            // write-ahead log, the file alone contains the whole store.
            Err(error)
                if matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) =>
            {
                return Self::open_unlocked(name, path);
            }
            version => version.map_err(|error| store.fault("cannot be read", &error))?,
        };
        schema::readable(&store.name, version)?;
        Ok(store)
    }

    /// Opens a file without locks. Fails if it has a write-ahead log, whose entries would be missed.
    fn open_unlocked(name: String, path: &str) -> Result<Self, Error> {
        let unlocked = Unlocked::from_path(path);
        if unlocked.seen.2 > 0 {
            let detail =
                "cannot be read: another program is writing it, and its folder is not writable; read a copy";
            return Err(Error::new(Repr::Store { place: name, detail: detail.into() }));
        }
        // `immutable` makes SQLite read without locks and without helper files.
        let uri = format!("file:{}?immutable=1", escaped(path));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let store = Self::connect(name, &uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
        let store = Self { unlocked: Some(unlocked), ..store };
        let version = store.version().map_err(|error| store.fault("cannot be read", &error))?;
        schema::readable(&store.name, version)?;
        Ok(store)
    }

    /// Runs a read on one snapshot. A file that is read without locks is opened again if it has changed.
    fn read_settled<T>(&mut self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let changed = self.unlocked.as_ref().filter(|unlocked| unlocked.has_changed());
        if let Some(path) = changed.map(|unlocked| unlocked.path.clone()) {
            *self = Self::open_unlocked(self.name.clone(), &path)?;
        }
        let found = read(&self.connection);
        // Without locks, a change during the read would mix two states, so the result is discarded.
        if self.unlocked.as_ref().is_some_and(Unlocked::has_changed) {
            let detail = "was changed by another program while it was read; try again".into();
            return Err(Error::new(Repr::Store { place: self.name.clone(), detail }));
        }
        found.map_err(|error| self.fault("cannot be read", &error))
    }

    /// Connects to a regular file, with a busy timeout.
    fn connect(name: String, path: &str, flags: OpenFlags) -> Result<Self, Error> {
        let fault = |detail: String| Error::new(Repr::Store { place: name.clone(), detail });
        ensure_regular(Path::new(path)).map_err(&fault)?;
        let connection = Connection::open_with_flags(path, flags)
            .and_then(|connection| connection.busy_timeout(PATIENCE).map(|()| connection))
            .map_err(|error| fault(format!("cannot be opened: {}", error_text(&error))))?;
        Ok(Self { name, connection, files: Vec::new(), unlocked: None })
    }

    /// Applies the pending migrations.
    fn migrate(&mut self) -> Result<(), Error> {
        match self.prepare()? {
            Some(schema::VERSION) => return Ok(()),
            Some(newer) if newer > schema::VERSION => {
                return schema::pending(&self.name, newer, &schema::SQLITE).map(drop);
            }
            _ => {}
        }
        let name = self.name.clone();
        self.write("its tables cannot be created", |transaction| {
            transaction.execute(schema::CREATE, ())?;
            // Inside the transaction the version is read again: another program may have migrated the tables
            // meanwhile.
            let version = transaction.query_row(schema::NEWEST, (), |row| row.get(0))?;
            Ok(match schema::pending(&name, version, &schema::SQLITE) {
                Err(error) => Err(error),
                Ok(pending) => {
                    for (version, sql) in pending {
                        transaction.execute_batch(sql)?;
                        transaction.execute("INSERT INTO cw_schema (version) VALUES (?1)", [version])?;
                    }
                    Ok(())
                }
            })
        })?
    }

    /// Returns the version of the tables. If this program supports it, also sets up the connection for
    /// writing.
    fn prepare(&self) -> Result<Option<i64>, Error> {
        // Each attempt returns at once if the file is busy. All attempts together take as long as the usual
        // wait for a writer.
        let prepared = self.connection.busy_timeout(Duration::ZERO).and_then(|()| {
            let mut tries = 0;
            loop {
                match self.try_to_prepare() {
                    Err(error) if is_busy(&error) && tries < BEGIN_TRIES => {
                        tries += 1;
                        thread::sleep(BEGIN_PAUSE);
                    }
                    done => return done,
                }
            }
        });
        let prepared = prepared.and_then(|version| self.connection.busy_timeout(PATIENCE).map(|()| version));
        prepared.map_err(|error| self.fault("cannot be opened", &error))
    }

    fn try_to_prepare(&self) -> rusqlite::Result<Option<i64>> {
        // The first read shows if this is a database, and its version, before anything is written to it.
        let version = self.version()?;
        if version.is_none_or(|version| version <= schema::VERSION) {
            // Only a new file gets this size.
            self.connection.pragma_update(None, "page_size", PAGE_SIZE)?;
            for (name, value) in [("journal_mode", "wal"), ("synchronous", "full"), ("foreign_keys", "on")] {
                self.connection.pragma_update(None, name, value)?;
            }
        }
        Ok(version)
    }

    /// Returns the version of the tables, or `None` if the file has no tables of a store.
    fn version(&self) -> rusqlite::Result<Option<i64>> {
        let ours = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'cw_schema'";
        if self.connection.query_row(ours, (), |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        self.connection.query_row(schema::NEWEST, (), |row| row.get(0)).map(Some)
    }

    /// Runs one write transaction, which is applied completely or not at all.
    fn write<T>(
        &mut self,
        what: &str,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.ensure_named()?;
        let mut is_committing = false;
        let done = self.connection.transaction_with_behavior(Immediate).and_then(|transaction| {
            let done = work(&transaction)?;
            is_committing = true;
            transaction.commit()?;
            Ok(done)
        });
        match done {
            Ok(done) => {
                // If the file lost its name during the write, the changes are unreachable and must not be
                // confirmed.
                self.check_names("no write was confirmed")?;
                Ok(done)
            }
            // If the sync fails, the write-ahead log may still contain the commit, and SQLite finds it after
            // a crash. A lock or a full disk fails earlier, so the outcome is known.
            Err(error) if is_committing && !is_before_commit(&error) => {
                let detail = format!("{what}: {error}. {NOT_KNOWN}");
                Err(Error::new(Repr::Store { place: self.name.clone(), detail }))
            }
            Err(error) => Err(self.fault(what, &error)),
        }
    }

    fn fault(&self, what: &str, error: &rusqlite::Error) -> Error {
        Error::new(Repr::Store { place: self.name.clone(), detail: format!("{what}: {}", error_text(error)) })
    }
}

/// Returns the error text of SQLite with advice.
fn error_text(error: &rusqlite::Error) -> String {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "; another program has locked it for 10 s; try again"
        }
        Some(ErrorCode::DiskFull) => "; nothing was written; free some space and try again",
        Some(ErrorCode::ReadOnly) => {
            "; nothing was written; expected a readable and writable file and folder"
        }
        Some(ErrorCode::NotADatabase) => "; expected a file written by a store, or a new file",
        Some(ErrorCode::CannotOpen) => "; expected an existing folder, readable and writable",
        Some(ErrorCode::DatabaseCorrupt) => "; the file is damaged; restore it from a copy",
        _ => "",
    };
    format!("{error}{advice}")
}

/// Returns true if a failed commit certainly wrote nothing.
fn is_before_commit(error: &rusqlite::Error) -> bool {
    is_busy(error) || error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Percent-encodes a path for a URI.
fn escaped(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(byte.into()),
            _ => drop(write!(uri, "%{byte:02x}")),
        }
    }
    uri
}

/// Converts a number of entries to an SQL integer. Numbers in real stores are far smaller; a saturated number
/// matches no row.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn count(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or_default())
}

/// Reads an entry from the columns number, kind, checksum, outline and entry.
fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        n: count(row, 0)?,
        kind: text(row, 1)?.unwrap_or_default(),
        sum: text(row, 2)?.unwrap_or_default(),
        outline: text(row, 3)?,
        entry: text(row, 4)?,
    })
}

/// Returns a text column. Invalid UTF-8 means damage: it is replaced here, and the checksum then does not
/// match.
fn text(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    let bytes = row.get_ref(at)?.as_bytes_or_null()?;
    // A check of the whole is faster than the search for invalid parts.
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    Ok(bytes.map(text))
}

/// Returns the row of a session with the items of its newest prompt.
fn head(connection: &Connection, id: &str) -> rusqlite::Result<Option<SessionRow>> {
    let sql = "SELECT key, next, sent, items, messages, model, tokens
               FROM cw_session LEFT JOIN cw_prompt ON session = key WHERE id = ?1";
    let head = |row: &rusqlite::Row<'_>| {
        let sent = row.get::<_, Option<i64>>(2)?.map(|n| u64::try_from(n).unwrap_or_default());
        Ok(SessionRow {
            key: row.get(0)?,
            next: count(row, 1)?,
            messages: count(row, 4)?,
            sent,
            items: row.get(3)?,
            model: row.get(5)?,
            tokens: row.get::<_, Option<i64>>(6)?.map(|tokens| u64::try_from(tokens).unwrap_or_default()),
        })
    };
    connection.prepare_cached(sql)?.query_row([id], head).optional()
}

/// Passes the entries of a range to `each`. The inner error comes from `each`, the outer one from the
/// database.
fn each_row(
    connection: &Connection,
    head: &SessionRow,
    range: Range<u64>,
    columns: Columns,
    each: &mut RowCallback<'_>,
) -> rusqlite::Result<Result<(), Error>> {
    let entry = match columns {
        Columns::Entry | Columns::Texts => "entry",
        // The texts of messages are the bulk of the data, so they are not read for outlines.
        Columns::Outlines => "CASE WHEN kind <> 'message' THEN entry END",
    };
    let outline = if columns == Columns::Texts { "NULL" } else { "outline" };
    let sql = format!(
        "SELECT n, kind, sum, {outline}, {entry} FROM cw_entry WHERE session = ?1 AND n >= ?2 AND n < ?3 ORDER BY n"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![head.key, number(range.start), number(range.end)])?;
    while let Some(row) = rows.next()? {
        if let Err(error) = each(head, self::row(row)?) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Updates the session's row for a new prompt, and replaces the stored items by those of that prompt.
fn write_sent(transaction: &Transaction<'_>, key: i64, sent: &SentPrompt) -> rusqlite::Result<()> {
    let at = sent.items.as_ref().map(|_| number(sent.n));
    let sql = "UPDATE cw_session SET model = ?2, tokens = ?3, sent = ?4 WHERE key = ?1";
    transaction.prepare_cached(sql)?.execute(params![key, sent.model, number(sent.tokens), at])?;
    // Items of an earlier prompt must not remain with a newer one.
    let Some(items) = &sent.items else {
        return transaction.execute("DELETE FROM cw_prompt WHERE session = ?1", [key]).map(drop);
    };
    let sql = "INSERT INTO cw_prompt (session, items) VALUES (?1, ?2)
               ON CONFLICT (session) DO UPDATE SET items = excluded.items";
    transaction.prepare_cached(sql)?.execute(params![key, items]).map(drop)
}

const SUMMARY: &str = "SELECT id, model, messages, next, tokens, updated, archived FROM cw_session";

fn summary(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionSummary> {
    let tokens = row.get::<_, Option<i64>>(4)?.map(|tokens| u64::try_from(tokens).unwrap_or_default());
    Ok(SessionSummary {
        id: row.get(0)?,
        model: row.get(1)?,
        messages: count(row, 2)?,
        revision: count(row, 3)?,
        tokens,
        updated: row.get(5)?,
        archived: row.get(6)?,
    })
}

impl Backend for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn ensure_named(&self) -> Result<(), Error> {
        self.check_names("nothing was written")
    }

    fn append(&mut self, id: &str, known: KnownState, batch: &Batch) -> Result<AppendOutcome, Error> {
        let KnownState { key: known, next: expected } = known;
        // The row of the session is updated first. Its WHERE clause compares the expected number of entries,
        // so that a conflict writes nothing.
        self.write("cannot be written", |transaction| {
            if expected == 0 && known.is_none() {
                let begin =
                    format!("INSERT INTO cw_session (id, updated) VALUES (?1, {NOW}) ON CONFLICT (id) DO NOTHING");
                transaction.prepare_cached(&begin)?.execute([id])?;
            }
            let advance = format!(
                "UPDATE cw_session SET next = next + ?3, messages = messages + ?4, updated = {NOW}
                 WHERE id = ?1 AND next = ?2 AND key = coalesce(?5, key) RETURNING key"
            );
            let (added, messages) = (number(batch.rows.len() as u64), number(batch.messages));
            let key: Option<i64> = transaction
                .prepare_cached(&advance)?
                .query_row(params![id, number(expected), added, messages, known], |row| row.get(0))
                .optional()?;
            let Some(key) = key else {
                return Ok(AppendOutcome::Conflict(head(transaction, id)?.map_or(0, |head| head.next)));
            };
            let sql = "INSERT INTO cw_entry (session, n, kind, sum, outline, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let mut insert = transaction.prepare_cached(sql)?;
            for row in &batch.rows {
                insert.execute(params![key, number(row.n), row.kind, row.sum, row.outline, row.entry])?;
            }
            if let Some(sent) = &batch.sent {
                write_sent(transaction, key, sent)?;
            }
            Ok(AppendOutcome::Appended)
        })
    }

    fn head(&mut self, id: &str) -> Result<Option<SessionRow>, Error> {
        self.read_settled(|connection| head(connection, id))
    }

    fn read(
        &mut self,
        id: &str,
        from: u64,
        columns: Columns,
        each: &mut RowCallback<'_>,
    ) -> Result<Option<SessionRow>, Error> {
        self.read_settled(|connection| {
            // Reads of one transaction see one snapshot.
            let transaction = connection.unchecked_transaction()?;
            let Some(head) = head(&transaction, id)? else { return Ok(Ok(None)) };
            let rows = each_row(&transaction, &head, from..u64::MAX, columns, each)?;
            Ok(rows.map(|()| Some(head)))
        })?
    }

    fn rows(
        &mut self,
        head: &SessionRow,
        entries: &[Range<u64>],
        each: &mut RowCallback<'_>,
    ) -> Result<(), Error> {
        self.read_settled(|connection| {
            for range in entries {
                if let Err(error) = each_row(connection, head, range.clone(), Columns::Texts, each)? {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })?
    }

    fn row(&mut self, id: &str, n: u64) -> Result<Option<(i64, Row)>, Error> {
        let sql = "SELECT n, kind, sum, outline, entry, key
                   FROM cw_entry JOIN cw_session ON key = session WHERE id = ?1 AND n = ?2";
        let both = |found: &rusqlite::Row<'_>| Ok((found.get(5)?, row(found)?));
        self.read_settled(|connection| {
            connection.prepare_cached(sql)?.query_row(params![id, number(n)], both).optional()
        })
    }

    fn list(&mut self, options: &ListOptions) -> Result<Vec<SessionSummary>, Error> {
        self.read_settled(|connection| {
            let page = if options.after.is_some() { "AND (updated, id) < (?3, ?4)" } else { "" };
            let sql = format!("{SUMMARY} WHERE archived = ?1 {page} ORDER BY updated DESC, id DESC LIMIT ?2");
            let mut statement = connection.prepare_cached(&sql)?;
            match &options.after {
                None => statement.query_map(params![options.archived, options.limit], summary)?.collect(),
                Some((updated, id)) => statement
                    .query_map(params![options.archived, options.limit, updated, id], summary)?
                    .collect(),
            }
        })
    }

    fn summary(&mut self, id: &str) -> Result<Option<SessionSummary>, Error> {
        let sql = format!("{SUMMARY} WHERE id = ?1");
        self.read_settled(|connection| connection.query_row(&sql, [id], summary).optional())
    }

    fn fork(&mut self, id: &str, at: u64, new: &str) -> Result<Forked, Error> {
        self.write("cannot be written", |transaction| {
            let Some(from) = head(transaction, id)? else { return Ok(Forked::Missing) };
            if at > from.next {
                return Ok(Forked::Shorter(from.next));
            }
            let begin = format!(
                "INSERT INTO cw_session (id, next, messages, updated)
                 SELECT ?1, ?3, count(*), {NOW} FROM cw_entry WHERE session = ?2 AND n < ?3 AND kind = 'message'
                 ON CONFLICT (id) DO NOTHING RETURNING key"
            );
            let key: Option<i64> =
                transaction.query_row(&begin, params![new, from.key, number(at)], |row| row.get(0)).optional()?;
            let Some(key) = key else { return Ok(Forked::Taken) };
            let copy = "INSERT INTO cw_entry (session, n, kind, sum, outline, entry)
                        SELECT ?1, n, kind, sum, outline, entry FROM cw_entry WHERE session = ?2 AND n < ?3";
            transaction.execute(copy, params![key, from.key, number(at)])?;
            let newest = "SELECT n, entry FROM cw_entry WHERE session = ?1 AND kind = 'sent' ORDER BY n DESC LIMIT 1";
            let newest: Option<(u64, String)> = transaction
                .query_row(newest, [key], |row| Ok((count(row, 0)?, row.get(1)?)))
                .optional()?;
            if let Some(mut sent) = newest.and_then(|(n, entry)| SentPrompt::from_stored(n, &entry)) {
                // Only the newest prompt of a conversation keeps its items.
                sent.items = from.items.filter(|_| from.sent == Some(sent.n));
                write_sent(transaction, key, &sent)?;
            }
            Ok(Forked::Done)
        })
    }

    fn set_archived(&mut self, id: &str, archived: bool) -> Result<bool, Error> {
        let sql = "UPDATE cw_session SET archived = ?2 WHERE id = ?1";
        self.write("cannot be written", |transaction| {
            transaction.execute(sql, params![id, archived]).map(|rows| rows > 0)
        })
    }

    fn delete(&mut self, id: &str) -> Result<bool, Error> {
        self.write("cannot be written", |transaction| {
            transaction.execute("DELETE FROM cw_session WHERE id = ?1", [id]).map(|rows| rows > 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test cannot cut the power, so this checks the settings on which the durability of SQLite depends.
    #[test]
    fn a_commit_is_synced() {
        let path = std::env::temp_dir().join(format!("context-window-synced-{}.db", std::process::id()));
        let store = Sqlite::open(path.to_str().unwrap()).unwrap();
        let pragma = |name: &str| -> String {
            let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
            store.connection.query_row(&sql, (), |row| row.get(0)).unwrap()
        };
        let names = ["page_size", "journal_mode", "synchronous", "foreign_keys"];
        assert_eq!(names.map(pragma), ["8192", "wal", "2", "1"]);
        drop(store);
        for end in ["", "-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{end}", path.display())));
        }
    }
}
