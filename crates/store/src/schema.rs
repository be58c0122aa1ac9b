//! The tables, as numbered migrations in plain SQL. One that was released never changes; a new one is added behind it.

use crate::error::{Error, Repr};

/// The version of the tables after all migrations.
pub(super) const VERSION: i64 = 1;
const _: () = assert!(SQLITE.len() == VERSION as usize, "a version for each migration");

pub(super) const SQLITE: [&str; 1] = [include_str!("migrations/sqlite-1.sql")];
#[cfg(feature = "postgres")]
pub(super) const POSTGRES: [&str; SQLITE.len()] = [include_str!("migrations/postgres-1.sql")];

/// The table that says which migrations were made: one row for each.
pub(super) const CREATE: &str = "CREATE TABLE IF NOT EXISTS cw_schema (version BIGINT PRIMARY KEY)";
pub(super) const NEWEST: &str = "SELECT coalesce(max(version), 0) FROM cw_schema";

/// The migrations that are still to be made, each with its version, where the tables are of this one.
pub(super) fn pending<'s>(store: &str, version: i64, all: &[&'s str]) -> Result<Vec<(i64, &'s str)>, Error> {
    let made = usize::try_from(version).ok().filter(|made| *made <= all.len());
    let Some(made) = made else {
        let detail = format!(
            "its tables are of version {version}; expected version {VERSION} or lower: use a newer version of this program. Nothing was changed"
        );
        return Err(Error::new(Repr::Store { place: store.into(), detail }));
    };
    Ok((1..).zip(all.iter().copied()).skip(made).collect())
}

/// A store that is only read has to be there, in the form of today.
pub(super) fn readable(store: &str, version: Option<i64>) -> Result<(), Error> {
    let detail = match version {
        Some(VERSION) => return Ok(()),
        None | Some(0) => {
            "holds no sessions; expected a store, which `plan-inspect store import` makes".to_owned()
        }
        Some(older) if older < VERSION => {
            format!(
                "its tables are of version {older}, and it is only read; open it once for writing, which brings them to version {VERSION}"
            )
        }
        Some(newer) => return pending(store, newer, &SQLITE).map(drop),
    };
    Err(Error::new(Repr::Store { place: store.into(), detail }))
}
