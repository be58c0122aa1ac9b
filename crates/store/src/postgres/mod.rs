//! Sessions in PostgreSQL, for any number of machines. Each append is applied completely or not at all,
//! mostly in one statement.

use super::{
    backend::{AppendOutcome, Backend, Columns, Forked, KnownState, RowCallback, SessionRow},
    entry::{Batch, Row, SentPrompt},
    schema,
    summary::{ListOptions, SessionSummary},
};
use crate::error::{Error, Repr};
use appending::{Append, chunks};
use connection::is_lost;
use postgres::{
    Client, Config, GenericClient, IsolationLevel, Transaction,
    fallible_iterator::FallibleIterator,
    types::{ToSql, Type},
};
use std::{cell::Cell, ops::Range};

mod connection;
mod appending;

/// A parameter of a statement with its type. An explicit type saves a round trip to the server.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The key of the advisory lock for migrations. It is an arbitrary number that other programs are unlikely to
/// use.
const MIGRATION_LOCK: i64 = 0x6377_5f73_746f_7265;

pub(super) struct Postgres {
    name: String,
    config: Config,
    client: Client,
    reads_only: bool,
    /// A unique name of this connection. It distinguishes its writes from those of others.
    writer: String,
    /// The number of appends that this connection has started.
    appends: u64,
}

impl Postgres {
    /// Connects, and migrates the tables to the current version.
    pub(super) fn open(address: &str) -> Result<Self, Error> {
        let mut store = Self::connect(address, false)?;
        store.migrate()?;
        Ok(store)
    }

    /// Connects to an existing store for reading only.
    pub(super) fn open_read_only(address: &str) -> Result<Self, Error> {
        let mut store = Self::connect(address, true)?;
        let version = store.version().map_err(|error| store.fault("cannot be read", &error))?;
        schema::readable(&store.name, version)?;
        Ok(store)
    }

    fn connect(address: &str, reads_only: bool) -> Result<Self, Error> {
        let config = connection::settings(address)?;
        let name = connection::name(&config);
        let (client, writer) = connection::connect_for(&name, &config, reads_only)?;
        Ok(Self { name, config, client, reads_only, writer, appends: 0 })
    }

    fn reconnect(&mut self) -> Result<(), Error> {
        (self.client, self.writer) = connection::connect_for(&self.name, &self.config, self.reads_only)?;
        Ok(())
    }

    /// Returns the connection. Connects again if it was closed while idle.
    fn client(&mut self) -> Result<&mut Client, Error> {
        if self.client.is_closed() {
            self.reconnect()?;
        }
        Ok(&mut self.client)
    }

    /// Applies the pending migrations.
    fn migrate(&mut self) -> Result<(), Error> {
        let version = self.version().map_err(|error| self.fault("cannot be read", &error))?;
        match version {
            Some(schema::VERSION) => return Ok(()),
            Some(newer) if newer > schema::VERSION => {
                return schema::pending(&self.name, newer, &schema::POSTGRES).map(drop);
            }
            _ => {}
        }
        let name = self.name.clone();
        let made = (|| {
            let mut transaction = self.client.transaction()?;
            // A statement sees the commits before its start, so the lock must be taken in a statement of its
            // own.
            transaction
                .execute_typed("SELECT pg_advisory_xact_lock($1)", &[(&MIGRATION_LOCK, Type::INT8)])?;
            transaction.batch_execute(schema::CREATE)?;
            // The version is read again under the lock: another program may have migrated the tables
            // meanwhile.
            let version = newest_version(&mut transaction)?;
            let pending = match schema::pending(&name, version, &schema::POSTGRES) {
                Ok(pending) => pending,
                Err(error) => return Ok(Err(error)),
            };
            for (version, sql) in pending {
                transaction.batch_execute(sql)?;
                let made = "INSERT INTO cw_schema (version) VALUES ($1)";
                transaction.execute_typed(made, &[(&version, Type::INT8)])?;
            }
            transaction.commit().map(Ok)
        })();
        made.map_err(|error| self.fault("its tables cannot be created", &error))?
    }

    /// Returns the version of the tables, or `None` if the database has no tables of a store.
    fn version(&mut self) -> Result<Option<i64>, postgres::Error> {
        let row = self.client.query_typed_one("SELECT to_regclass('cw_schema') IS NOT NULL", &[])?;
        if !row.try_get::<_, bool>(0)? {
            return Ok(None);
        }
        newest_version(&mut self.client).map(Some)
    }

    fn fault(&self, what: &str, error: &postgres::Error) -> Error {
        connection::fault(&self.name, what, error)
    }

    /// Runs an operation that may safely run twice. If the connection is lost, connects again and repeats it.
    fn with_reconnect<T>(
        &mut self,
        what: &str,
        mut work: impl FnMut(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        match work(self.client()?) {
            Err(error) if is_lost(&self.client, &error) => {
                self.reconnect()?;
                work(&mut self.client).map_err(|error| self.fault(what, &error))
            }
            done => done.map_err(|error| self.fault(what, &error)),
        }
    }

    /// Reads rows in one transaction on one snapshot. After a lost connection, the read is repeated only if
    /// no row was passed to `each` yet.
    fn stream(
        &mut self,
        each: &mut RowCallback<'_>,
        work: impl Fn(
            &mut Transaction<'_>,
            &mut RowCallback<'_>,
        ) -> Result<Result<Option<SessionRow>, Error>, postgres::Error>,
    ) -> Result<Option<SessionRow>, Error> {
        let begun = Cell::new(false);
        let mut each = |head: &SessionRow, row: Row| {
            begun.set(true);
            each(head, row)
        };
        let mut read = |client: &mut Client| {
            let builder = client.build_transaction().read_only(true);
            let mut transaction = builder.isolation_level(IsolationLevel::RepeatableRead).start()?;
            work(&mut transaction, &mut each)
        };
        let mut done = read(self.client()?);
        if let Err(error) = &done
            && is_lost(&self.client, error)
        {
            self.reconnect()?;
            // `each` may have changed its caller's state already, so rows must not arrive twice.
            if !begun.get() {
                done = read(&mut self.client);
            }
        }
        done.map_err(|error| self.fault("cannot be read", &error))?
    }

    /// Appends once. Returns false if the session has another number of entries.
    fn append_once(&mut self, append: &Append<'_>) -> Result<bool, postgres::Error> {
        let chunks = chunks(&append.batch.rows);
        let [first, rest @ ..] = chunks.as_slice() else { return append.first(&mut self.client, &[]) };
        if rest.is_empty() {
            return append.first(&mut self.client, first);
        }
        // Several statements need a transaction, so that the append stays complete or absent.
        let mut transaction = self.client.transaction()?;
        if !append.first(&mut transaction, first)? {
            return Ok(false);
        }
        rest.iter().try_for_each(|chunk| append.further(&mut transaction, chunk))?;
        transaction.commit().map(|()| true)
    }

    /// Repeats an append on a new connection, after the old one was lost before it returned a result.
    fn append_again(&mut self, append: &Append<'_>) -> Result<bool, Error> {
        self.reconnect()?;
        // A failed second attempt may mean that the first one was committed: its entries would be in the way.
        let done = self.append_once(append).and_then(|done| Ok(done || self.was_written(append)?));
        done.map_err(|error| self.fault("cannot be written", &error))
    }

    /// Returns the error for an append with an unknown outcome.
    fn unknown(&self, id: &str, why: &Error) -> Error {
        let detail = format!(
            "the connection was lost while session `{}` was written, and a second attempt failed too: {why}. The entries may or may not be stored; load the session to check",
            id.escape_debug()
        );
        Error::new(Repr::Store { place: self.name.clone(), detail })
    }

    /// Ensures that the connection works, before an operation that must not run twice.
    fn ensure_connected(&mut self) -> Result<(), Error> {
        self.with_reconnect("cannot be connected to", |client| client.batch_execute("SELECT 1"))
    }

    /// Checks if this append was written although its confirmation was lost. Compares the writer's name at
    /// the first entry.
    fn was_written(&mut self, append: &Append<'_>) -> Result<bool, postgres::Error> {
        let sql = "SELECT writer FROM cw_entry JOIN cw_session ON key = session WHERE id = $1 AND n = $2";
        let row =
            self.client.query_typed_opt(sql, &[(&append.id, Type::TEXT), (&append.expected, Type::INT8)])?;
        let writer = row.map(|row| row.try_get::<_, Option<String>>(0)).transpose()?.flatten();
        Ok(writer.as_deref() == Some(&append.writer))
    }
}

/// Converts a number of entries to an SQL integer. Numbers in real stores are far smaller; a saturated number
/// matches no row.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}

fn newest_version(client: &mut impl GenericClient) -> Result<i64, postgres::Error> {
    client.query_typed(schema::NEWEST, &[])?.first().map_or(Ok(0), |row| row.try_get(0))
}

/// Reads an entry from the columns number, kind, checksum, outline and entry.
fn row(row: &postgres::Row) -> Result<Row, postgres::Error> {
    Ok(Row {
        n: count(row.try_get(0)?),
        kind: row.try_get(1)?,
        sum: row.try_get(2)?,
        outline: row.try_get(3)?,
        entry: row.try_get(4)?,
    })
}

/// Returns the row of a session with the items of its newest prompt. `lock` is a locking clause or empty.
fn head(
    client: &mut impl GenericClient,
    id: &str,
    lock: &str,
) -> Result<Option<SessionRow>, postgres::Error> {
    let sql = format!(
        "SELECT key, next, sent, items, messages, model, tokens
         FROM cw_session AS s LEFT JOIN cw_prompt ON session = key WHERE id = $1 {lock}"
    );
    let rows = client.query_typed(&sql, &[(&id, Type::TEXT)])?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some(SessionRow {
        key: row.try_get(0)?,
        next: count(row.try_get(1)?),
        sent: row.try_get::<_, Option<i64>>(2)?.map(count),
        items: row.try_get(3)?,
        messages: count(row.try_get(4)?),
        model: row.try_get(5)?,
        tokens: row.try_get::<_, Option<i64>>(6)?.map(count),
    }))
}

/// Passes the entries of a range to `each`. The inner error comes from `each`, the outer one from the
/// database.
fn each_row(
    transaction: &mut Transaction<'_>,
    head: &SessionRow,
    range: Range<u64>,
    columns: Columns,
    each: &mut RowCallback<'_>,
) -> Result<Result<(), Error>, postgres::Error> {
    let entry = match columns {
        Columns::Entry | Columns::Texts => "entry",
        Columns::Outlines => "CASE WHEN kind <> 'message' THEN entry END",
    };
    let outline = if columns == Columns::Texts { "NULL::text" } else { "outline" };
    let sql = format!(
        "SELECT n, kind, sum, {outline}, {entry} FROM cw_entry WHERE session = $1 AND n >= $2 AND n < $3 ORDER BY n"
    );
    let parameters = [head.key, number(range.start), number(range.end)].map(|number| (number, Type::INT8));
    // Rows are streamed, so that a long session is not held in memory twice.
    let mut rows = transaction.query_typed_raw(&sql, parameters)?;
    while let Some(row) = rows.next()? {
        if let Err(error) = each(head, self::row(&row)?) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// The SQL for session summaries. Times have microseconds, in the format of the SQLite store.
const SUMMARY: &str = r#"SELECT id, model, messages, next, tokens,
    to_char(updated AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), archived FROM cw_session"#;

fn summary(row: &postgres::Row) -> Result<SessionSummary, postgres::Error> {
    Ok(SessionSummary {
        id: row.try_get(0)?,
        model: row.try_get(1)?,
        messages: count(row.try_get(2)?),
        revision: count(row.try_get(3)?),
        tokens: row.try_get::<_, Option<i64>>(4)?.map(count),
        updated: row.try_get(5)?,
        archived: row.try_get(6)?,
    })
}

impl Backend for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, id: &str, known: KnownState, batch: &Batch) -> Result<AppendOutcome, Error> {
        // A connection that is closed already is replaced first, so that the append starts on a working one.
        self.client()?;
        self.appends += 1;
        let writer = format!("{}/{}", self.writer, self.appends);
        let append = Append { id, key: known.key, expected: number(known.next), batch, writer };
        let done = match self.append_once(&append) {
            Err(error) if is_lost(&self.client, &error) => {
                let again = self.append_again(&append);
                again.map_err(|why| self.unknown(id, &why))?
            }
            done => done.map_err(|error| self.fault("cannot be written", &error))?,
        };
        if done {
            return Ok(AppendOutcome::Appended);
        }
        // Read after the failed statement, so the number may include still later appends.
        Ok(AppendOutcome::Conflict(self.head(id)?.map_or(0, |head| head.next)))
    }

    fn head(&mut self, id: &str) -> Result<Option<SessionRow>, Error> {
        self.with_reconnect("cannot be read", |client| head(client, id, ""))
    }

    fn read(
        &mut self,
        id: &str,
        from: u64,
        columns: Columns,
        each: &mut RowCallback<'_>,
    ) -> Result<Option<SessionRow>, Error> {
        self.stream(each, |transaction, each| {
            let Some(head) = head(transaction, id, "")? else { return Ok(Ok(None)) };
            let rows = each_row(transaction, &head, from..u64::MAX, columns, each)?;
            Ok(rows.map(|()| Some(head)))
        })
    }

    fn rows(
        &mut self,
        head: &SessionRow,
        entries: &[Range<u64>],
        each: &mut RowCallback<'_>,
    ) -> Result<(), Error> {
        let read = self.stream(each, |transaction, each| {
            for range in entries {
                if let Err(error) = each_row(transaction, head, range.clone(), Columns::Texts, each)? {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(None))
        });
        read.map(drop)
    }

    fn row(&mut self, id: &str, n: u64) -> Result<Option<(i64, Row)>, Error> {
        let sql = "SELECT n, kind, sum, outline, entry, key
                   FROM cw_entry JOIN cw_session ON key = session WHERE id = $1 AND n = $2";
        let n = number(n);
        let parameters: [Parameter<'_>; 2] = [(&id, Type::TEXT), (&n, Type::INT8)];
        self.with_reconnect("cannot be read", |client| {
            let rows = client.query_typed(sql, &parameters)?;
            rows.first().map(|found| Ok((found.try_get(5)?, row(found)?))).transpose()
        })
    }

    fn list(&mut self, options: &ListOptions) -> Result<Vec<SessionSummary>, Error> {
        let page = if options.after.is_some() { "AND (updated, id) < ($3::timestamptz, $4)" } else { "" };
        let sql = format!("{SUMMARY} WHERE archived = $1 {page} ORDER BY updated DESC, id DESC LIMIT $2");
        let limit = i64::from(options.limit);
        self.with_reconnect("cannot be read", |client| {
            let mut parameters: Vec<Parameter<'_>> =
                vec![(&options.archived, Type::BOOL), (&limit, Type::INT8)];
            if let Some((updated, id)) = &options.after {
                parameters.extend([(updated as _, Type::TEXT), (id as _, Type::TEXT)]);
            }
            client.query_typed(&sql, &parameters)?.iter().map(summary).collect()
        })
    }

    fn summary(&mut self, id: &str) -> Result<Option<SessionSummary>, Error> {
        let sql = format!("{SUMMARY} WHERE id = $1");
        self.with_reconnect("cannot be read", |client| {
            client.query_typed(&sql, &[(&id, Type::TEXT)])?.first().map(summary).transpose()
        })
    }

    fn fork(&mut self, id: &str, at: u64, new: &str) -> Result<Forked, Error> {
        let fork = |transaction: &mut Transaction<'_>| -> Result<Forked, postgres::Error> {
            // The lock prevents a deletion of the session while its entries are copied.
            let Some(from) = head(transaction, id, "FOR SHARE OF s")? else { return Ok(Forked::Missing) };
            if at > from.next {
                return Ok(Forked::Shorter(from.next));
            }
            let at = number(at);
            let begin = "INSERT INTO cw_session (id, next, messages, updated)
                SELECT $1, $3, count(*), clock_timestamp() FROM cw_entry
                WHERE session = $2 AND n < $3 AND kind = 'message'
                ON CONFLICT (id) DO NOTHING RETURNING key";
            let parameters: [Parameter<'_>; 3] =
                [(&new, Type::TEXT), (&from.key, Type::INT8), (&at, Type::INT8)];
            let rows = transaction.query_typed(begin, &parameters)?;
            let Some(row) = rows.first() else { return Ok(Forked::Taken) };
            let key: i64 = row.try_get(0)?;
            let copy = "INSERT INTO cw_entry (session, n, kind, sum, outline, entry)
                SELECT $1, n, kind, sum, outline, entry FROM cw_entry WHERE session = $2 AND n < $3";
            transaction
                .execute_typed(copy, &[(&key, Type::INT8), (&from.key, Type::INT8), (&at, Type::INT8)])?;
            let newest =
                "SELECT n, entry FROM cw_entry WHERE session = $1 AND kind = 'sent' ORDER BY n DESC LIMIT 1";
            if let Some(row) = transaction.query_typed_opt(newest, &[(&key, Type::INT8)])? {
                let (n, entry): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
                if let Some(sent) = SentPrompt::from_stored(count(n), &entry) {
                    // Only the newest prompt of a conversation keeps its items.
                    let items = from.items.filter(|_| from.sent == Some(sent.n));
                    let (tokens, at) = (number(sent.tokens), items.as_ref().map(|_| n));
                    let update = "UPDATE cw_session SET model = $2, tokens = $3, sent = $4 WHERE key = $1";
                    transaction.execute_typed(
                        update,
                        &[
                            (&key, Type::INT8),
                            (&sent.model, Type::TEXT),
                            (&tokens, Type::INT8),
                            (&at, Type::INT8),
                        ],
                    )?;
                    let remember =
                        "INSERT INTO cw_prompt (session, items) SELECT $1, $2 WHERE $2 IS NOT NULL";
                    transaction.execute_typed(remember, &[(&key, Type::INT8), (&items, Type::TEXT)])?;
                }
            }
            Ok(Forked::Done)
        };
        // A fork is not repeated if its confirmation is lost, because the new session may exist already.
        self.ensure_connected()?;
        let done = (|| {
            let mut transaction = self.client.transaction()?;
            let forked = fork(&mut transaction)?;
            transaction.commit().map(|()| forked)
        })();
        done.map_err(|error| self.fault("cannot be written", &error))
    }

    fn set_archived(&mut self, id: &str, archived: bool) -> Result<bool, Error> {
        let sql = "UPDATE cw_session SET archived = $2 WHERE id = $1";
        let parameters: [Parameter<'_>; 2] = [(&id, Type::TEXT), (&archived, Type::BOOL)];
        self.with_reconnect("cannot be written", |client| {
            client.execute_typed(sql, &parameters).map(|rows| rows > 0)
        })
    }

    fn delete(&mut self, id: &str) -> Result<bool, Error> {
        let sql = "DELETE FROM cw_session WHERE id = $1";
        // A repeated deletion could report a deleted session as missing.
        self.ensure_connected()?;
        let deleted = self.client.execute_typed(sql, &[(&id, Type::TEXT)]);
        deleted.map(|rows| rows > 0).map_err(|error| self.fault("cannot be written", &error))
    }
}
