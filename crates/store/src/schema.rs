//! The tables, as numbered migrations in plain SQL. A released migration never changes; new ones are added at
//! the end.

use crate::error::{Error, Repr};

/// The version of the tables after all migrations.
pub(super) const VERSION: i64 = 1;
const _: () = assert!(SQLITE.len() == VERSION as usize, "a version for each migration");

/// The migrations of SQLite.
pub(super) const SQLITE: [&str; 1] = [include_str!("migrations/sqlite-1.sql")];
/// The migrations of PostgreSQL.
#[cfg(feature = "postgres")]
pub(super) const POSTGRES: [&str; SQLITE.len()] = [include_str!("migrations/postgres-1.sql")];

/// The SQL for the table of applied migrations, with one row for each.
pub(super) const CREATE: &str = "CREATE TABLE IF NOT EXISTS cw_schema (version BIGINT PRIMARY KEY)";
/// The SQL for the version of the tables. It returns 0 before the first migration.
pub(super) const NEWEST: &str = "SELECT coalesce(max(version), 0) FROM cw_schema";

/// Returns the migrations that are not yet applied, each with its version. `version` is the version of the
/// existing tables. Returns an error if they are newer than this program.
pub(super) fn pending<'s>(store: &str, version: i64, all: &[&'s str]) -> Result<Vec<(i64, &'s str)>, Error> {
    let made = usize::try_from(version).ok().filter(|made| *made <= all.len());
    let Some(made) = made else {
        let detail = format!(
            "its tables have version {version}; expected version {VERSION} or lower: use a newer version of this program. Nothing was changed"
        );
        return Err(Error::new(Repr::Store { place: store.into(), detail }));
    };
    Ok((1..).zip(all.iter().copied()).skip(made).collect())
}

/// Checks that a read-only store exists and has the current version, because it cannot be migrated.
pub(super) fn readable(store: &str, version: Option<i64>) -> Result<(), Error> {
    let detail = match version {
        Some(VERSION) => return Ok(()),
        None | Some(0) => {
            "contains no sessions; expected a store, as created by `plan-inspect store import`".to_owned()
        }
        Some(older) if older < VERSION => {
            format!(
                "its tables have version {older}, and it is open only for reading; open it once for writing to update them to version {VERSION}"
            )
        }
        Some(newer) => return pending(store, newer, &SQLITE).map(drop),
    };
    Err(Error::new(Repr::Store { place: store.into(), detail }))
}
