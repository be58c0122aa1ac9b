//! Handling of Ctrl-C and other termination signals. A file that is being written is completed first, and a
//! progress line is cleared.

use indicatif::ProgressBar;
use std::{
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// The lock that is held while a file is written.
static WRITING: Mutex<()> = Mutex::new(());

/// The visible progress bar, if any.
static PROGRESS_BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// True if the process has received a termination signal.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// A time in which the signal thread certainly ends the process.
const EXIT_WAIT: Duration = Duration::from_secs(1);

/// Locks a mutex. A panic of another holder is ignored, because the values stay valid.
fn lock_ignoring_poison<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guard that delays termination while a file is written. If a signal arrives in the meantime, the process
/// ends when the guard is dropped.
pub(crate) struct Writing(Option<MutexGuard<'static, ()>>);

impl Writing {
    pub(crate) fn begin() -> Self {
        watch();
        Self(Some(lock_ignoring_poison(&WRITING)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        drop(self.0.take());
        if INTERRUPTED.load(Ordering::SeqCst) && !has_a_screen() {
            // The signal thread now has the lock and ends the process. Without the wait, the caller could go
            // on and print a result.
            thread::sleep(EXIT_WAIT);
        }
    }
}

/// Registers a progress bar, which is cleared before the process ends.
pub(crate) fn register_bar(bar: &ProgressBar) {
    watch();
    *lock_ignoring_poison(&PROGRESS_BAR) = Some(bar.clone());
}

/// Checks if the interactive screen is active. It handles signals itself.
fn has_a_screen() -> bool {
    ratatui::crossterm::terminal::is_raw_mode_enabled().unwrap_or_default()
}

#[cfg(unix)]
fn watch() {
    use signal_hook::{consts, flag, low_level};
    use std::{io::Read, os::unix::net::UnixStream, sync::Once};

    static ONCE: Once = Once::new();
    // A signal handler may not lock or print. It writes a byte to a socket, and a thread does the rest.
    let watch = |signal: i32| -> std::io::Result<()> {
        let (mut told, tell) = UnixStream::pair()?;
        flag::register(signal, INTERRUPTED.clone())?;
        low_level::pipe::register(signal, tell)?;
        thread::spawn(move || {
            while told.read_exact(&mut [0]).is_ok() {
                if has_a_screen() {
                    continue;
                }
                if let Some(bar) = lock_ignoring_poison(&PROGRESS_BAR).take() {
                    bar.finish_and_clear();
                }
                let _written = lock_ignoring_poison(&WRITING);
                drop(low_level::emulate_default_handler(signal));
            }
        });
        Ok(())
    };
    // If signals cannot be watched, their default effect remains.
    let all = [consts::SIGINT, consts::SIGTERM, consts::SIGHUP];
    ONCE.call_once(|| all.into_iter().for_each(|signal| drop(watch(signal))));
}

#[cfg(not(unix))]
fn watch() {}
