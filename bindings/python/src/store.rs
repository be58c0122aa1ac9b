//! Sessions in a database.

use crate::{
    conversation::{Conversation, writing},
    error::{input, raised},
    json,
};
use context_window_store::{ListOptions, SessionStore, SessionSummary};
use pyo3::prelude::*;
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Sessions in SQLite (`sqlite:PATH`, or a `pathlib.Path`) or PostgreSQL (`postgres://...`): many writers, nothing lost.
///
/// A revision is the number of a session's entries. A save that another writer was ahead of raises a `ConflictError` and
/// writes nothing.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Store {
    inner: Mutex<SessionStore>,
    /// Its address without secrets.
    name: String,
    address: String,
    read_only: bool,
}

impl Store {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut SessionStore) -> Result<T, context_window_store::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| call(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))).map_err(raised)
    }
}

fn summary(summary: &SessionSummary) -> serde_json::Value {
    serde_json::json!({
        "id": summary.id, "model": summary.model, "messages": summary.messages, "revision": summary.revision,
        "tokens": summary.tokens, "updated": summary.updated, "archived": summary.archived,
    })
}

#[pymethods]
impl Store {
    /// Opens a database, and makes its tables where there are none.
    #[new]
    #[pyo3(signature = (address, *, read_only=false))]
    fn new(py: Python<'_>, address: &Bound<'_, PyAny>, read_only: bool) -> PyResult<Self> {
        // A path is the file of an SQLite database.
        let address = match address.extract::<String>() {
            Ok(address) => address,
            Err(_) => format!("sqlite:{}", address.extract::<PathBuf>()?.display()),
        };
        let opened = py.detach(|| {
            if read_only { SessionStore::open_read_only(&address) } else { SessionStore::open(&address) }
        });
        let store = opened.map_err(raised)?;
        let name = store.name().to_owned();
        Ok(Self { inner: Mutex::new(store), name, address, read_only })
    }

    /// The conversation of a session and its revision.
    fn load(&self, py: Python<'_>, id: &str) -> PyResult<(Conversation, u64)> {
        let (log, revision) = self.with(py, |store| store.load(id))?;
        Ok((Conversation::of(log), revision))
    }

    /// As `load`; a session that is not there is an empty conversation of revision 0.
    fn load_or_new(&self, py: Python<'_>, id: &str) -> PyResult<(Conversation, u64)> {
        let (log, revision) = self.with(py, |store| store.load_or_new(id))?;
        Ok((Conversation::of(log), revision))
    }

    /// Appends what is new since this revision, and gives the next one.
    fn save(&self, py: Python<'_>, id: &str, conversation: &Conversation, revision: u64) -> PyResult<u64> {
        py.detach(|| {
            let mut log = writing(conversation.shared());
            let mut store = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            store.save(id, &mut log, revision)
        })
        .map_err(raised)
    }

    /// The sessions, newest first, each a dict; `archived` those that were put away.
    #[pyo3(signature = (*, limit=None, archived=false))]
    fn list<'py>(&self, py: Python<'py>, limit: Option<u32>, archived: bool) -> PyResult<Bound<'py, PyAny>> {
        let mut options = ListOptions::new();
        if let Some(limit) = limit {
            options = options.with_limit(limit);
        }
        if archived {
            options = options.archived();
        }
        let sessions = self.with(py, |store| store.list(&options))?;
        json::python(py, &sessions.iter().map(summary).collect::<Vec<_>>())
    }

    /// One session as a dict; None where it is not there.
    fn summary<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.with(py, |store| store.summary(id))?;
        found.map(|found| json::python(py, &summary(&found))).transpose()
    }

    /// Copies the first `at` entries of a session to a new one.
    fn fork(&self, py: Python<'_>, id: &str, at: u64, new: &str) -> PyResult<()> {
        self.with(py, |store| store.fork(id, at, new))
    }

    /// Puts a session away: `list` leaves it out.
    fn archive(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.with(py, |store| store.archive(id))
    }

    /// Takes a session back from where it was put away.
    fn unarchive(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.with(py, |store| store.unarchive(id))
    }

    /// Deletes a session and all of its entries.
    fn delete(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.with(py, |store| store.delete(id))
    }

    fn __repr__(&self) -> String {
        format!("Store({:?})", self.name)
    }

    /// A store is opened again where it is unpickled. An address with a password is not pickled.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, bool))> {
        if self.name != self.address && self.address.contains('@') {
            return Err(input(
                "a store with a password in its address is not pickled; open it where it is used",
            ));
        }
        let again = py.import("context_window._core")?.getattr("_store")?;
        Ok((again, (self.address.clone(), self.read_only)))
    }
}

/// A store out of its pickle.
#[pyfunction]
pub(crate) fn _store(py: Python<'_>, address: &Bound<'_, PyAny>, read_only: bool) -> PyResult<Store> {
    Store::new(py, address, read_only)
}
