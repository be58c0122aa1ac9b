//! A log that several threads share.

use crate::{
    error::{Fault, raised},
    work::{LONG, interruptible},
};
use context_window as core;
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// A log that several threads can share.
pub(crate) type SharedLog = Arc<RwLock<core::Conversation>>;

/// The append-only log of a conversation: messages, pins, compactions and sent prompts. Nothing is ever
/// removed from it.
///
/// Several threads may share it. A call that changes it waits until plans in progress are finished.
#[pyclass(frozen, module = "context_window")]
pub(crate) struct Conversation {
    pub(crate) log: SharedLog,
}

/// Puts a log behind a lock.
pub(crate) fn shared(log: core::Conversation) -> SharedLog {
    Arc::new(RwLock::new(log))
}

/// Locks the log for reading. Ignores the poisoning by a panicked thread, because changes are never left half
/// made.
pub(crate) fn reading(log: &SharedLog) -> RwLockReadGuard<'_, core::Conversation> {
    log.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the log for writing.
pub(crate) fn writing(log: &SharedLog) -> RwLockWriteGuard<'_, core::Conversation> {
    log.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if work on all texts of the log takes long. Reads no more messages than necessary.
pub(crate) fn is_long(log: &core::Conversation) -> bool {
    let mut bytes = 0;
    log.messages().iter().any(|message| {
        let calls = message.tool_calls().iter().map(|call| call.arguments.len());
        let parts = message.parts().iter().map(|part| match part {
            core::Part::Text(text) => text.len(),
            core::Part::Image { url, .. } => url.len(),
            core::Part::Opaque { json, .. } => json.len(),
        });
        bytes += 64 + message.text().len() + calls.chain(parts).sum::<usize>();
        bytes >= LONG
    })
}

/// Changes the log in a moment. Other Python threads run in the meantime, and Ctrl-C ends the wait for them.
pub(crate) fn change<T: Send + 'static, E: Into<Fault> + Send + 'static>(
    py: Python<'_>,
    log: &SharedLog,
    change: impl FnOnce(&mut core::Conversation) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let done = py.detach(|| match log.try_write() {
        Ok(mut log) => Ok(change(&mut log)),
        Err(TryLockError::Poisoned(log)) => Ok(change(&mut log.into_inner())),
        Err(TryLockError::WouldBlock) => Err(change),
    });
    let change = match done {
        Ok(done) => return done.map_err(raised),
        Err(change) => change,
    };
    let log = Arc::clone(log);
    let done = interruptible(py, move |stop| {
        let mut log = writing(&log);
        stop.commit().then(|| change(&mut log))
    })?;
    // Stopped work has no reader, so a result that is read was made.
    done.map_or_else(|| Err(PyKeyboardInterrupt::new_err(())), |done| done.map_err(raised))
}

/// Changes the log in a way that may take long. The change is made on a copy, so that Ctrl-C leaves the log
/// as it was.
pub(crate) fn change_copy<T: Send + 'static, E: Into<Fault> + Send + 'static>(
    py: Python<'_>,
    log: &SharedLog,
    change: impl FnOnce(&mut core::Conversation) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let log = Arc::clone(log);
    let done = interruptible(py, move |stop| {
        // The lock is held all the time: no other thread changes the log between the copy and its return.
        let mut log = writing(&log);
        let mut copy = log.clone();
        let done = change(&mut copy)?;
        if stop.commit() {
            *log = copy;
        }
        Ok(done)
    })?;
    done.map_err(|error: E| raised(error))
}

/// Reads a little of the log. Other Python threads run in the meantime, and Ctrl-C ends the wait for them.
pub(crate) fn look<T: Send + 'static, E: Into<Fault> + Send + 'static>(
    py: Python<'_>,
    log: &SharedLog,
    read: impl FnOnce(&core::Conversation) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    read_unless(py, log, |_| false, read)
}

/// Reads the log. Other Python threads run in the meantime, and Ctrl-C ends a long read.
pub(crate) fn read<T: Send + 'static, E: Into<Fault> + Send + 'static>(
    py: Python<'_>,
    log: &SharedLog,
    read: impl FnOnce(&core::Conversation) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    read_unless(py, log, is_long, read)
}

/// Reads the log on this thread, or on another one if the log is locked or `is_long`.
fn read_unless<T: Send + 'static, E: Into<Fault> + Send + 'static>(
    py: Python<'_>,
    log: &SharedLog,
    is_long: impl FnOnce(&core::Conversation) -> bool + Send,
    read: impl FnOnce(&core::Conversation) -> Result<T, E> + Send + 'static,
) -> PyResult<T> {
    let done = py.detach(|| match log.try_read() {
        Ok(log) if !is_long(&log) => Ok(read(&log)),
        _ => Err(read),
    });
    let read = match done {
        Ok(done) => return done.map_err(raised),
        Err(read) => read,
    };
    let log = Arc::clone(log);
    interruptible(py, move |_| read(&reading(&log)))?.map_err(raised)
}
