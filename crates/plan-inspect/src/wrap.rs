//! Wrapping of long lines.

use context_window_report as report;
use unicode_width::UnicodeWidthStr;

/// The maximum indent of a continuation line, in columns.
const MAX_INDENT: usize = 20;

/// Wraps the lines of a text that are longer than `limit` columns. A continuation line is indented to the
/// first word after the label, if the line has a label.
pub(crate) fn folded(text: &str, limit: Option<usize>) -> String {
    let Some(limit) = limit else { return text.into() };
    let mut page = String::new();
    for line in text.lines() {
        let (label, words) = line.split_at(if line.width() > limit { words(line) } else { 0 });
        let room = limit.saturating_sub(label.width()).max(1);
        let lines = if line.width() > limit { report::wrapped(words, room) } else { vec![line.to_owned()] };
        for (number, part) in lines.iter().enumerate() {
            page += &if number == 0 { label.to_owned() } else { " ".repeat(label.width()) };
            page += part;
            page.push('\n');
        }
    }
    page
}

/// Returns the position of the first word of a line in bytes. This is the first text after a label and at
/// least two spaces, or else the first text.
fn words(line: &str) -> usize {
    let start = line.len() - line.trim_start().len();
    let label = line[start..].find("  ").map(|at| start + at);
    let behind = label.map(|at| line.len() - line[at..].trim_start().len());
    behind.filter(|at| line[..*at].width() <= MAX_INDENT).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_under_their_own_words() {
        let text = "label   one two three\n  a b c d e f g h i j\nshort\n\n";
        let folded_text = "label   one two\n        three\n  a b c d e f g\n  h i j\nshort\n\n";
        assert_eq!(folded(text, Some(15)), folded_text);
        assert_eq!(folded(text, None), text);
    }
}
