//! JSON as it is printed: the same values, and nothing that a terminal acts on (rule V3).

use anyhow::Result;
use context_window_report as report;
use serde::Serialize;
use std::fmt::Write as _;

/// An indented value and a line break.
pub(crate) fn indented(value: &impl Serialize) -> Result<String> {
    Ok(inert(&serde_json::to_string_pretty(value)?) + "\n")
}

/// A value on a line of its own.
pub(crate) fn on_a_line(value: &impl Serialize) -> Result<String> {
    Ok(inert(&serde_json::to_string(value)?) + "\n")
}

/// JSON with controls and direction marks, which stand in texts only, as the escapes that mean them. Line breaks are those
/// between values.
pub(crate) fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for (c, shown) in json.chars().zip(report::printable(json).chars()) {
        if c == shown || c == '\n' {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a text never fails.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_means_the_same() {
        let hostile = "a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\u{2066}\u{61c}\u{200f}\r\n\t\"\\\u{10ffff}é";
        for text in [indented(&[hostile]).unwrap(), on_a_line(&[hostile]).unwrap()] {
            assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile]);
            assert!(text.lines().all(|line| report::printable(line) == line), "{text:?}");
        }
    }
}
