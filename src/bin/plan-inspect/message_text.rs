//! What a message says, as text.

use context_window::{Message, Part, ToolCall, report};

/// Its lines: text, parts, calls; or all of them in one line.
pub(crate) fn lines(message: &Message, whole: bool) -> Vec<String> {
    let mut lines: Vec<String> = message.text().lines().map(str::to_owned).collect();
    for part in message.parts() {
        match part {
            Part::Text(text) => lines.extend(text.lines().map(str::to_owned)),
            Part::Image { .. } => lines.push("[image]".into()),
            _ => lines.push("[part]".into()),
        }
    }
    lines.extend(message.tool_calls().iter().map(call));
    if whole && !lines.is_empty() {
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
