//! Long work, which Ctrl-C interrupts.
//!
//! Python delivers signals only to its main thread, between two steps of the interpreter. Long work therefore
//! runs on another thread, and the calling thread looks for signals in the meantime.

use pyo3::{exceptions::PyRuntimeError, prelude::*};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

/// The pause between two looks for signals.
const POLL: Duration = Duration::from_millis(20);

/// The size in bytes from which on a text takes long to count: about 30 ms.
pub(crate) const LONG: usize = 256 << 10;

/// The maximum number of idle threads that are kept.
const IDLE_THREADS: usize = 8;

/// The stack size of a worker in bytes, which is that of the main thread on most systems.
const STACK_BYTES: usize = 8 << 20;

/// Work that returns the delivery of its result.
type Job = Box<dyn FnOnce() -> Delivery + Send>;
type Delivery = Box<dyn FnOnce() + Send>;

/// Idle threads, each with the process that started it. A thread does not survive a fork.
static IDLE: Mutex<Vec<(u32, Sender<Job>)>> = Mutex::new(Vec::new());

const RUNNING: u8 = 0;
const STOPPED: u8 = 1;
const COMMITTED: u8 = 2;

/// The state of interruptible work, shared between its thread and the calling thread. Work is either stopped
/// or may change shared state, never both.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Returns true if the result is not wanted any more.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) == STOPPED
    }

    /// Returns true if the work may change shared state. It cannot be stopped from then on.
    pub(crate) fn commit(&self) -> bool {
        self.0.compare_exchange(RUNNING, COMMITTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Stops the work. Returns false if it has committed.
    fn set(&self) -> bool {
        self.0.compare_exchange(RUNNING, STOPPED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Runs work that may take long. Other Python threads run in the meantime.
///
/// Raises `KeyboardInterrupt`, or the exception of another signal handler, at most 20 ms after the signal.
/// The work then goes on without a reader until it looks at its [`Stop`]. Work that has committed is awaited,
/// so that its change is complete when the exception is raised.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> PyResult<T> {
    let (result, mut received) = channel();
    let stop = Stop::default();
    let seen = stop.clone();
    hand_over(Box::new(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&seen)));
        // Nobody may wait for the result any more.
        Box::new(move || drop(result.send(done)))
    }))?;
    let mut interrupted = None;
    loop {
        // The receiver moves into the closure and back, because it must not be shared between threads.
        let (back, got) = py.detach(move || {
            let got = received.recv_timeout(POLL);
            (received, got)
        });
        received = back;
        match got {
            Ok(Ok(done)) => return interrupted.map_or(Ok(done), Err),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    if stop.set() {
                        return Err(signal);
                    }
                    interrupted = Some(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the thread of a long call ended before its work"));
            }
        }
    }
}

/// Passes a job to an idle thread, or starts one.
fn hand_over(mut job: Job) -> PyResult<()> {
    let process = std::process::id();
    loop {
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|(of, _)| *of == process);
            idle.pop()
        };
        let Some((_, worker)) = idle else { break };
        match worker.send(job) {
            Ok(()) => return Ok(()),
            Err(ended) => job = ended.0,
        }
    }
    let (sender, jobs) = channel::<Job>();
    let own = sender.clone();
    let work = move || {
        for job in jobs {
            let deliver = job();
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let is_kept = idle.len() < IDLE_THREADS;
            if is_kept {
                idle.push((process, own.clone()));
            }
            drop(idle);
            // The thread is idle before its caller continues, so that the next call uses it again.
            deliver();
            if !is_kept {
                return;
            }
        }
    };
    let builder = thread::Builder::new().name("context-window".into()).stack_size(STACK_BYTES);
    builder
        .spawn(work)
        .map_err(|error| PyRuntimeError::new_err(format!("no thread can be started: {error}")))?;
    sender.send(job).map_err(|_| PyRuntimeError::new_err("the thread of a long call ended before its work"))
}
