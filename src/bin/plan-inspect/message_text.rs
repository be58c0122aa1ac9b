//! What a message says, as text.

use context_window::{Message, ToolCall, report};

/// Its lines: text, parts, calls; or all of them in one line.
pub(crate) fn lines(message: &Message, whole: bool) -> Vec<String> {
    let lines = report::message_lines(message);
    if whole {
        return lines;
    }
    vec![lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")]
}

pub(crate) fn call(call: &ToolCall) -> String {
    format!("→ {} {}", call.name, call.arguments)
}

/// A line of a text as a terminal may have it; tabs are four spaces.
pub(crate) fn shown(line: &str) -> String {
    report::printable(&line.replace('\t', "    "))
}
