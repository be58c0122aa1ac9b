//! Messages on standard error. Where that cannot be written (closed, full, a reader that went away) it is
//! not said: that is no reason to fail.

use context_window::report;
use std::io::{self, Write};

/// Something the reader of a result should know.
pub(crate) fn note(text: &str) {
    line(&format!("plan-inspect: note: {text}"));
}

/// What went wrong. It may quote the file it is about, and a file may hold anything.
pub(crate) fn error(error: &anyhow::Error) {
    format!("plan-inspect: {error:#}").lines().for_each(line);
}

fn line(text: &str) {
    drop(writeln!(io::stderr(), "{}", report::printable(text)));
}
