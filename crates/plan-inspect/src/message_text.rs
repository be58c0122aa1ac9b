//! The contents of a message as text.

use context_window::Message;
use context_window_report as report;
pub(crate) use report::shown;

/// Returns the lines of a message: text, parts and calls. If `whole` is false, all of them are joined into
/// one line.
pub(crate) fn lines(message: &Message, whole: bool) -> Vec<String> {
    let lines = report::message_lines(message);
    if whole && !lines.is_empty() {
        return lines;
    }
    vec![lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")]
}
