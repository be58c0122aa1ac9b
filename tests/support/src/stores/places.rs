//! The locations of the tests' stores.

use crate as support;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A test's own folder, deleted with it.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("context-window-stores-{}-{number}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn sqlite(&self, name: &str) -> String {
        format!("sqlite:{}", self.path(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A new store of either kind.
pub struct Place {
    pub address: String,
    _folder: Folder,
}

impl Place {
    pub fn is_sqlite(&self) -> bool {
        self.address.starts_with("sqlite:")
    }

    pub fn file(&self) -> &Path {
        Path::new(self.address.strip_prefix("sqlite:").unwrap())
    }

    /// Runs SQL without the store's knowledge.
    pub fn sql(&self, sql: &str) {
        if self.is_sqlite() {
            let connection = rusqlite::Connection::open(self.file()).unwrap();
            connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
            connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        } else {
            let mut client = postgres::Client::connect(&self.address, postgres::NoTls).unwrap();
            client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
    }

    /// Returns the result of a query, each value as text.
    pub fn query(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        if self.is_sqlite() {
            let connection = rusqlite::Connection::open(self.file()).unwrap();
            let mut statement = connection.prepare(sql).unwrap();
            let columns = statement.column_count();
            let text = |value: rusqlite::types::Value| match value {
                rusqlite::types::Value::Null => None,
                rusqlite::types::Value::Integer(n) => Some(n.to_string()),
                rusqlite::types::Value::Text(text) => Some(text),
                other => Some(format!("{other:?}")),
            };
            let rows = statement
                .query_map((), |row| (0..columns).map(|at| row.get(at).map(text)).collect())
                .unwrap();
            rows.map(Result::unwrap).collect()
        } else {
            let mut client = postgres::Client::connect(&self.address, postgres::NoTls).unwrap();
            let rows = client.simple_query(sql).unwrap();
            let rows = rows.iter().filter_map(|message| match message {
                postgres::SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            rows.map(|row| (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()).collect()
        }
    }
}

pub fn sqlite() -> Place {
    let folder = Folder::new();
    Place { address: folder.sqlite("sessions.db"), _folder: folder }
}

/// Returns a PostgreSQL store. Returns `None` with a message if PostgreSQL is not installed.
pub fn postgres() -> Option<Place> {
    #[cfg(unix)]
    let server = super::server::shared();
    #[cfg(not(unix))]
    let server: Option<&super::places::Folder> = None;
    match server {
        #[cfg(unix)]
        Some(server) => Some(Place { address: server.database(), _folder: Folder::new() }),
        _ => {
            support::skip(
                &support::running(),
                "PostgreSQL is not here (Debian: postgresql); its half is not tried",
            );
            None
        }
    }
}

/// Returns a new store of each kind.
pub fn both() -> Vec<Place> {
    std::iter::once(sqlite()).chain(postgres()).collect()
}
