//! A conversation in a file.

use crate::{
    error::raised,
    log::{Conversation, reading},
    work::interruptible,
};
use pyo3::prelude::*;
use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// A log on disk. Entries are appended with checksums and synced, so that a crash loses nothing that was
/// saved.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Journal {
    journal: Mutex<context_window_store::Journal>,
    path: PathBuf,
}

#[pymethods]
impl Journal {
    /// Opens or creates a file. Returns the journal and its conversation.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<(Self, Conversation)> {
        let file = path.clone();
        let opened = interruptible(py, move |_| context_window_store::Journal::open(&file))?;
        let (journal, log) = opened.map_err(raised)?;
        Ok((Self { journal: Mutex::new(journal), path }, Conversation::from_log(log)))
    }

    /// Appends the new entries of the conversation.
    fn save(&self, py: Python<'_>, conversation: &Conversation) -> PyResult<()> {
        py.detach(|| {
            let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.save(&reading(conversation.shared()))
        })
        .map_err(raised)
    }

    fn __repr__(&self) -> String {
        format!("Journal({:?})", self.path.display().to_string())
    }
}
