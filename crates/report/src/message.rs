//! The contents of a message as lines of text.

use super::printable;
use context_window::{Message, Part, ToolCall};

/// The placeholder for a text that was not loaded from its store.
pub(crate) const LEFT: &str = "[text not loaded from the store]";

/// Returns the lines of a message: its text, its parts and its tool calls. They can contain control
/// characters.
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

/// Returns a tool call as one line. It can contain control characters.
#[must_use]
#[doc(hidden)]
pub fn call_line(call: &ToolCall) -> String {
    format!("→ {} {}", call.name, call.arguments)
}

/// Makes a line safe to print to a terminal. Tabs become four spaces.
#[must_use]
pub fn shown(line: &str) -> String {
    printable(&line.replace('\t', "    "))
}
