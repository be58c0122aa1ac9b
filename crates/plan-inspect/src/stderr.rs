//! Messages on standard error. If standard error cannot be written (closed, full, or without a reader), the
//! message is lost, and the run does not fail.

use crate::secrets::masked;
use context_window::text::plain;
use context_window_report as report;
use std::io::Write;

/// Prints a note about the result.
pub(crate) fn note(text: &str) {
    line("\u{1b}[33m", &format!("plan-inspect: note: {text}"));
}

/// Prints an error. It can quote a file with arbitrary contents, so [`line`] makes it printable.
pub(crate) fn error(error: &anyhow::Error) {
    format!("plan-inspect: {error:#}").lines().for_each(|text| line("\u{1b}[1;31m", text));
}

/// Prints a line, with passwords masked and long text cut (length of messages, rule V4). The tool's name at
/// its beginning has this colour if standard error supports colours.
fn line(colour: &str, text: &str) {
    const NAME: &str = "plan-inspect:";
    let text = report::printable(&plain::bounded(&masked(text)));
    let text = match text.strip_prefix(NAME) {
        Some(rest) => format!("{colour}{NAME}\u{1b}[0m{rest}"),
        None => text,
    };
    drop(writeln!(anstream::stderr(), "{text}"));
}
