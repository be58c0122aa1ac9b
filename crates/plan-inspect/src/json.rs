//! JSON output. It has the same values as the input, but no characters that a terminal would interpret
//! (control characters, rule V3).

use anyhow::Result;
use context_window_report as report;
use serde::Serialize;
use std::fmt::Write as _;

/// Returns a value as indented JSON with a final line break.
pub(crate) fn indented(value: &impl Serialize) -> Result<String> {
    Ok(inert(&serde_json::to_string_pretty(value)?) + "\n")
}

/// Indents JSON text and adds a final line break. The spelling of every value is kept, such as `1e2`.
pub(crate) fn indented_text(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let mut before = ' ';
    let mut characters = json.chars().peekable();
    while let Some(c) = characters.next() {
        if quoted {
            out.push(c);
            // A quotation mark ends the string unless a backslash precedes it. Two backslashes cancel each
            // other.
            quoted = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            before = c;
            continue;
        }
        let closes = characters.peek().is_some_and(|next| matches!(next, ']' | '}'));
        match c {
            '[' | '{' => {
                out.push(c);
                depth += 1;
                if !closes {
                    begin_line(&mut out, depth);
                }
            }
            ']' | '}' => {
                depth -= 1;
                // Empty arrays and objects stay on one line.
                if !matches!(before, '[' | '{') {
                    begin_line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                begin_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => continue,
            c => {
                quoted = c == '"';
                out.push(c);
            }
        }
        before = c;
    }
    inert(&out) + "\n"
}

/// Begins a new line with two spaces for each level of `depth`.
fn begin_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Returns a value as JSON in one line, with a final line break.
pub(crate) fn on_a_line(value: &impl Serialize) -> Result<String> {
    Ok(inert(&serde_json::to_string(value)?) + "\n")
}

/// Escapes controls and direction marks in JSON text. They occur only inside strings, so the values remain
/// the same. Line breaks between values are kept.
pub(crate) fn inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for (c, shown) in json.chars().zip(report::printable(json).chars()) {
        if c == shown || c == '\n' {
            out.push(c);
            continue;
        }
        // JSON escapes are UTF-16 code units, so some characters need two.
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indented_text_equals_indented_values() {
        let texts = [
            r#"{"a":[1,{"b":"x,:[]{}\"\\"}],"c":{},"d":[],"e":[[],{"f":null}]}"#,
            r#"[{"a":"\\\"}"},true]"#,
            "[]",
        ];
        for json in texts {
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(indented_text(json), indented(&value).unwrap(), "{json}");
        }
        assert_eq!(
            indented_text("[1e2,10000000000000000000001.0]"),
            "[\n  1e2,\n  10000000000000000000001.0\n]\n"
        );
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let hostile = "a\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\u{2066}\u{61c}\u{200f}\r\n\t\"\\\u{10ffff}é";
        for text in [indented(&[hostile]).unwrap(), on_a_line(&[hostile]).unwrap()] {
            assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), [hostile]);
            assert!(text.lines().all(|line| report::printable(line) == line), "{text:?}");
        }
    }
}
