//! Messages on standard error. Where that cannot be written (closed, full, a reader that went away) it is
//! not said: that is no reason to fail.

use crate::secrets::masked;
use context_window::text::plain;
use context_window_report as report;
use std::io::Write;

/// Something the reader of a result should know.
pub(crate) fn note(text: &str) {
    line("\u{1b}[33m", &format!("plan-inspect: note: {text}"));
}

/// What went wrong. It may quote the file it is about, and a file may hold anything.
pub(crate) fn error(error: &anyhow::Error) {
    format!("plan-inspect: {error:#}").lines().for_each(|text| line("\u{1b}[1;31m", text));
}

/// A line, cut where it is long (rule V4), whose beginning, the name of the tool, is in this colour where
/// standard error has colours.
fn line(colour: &str, text: &str) {
    const NAME: &str = "plan-inspect:";
    let text = report::printable(&plain::bounded(&masked(text)));
    let text = match text.strip_prefix(NAME) {
        Some(rest) => format!("{colour}{NAME}\u{1b}[0m{rest}"),
        None => text,
    };
    drop(writeln!(anstream::stderr(), "{text}"));
}
