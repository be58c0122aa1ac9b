//! Long work shows itself on standard error: only where that is a terminal, only after a while, and it leaves nothing there.

use crate::interrupt;
use context_window_report as report;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Work that takes less is not worth a line.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// The most columns of the progress text, so that the terminal does not wrap the line.
const COLUMNS: usize = 50;

/// One piece of long work, until it is dropped. It has no colours, so `--color` and `NO_COLOR` change nothing.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Who waits before anything is shown; none where nothing ever is.
    wait: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Work of unknown length.
    pub(crate) fn spinner(what: &str) -> Self {
        Self::new(what, None, "{spinner} {msg}")
    }

    /// Work of a known number of steps; call [`Progress::step`] for each.
    pub(crate) fn bar(what: &str, steps: usize) -> Self {
        Self::new(what, Some(steps as u64), "{msg} {bar:20} {pos} of {len}")
    }

    fn new(what: &str, steps: Option<u64>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::hidden());
        if !io::stderr().is_terminal() {
            return Self { bar, wait: None };
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("##-"));
        }
        bar.set_message(report::cut(&report::printable(what), COLUMNS));
        let (done, waited) = mpsc::channel();
        let shown = bar.clone();
        let show = move || {
            if waited.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                interrupt::clears(&shown);
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        Self { bar, wait: Some((done, thread::spawn(show))) }
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, wait)) = self.wait.take() {
            drop(done);
            // A thread that only waits cannot fail.
            drop(wait.join());
            self.bar.finish_and_clear();
        }
    }
}
