//! Progress of long operations on standard error. It appears only on a terminal and only after a delay, and
//! is cleared at the end.

use crate::interrupt;
use context_window_report as report;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::{self, IsTerminal},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

/// The time before progress is shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// The time between two frames of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// The maximum width of the progress text in columns, which prevents the terminal from wrapping the line.
const COLUMNS: usize = 50;

/// A long operation, until it is dropped. It has no colours, so `--color` and `NO_COLOR` change nothing.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The sender that cancels the delay, and the thread that waits. `None` if standard error is not a
    /// terminal.
    wait: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts an operation of unknown length.
    pub(crate) fn spinner(what: &str) -> Self {
        Self::new(what, None, "{spinner} {msg}")
    }

    /// Starts an operation of an unknown number of steps. Call [`Progress::step`] after each.
    pub(crate) fn counter(what: &str) -> Self {
        Self::new(what, None, "{spinner} {msg} {pos}")
    }

    /// Starts an operation of `steps` steps. Call [`Progress::step`] after each.
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
                interrupt::register_bar(&shown);
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        Self { bar, wait: Some((done, thread::spawn(show))) }
    }

    /// Reports one completed step.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, wait)) = self.wait.take() {
            // Dropping the sender wakes the thread at once, so a short operation does not wait.
            drop(done);
            // The thread only waits, so it cannot panic.
            drop(wait.join());
            self.bar.finish_and_clear();
        }
    }
}
