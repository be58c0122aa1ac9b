//! Appends to a session. One statement updates the session's row and inserts the entries.

use super::{Parameter, number};
use crate::entry::{Batch, NewRow};
use postgres::{GenericClient, types::Type};

/// The maximum number of entries in one statement.
const CHUNK_ROWS: usize = 20_000;
/// The size in bytes at which a statement ends.
const CHUNK_BYTES: usize = 16 << 20;

/// Splits rows into chunks for one statement each.
pub(super) fn chunks(rows: &[NewRow]) -> Vec<&[NewRow]> {
    let (mut chunks, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, row) in rows.iter().enumerate() {
        bytes += row.entry.len() + row.outline.as_ref().map_or(0, String::len);
        if at + 1 - start >= CHUNK_ROWS || bytes >= CHUNK_BYTES {
            chunks.push(&rows[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    if start < rows.len() {
        chunks.push(&rows[start..]);
    }
    chunks
}

/// An append, independent of its connection.
pub(super) struct Append<'a> {
    pub(super) id: &'a str,
    /// The session's key in the database. `None` if the writer has not read the session.
    pub(super) key: Option<i64>,
    /// The number of entries that the writer expects.
    pub(super) expected: i64,
    pub(super) batch: &'a Batch,
    /// A name that is unique to this append, stored with its first entry.
    pub(super) writer: String,
}

/// The columns of the rows to write. Each is sent as one array parameter.
struct Lists<'a> {
    numbers: Vec<i64>,
    kinds: Vec<&'a str>,
    sums: Vec<&'a str>,
    outlines: Vec<Option<&'a str>>,
    writers: Vec<Option<&'a str>>,
    entries: Vec<&'a str>,
}

impl<'a> Lists<'a> {
    /// Collects the columns. `writer` is stored with the first row only.
    fn from_rows(rows: &'a [NewRow], writer: Option<&'a str>) -> Self {
        Self {
            numbers: rows.iter().map(|row| number(row.n)).collect(),
            kinds: rows.iter().map(|row| row.kind).collect(),
            sums: rows.iter().map(|row| row.sum.as_str()).collect(),
            outlines: rows.iter().map(|row| row.outline.as_deref()).collect(),
            writers: rows.iter().enumerate().map(|(at, _)| writer.filter(|_| at == 0)).collect(),
            entries: rows.iter().map(|row| row.entry.as_str()).collect(),
        }
    }

    fn parameters(&self) -> [Parameter<'_>; 6] {
        [
            (&self.numbers, Type::INT8_ARRAY),
            (&self.kinds, Type::TEXT_ARRAY),
            (&self.sums, Type::TEXT_ARRAY),
            (&self.outlines, Type::TEXT_ARRAY),
            (&self.writers, Type::TEXT_ARRAY),
            (&self.entries, Type::TEXT_ARRAY),
        ]
    }
}

impl Append<'_> {
    /// Updates the session's row if it has the expected number of entries, and writes the first rows. Returns
    /// false if it has another number.
    pub(super) fn first(
        &self,
        client: &mut impl GenericClient,
        rows: &[NewRow],
    ) -> Result<bool, postgres::Error> {
        // A single statement needs one round trip to the server. If the number of entries differs, `advanced`
        // has no row, and nothing is written.
        let advance = if self.expected == 0 && self.key.is_none() {
            "INSERT INTO cw_session AS s (id, next, messages, model, tokens, sent, updated)
             VALUES ($1, $3, $4, $6, $7, $8, clock_timestamp())
             ON CONFLICT (id) DO UPDATE SET next = s.next + $3, messages = s.messages + $4,
                 model = CASE WHEN $5 THEN $6 ELSE s.model END, tokens = CASE WHEN $5 THEN $7 ELSE s.tokens END,
                 sent = CASE WHEN $5 THEN $8 ELSE s.sent END, updated = clock_timestamp()
             WHERE s.next = $2 AND s.key = coalesce($10, s.key) RETURNING key"
        } else {
            "UPDATE cw_session SET next = next + $3, messages = messages + $4,
                 model = CASE WHEN $5 THEN $6 ELSE model END, tokens = CASE WHEN $5 THEN $7 ELSE tokens END,
                 sent = CASE WHEN $5 THEN $8 ELSE sent END, updated = clock_timestamp()
             WHERE id = $1 AND next = $2 AND key = coalesce($10, key) RETURNING key"
        };
        let sql = format!(
            "WITH advanced AS ({advance}),
             written AS (
                 INSERT INTO cw_entry (session, n, kind, sum, outline, writer, entry)
                 SELECT key, row.* FROM advanced, unnest($11, $12, $13, $14, $15, $16)
                     AS row (n, kind, sum, outline, writer, entry)
             ),
             forgotten AS (
                 DELETE FROM cw_prompt USING advanced WHERE session = key AND $5 AND $9 IS NULL
             ),
             remembered AS (
                 INSERT INTO cw_prompt (session, items) SELECT key, $9 FROM advanced WHERE $9 IS NOT NULL
                 ON CONFLICT (session) DO UPDATE SET items = excluded.items
             )
             SELECT key FROM advanced"
        );
        let sent = self.batch.sent.as_ref();
        let (added, messages) = (number(self.batch.rows.len() as u64), number(self.batch.messages));
        let (is_sent, model) = (sent.is_some(), sent.and_then(|sent| sent.model.as_deref()));
        let tokens = sent.map(|sent| number(sent.tokens));
        let items = sent.and_then(|sent| sent.items.as_deref());
        let at = sent.filter(|_| items.is_some()).map(|sent| number(sent.n));
        let lists = Lists::from_rows(rows, Some(&self.writer));
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&self.id, Type::TEXT),
            (&self.expected, Type::INT8),
            (&added, Type::INT8),
            (&messages, Type::INT8),
            (&is_sent, Type::BOOL),
            (&model, Type::TEXT),
            (&tokens, Type::INT8),
            (&at, Type::INT8),
            (&items, Type::TEXT),
            (&self.key, Type::INT8),
        ];
        parameters.extend(lists.parameters());
        client.query_typed(&sql, &parameters).map(|rows| !rows.is_empty())
    }

    /// Writes further rows, in the transaction of the first ones.
    pub(super) fn further(
        &self,
        client: &mut impl GenericClient,
        rows: &[NewRow],
    ) -> Result<(), postgres::Error> {
        let sql = "INSERT INTO cw_entry (session, n, kind, sum, outline, writer, entry)
                   SELECT key, row.* FROM cw_session, unnest($2, $3, $4, $5, $6, $7)
                       AS row (n, kind, sum, outline, writer, entry)
                   WHERE id = $1";
        let lists = Lists::from_rows(rows, None);
        let mut parameters: Vec<Parameter<'_>> = vec![(&self.id, Type::TEXT)];
        parameters.extend(lists.parameters());
        client.query_typed(sql, &parameters).map(drop)
    }
}
