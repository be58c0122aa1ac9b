//! Sessions in a database.

use crate::{
    error::{input, raised},
    json,
    log::{Conversation, writing},
    number::Number,
    work::interruptible,
};
use context_window_store::{ListOptions, SessionStore, SessionSummary};
use pyo3::prelude::*;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// Bytes of the JSON arrays in which items are handed over. The system must map a larger text for each call.
const ARRAY_BYTES: usize = 64 << 10;

/// Sessions in SQLite (`sqlite:PATH`, or a `pathlib.Path`) or PostgreSQL (`postgres://...`). Several writers
/// may use the same session without losing entries.
///
/// A revision is the number of a session's entries. If another writer is ahead, a save raises a
/// `ConflictError` and writes nothing.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Store {
    inner: Arc<Mutex<SessionStore>>,
    /// The address without secrets.
    name: String,
    address: String,
    read_only: bool,
}

impl Store {
    /// Changes the store under its lock. Other Python threads run in the meantime. Ctrl-C is answered
    /// afterwards: it must be known if a change was made.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut SessionStore) -> Result<T, context_window_store::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| call(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))).map_err(raised)
    }

    /// Loads from the store under its lock. Other Python threads run in the meantime, and Ctrl-C ends the
    /// call.
    fn load_with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut SessionStore) -> Result<T, context_window_store::Error> + Send + 'static,
    ) -> PyResult<T> {
        let store = Arc::clone(&self.inner);
        let load = move |_: &_| call(&mut store.lock().unwrap_or_else(PoisonError::into_inner));
        interruptible(py, load)?.map_err(raised)
    }
}

/// Returns a summary as JSON.
fn summary(summary: &SessionSummary) -> serde_json::Value {
    serde_json::json!({
        "id": summary.id, "model": summary.model, "messages": summary.messages, "revision": summary.revision,
        "tokens": summary.tokens, "updated": summary.updated, "archived": summary.archived,
    })
}

/// Returns JSON texts in arrays of about [`ARRAY_BYTES`].
fn arrays(items: &[String]) -> Vec<String> {
    let mut arrays = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let mut array = String::with_capacity(ARRAY_BYTES.max(rest[0].len() + 2));
        while let Some((item, more)) = rest.split_first()
            && (array.is_empty() || array.len() + item.len() + 2 <= ARRAY_BYTES)
        {
            array.push(if array.is_empty() { '[' } else { ',' });
            array.push_str(item);
            rest = more;
        }
        array.push(']');
        arrays.push(array);
    }
    arrays
}

#[pymethods]
impl Store {
    /// Opens a database, and creates its tables if they do not exist.
    #[new]
    #[pyo3(signature = (address, *, read_only=false))]
    fn new(py: Python<'_>, address: &Bound<'_, PyAny>, read_only: bool) -> PyResult<Self> {
        // A path without a scheme is the file of an SQLite database.
        let address = match address.extract::<String>() {
            Ok(address) => address,
            Err(_) => format!("sqlite:{}", address.extract::<PathBuf>()?.display()),
        };
        let opened = py.detach(|| {
            if read_only { SessionStore::open_read_only(&address) } else { SessionStore::open(&address) }
        });
        let store = opened.map_err(raised)?;
        let name = store.name().to_owned();
        Ok(Self { inner: Arc::new(Mutex::new(store)), name, address, read_only })
    }

    /// Returns the conversation of a session and its revision.
    fn load(&self, py: Python<'_>, id: String) -> PyResult<(Conversation, u64)> {
        let (log, revision) = self.load_with(py, move |store| store.load(&id))?;
        Ok((Conversation::from_log(log), revision))
    }

    /// Loads a session like `load`. A session that does not exist is an empty conversation at revision 0.
    fn load_or_new(&self, py: Python<'_>, id: String) -> PyResult<(Conversation, u64)> {
        let (log, revision) = self.load_with(py, move |store| store.load_or_new(&id))?;
        Ok((Conversation::from_log(log), revision))
    }

    /// Appends the entries after `revision`, and returns the new revision.
    fn save(
        &self,
        py: Python<'_>,
        id: &str,
        conversation: &Conversation,
        revision: Number<u64>,
    ) -> PyResult<u64> {
        py.detach(|| {
            // Both locks are always taken in this order, so that two saves cannot deadlock.
            let mut log = writing(conversation.shared());
            let mut store = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            store.save(id, &mut log, revision.0)
        })
        .map_err(raised)
    }

    /// Returns the sessions as dicts, newest first. With `archived=True`, returns the archived sessions
    /// instead.
    #[pyo3(signature = (*, limit=None, archived=false))]
    fn list<'py>(
        &self,
        py: Python<'py>,
        limit: Option<Number<u32>>,
        archived: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut options = ListOptions::new();
        if let Some(limit) = limit {
            options = options.with_limit(limit.0);
        }
        if archived {
            options = options.archived();
        }
        let sessions = self.with(py, |store| store.list(&options))?;
        json::python(py, &sessions.iter().map(summary).collect::<Vec<_>>())
    }

    /// Returns one session as a dict, or None if it does not exist.
    fn summary<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.with(py, |store| store.summary(id))?;
        found.map(|found| json::python(py, &summary(&found))).transpose()
    }

    /// Copies the first `at` entries of a session to a new session.
    fn fork(&self, py: Python<'_>, id: &str, at: Number<u64>, new: &str) -> PyResult<()> {
        self.with(py, |store| store.fork(id, at.0, new))
    }

    /// Appends JSON texts ("items") of a type to a session, all or none. Creates the session if it does not
    /// exist. Raises `InputError` for a text that is not JSON. The rest of the session is not read.
    #[pyo3(signature = (id, items, *, kind="item"))]
    fn push_items(&self, py: Python<'_>, id: &str, items: Vec<String>, kind: &str) -> PyResult<()> {
        self.with(py, |store| store.push_items(id, kind, &items))
    }

    /// Returns the newest `limit` items of a type in chronological order, or all of them. Reads only as much
    /// of the session as necessary.
    #[pyo3(signature = (id, *, limit=None, kind="item"))]
    fn newest_items(
        &self,
        py: Python<'_>,
        id: &str,
        limit: Option<Number<usize>>,
        kind: &str,
    ) -> PyResult<Vec<String>> {
        let (id, kind, limit) = (id.to_owned(), kind.to_owned(), limit.map(|limit| limit.0));
        self.load_with(py, move |store| store.newest_items(&id, &kind, limit))
    }

    /// Returns the same items in JSON arrays, which are faster to parse than single items.
    #[pyo3(signature = (id, *, limit=None, kind="item"))]
    fn _newest_arrays(
        &self,
        py: Python<'_>,
        id: &str,
        limit: Option<Number<usize>>,
        kind: &str,
    ) -> PyResult<Vec<String>> {
        let (id, kind, limit) = (id.to_owned(), kind.to_owned(), limit.map(|limit| limit.0));
        self.load_with(py, move |store| store.newest_items(&id, &kind, limit).map(|items| arrays(&items)))
    }

    /// Removes the newest item of a type and returns it. Returns None if there is none. Later messages and
    /// items of other types are removed too. They are archived, not deleted.
    #[pyo3(signature = (id, *, kind="item"))]
    fn pop_item(&self, py: Python<'_>, id: &str, kind: &str) -> PyResult<Option<String>> {
        self.with(py, |store| store.pop_item(id, kind))
    }

    /// Archives a session. `list` then leaves it out.
    fn archive(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.with(py, |store| store.archive(id))
    }

    /// Unarchives a session.
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

    /// Pickles the address. Unpickling opens the store again. An address with a password is not pickled.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String, bool))> {
        // A pickle may be stored or sent anywhere, so it must not contain a password.
        if self.name != self.address && self.address.contains('@') {
            return Err(input(
                "a store with a password in its address is not pickled; open it where it is used",
            ));
        }
        let again = py.import("context_window._core")?.getattr("_store")?;
        Ok((again, (self.address.clone(), self.read_only)))
    }
}

/// Restores a store from its pickle.
#[pyfunction]
pub(crate) fn _store(py: Python<'_>, address: &Bound<'_, PyAny>, read_only: bool) -> PyResult<Store> {
    Store::new(py, address, read_only)
}
