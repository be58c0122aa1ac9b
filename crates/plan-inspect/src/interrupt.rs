//! Ctrl-C and the other ways to be ended: what is being written is finished first, and what shows progress is cleared.

use indicatif::ProgressBar;
use std::{
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Held while a file is written.
static WRITING: Mutex<()> = Mutex::new(());

/// What shows progress.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Whether the process has been told to end.
static TOLD: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// More than any thread takes to end the process.
const AT_ONCE: Duration = Duration::from_secs(1);

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing ends the process while this is held; what was told to end it meanwhile does so right after.
pub(crate) struct Writing(Option<MutexGuard<'static, ()>>);

impl Writing {
    pub(crate) fn begin() -> Self {
        watch();
        Self(Some(held(&WRITING)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        drop(self.0.take());
        if TOLD.load(Ordering::SeqCst) && !has_a_screen() {
            thread::sleep(AT_ONCE);
        }
    }
}

/// Clears this line before the process ends.
pub(crate) fn clears(bar: &ProgressBar) {
    watch();
    *held(&SHOWN) = Some(bar.clone());
}

/// A screen of its own ends itself.
fn has_a_screen() -> bool {
    ratatui::crossterm::terminal::is_raw_mode_enabled().unwrap_or_default()
}

#[cfg(unix)]
fn watch() {
    use signal_hook::{consts, flag, low_level};
    use std::{io::Read, os::unix::net::UnixStream, sync::Once};

    static ONCE: Once = Once::new();
    let watch = |signal: i32| -> std::io::Result<()> {
        let (mut told, tell) = UnixStream::pair()?;
        flag::register(signal, TOLD.clone())?;
        low_level::pipe::register(signal, tell)?;
        thread::spawn(move || {
            while told.read_exact(&mut [0]).is_ok() {
                if has_a_screen() {
                    continue;
                }
                if let Some(bar) = held(&SHOWN).take() {
                    bar.finish_and_clear();
                }
                let _written = held(&WRITING);
                drop(low_level::emulate_default_handler(signal));
            }
        });
        Ok(())
    };
    // Where signals cannot be watched they do what they always do.
    let all = [consts::SIGINT, consts::SIGTERM, consts::SIGHUP];
    ONCE.call_once(|| all.into_iter().for_each(|signal| drop(watch(signal))));
}

#[cfg(not(unix))]
fn watch() {}
