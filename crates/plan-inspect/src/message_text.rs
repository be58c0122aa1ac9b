//! What a message says, as text.

use context_window::Message;
use context_window_report as report;
pub(crate) use report::shown;

/// Its lines: text, parts, calls; or all of them in one line.
pub(crate) fn lines(message: &Message, whole: bool) -> Vec<String> {
    let lines = report::message_lines(message);
    if whole && !lines.is_empty() {
        return lines;
    }
    vec![lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")]
}
