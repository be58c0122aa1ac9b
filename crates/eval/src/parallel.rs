//! The evaluation of many sessions on all cores.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    thread,
};

/// Evaluates sessions on `threads` threads. Calls `done` with each result, in the order of the sessions.
///
/// A session is any value that `evaluate` turns into a result, such as its JSON text. Only the sessions that
/// are being evaluated are in memory, and results that wait for an earlier one.
///
/// # Errors
///
/// Returns the first error in the order of the sessions, from `sessions`, `evaluate` or `done`. Later
/// sessions may have been evaluated, but are not passed to `done`.
pub fn evaluate_all<T: Send, R: Send, E: Send>(
    sessions: impl Iterator<Item = Result<T, E>> + Send,
    threads: usize,
    evaluate: impl Fn(T) -> Result<R, E> + Sync,
    mut done: impl FnMut(R) -> Result<(), E> + Send,
) -> Result<(), E> {
    let waiting = Mutex::new(sessions.enumerate());
    let finished = Mutex::new(Finished { next: 0, results: BTreeMap::new(), done: &mut done, failed: None });
    let work = || {
        loop {
            // The lock covers only the reading of the next session, not its evaluation.
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, session)) = next else { return };
            let result = session.and_then(&evaluate);
            if !finished.lock().unwrap_or_else(PoisonError::into_inner).add(at, result) {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    finished.into_inner().unwrap_or_else(PoisonError::into_inner).failed.map_or(Ok(()), Err)
}

/// The results so far, passed on in order.
struct Finished<'d, R, E> {
    /// The position of the next result to pass on.
    next: usize,
    results: BTreeMap<usize, Result<R, E>>,
    done: &'d mut (dyn FnMut(R) -> Result<(), E> + Send),
    failed: Option<E>,
}

impl<R, E> Finished<'_, R, E> {
    /// Adds a result, and passes on those whose turn it is. Returns false after an error.
    fn add(&mut self, at: usize, result: Result<R, E>) -> bool {
        self.results.insert(at, result);
        while let Some(result) = self.results.remove(&self.next).filter(|_| self.failed.is_none()) {
            self.next += 1;
            self.failed = result.and_then(&mut *self.done).err();
        }
        self.failed.is_none()
    }
}
