//! What a message says, as lines of text.

use super::printable;
use context_window::{Message, Part, ToolCall};

/// What stands for a text that was left in a store.
pub(crate) const LEFT: &str = "[text left in the store]";

/// The lines of a message: its text, its parts, its tool calls. Not made printable.
#[must_use]
#[doc(hidden)]
pub fn message_lines(message: &Message) -> Vec<String> {
    let mut lines: Vec<String> = message.text().lines().map(str::to_owned).collect();
    if !message.is_loaded() {
        lines.push(LEFT.into());
    }
    for part in message.parts() {
        match part {
            Part::Text(text) => lines.extend(text.lines().map(str::to_owned)),
            Part::Image { .. } => lines.push("[image]".into()),
            Part::Opaque { .. } => lines.push("[part]".into()),
        }
    }
    lines.extend(message.tool_calls().iter().map(call_line));
    lines
}

/// A tool call in a line. Not made printable.
#[must_use]
#[doc(hidden)]
pub fn call_line(call: &ToolCall) -> String {
    format!("→ {} {}", call.name, call.arguments)
}

/// A line of a text as a terminal may have it; tabs are four spaces.
#[must_use]
pub fn shown(line: &str) -> String {
    printable(&line.replace('\t', "    "))
}
