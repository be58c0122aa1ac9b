//! The line of an error, shown with a marker below it.

use std::{fmt, ops::Range};
use unicode_width::UnicodeWidthStr;

/// A line of a text with carets under the part that is meant.
#[derive(Debug)]
pub(crate) struct Snippet {
    pub(crate) line: usize,
    pub(crate) column: usize,
    text: String,
    /// Columns before the carets, and the carets.
    before: usize,
    marked: usize,
}

impl Snippet {
    /// Columns of a line that are shown.
    const WIDEST: usize = 100;

    pub(crate) fn of(text: &str, span: Range<usize>) -> Self {
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let shown = |text: &str| {
            text.chars()
                .take(Self::WIDEST)
                .collect::<String>()
                .replace('\t', " ")
                .replace(char::is_control, "?")
        };
        let end =
            (start..=to).rev().find(|at| *at <= span.end && text.is_char_boundary(*at)).unwrap_or(start);
        let before = shown(&text[from..start]).width();
        Self {
            line: Self::line_of(text, start),
            column: text[from..start].chars().count() + 1,
            text: shown(text[from..to].trim_end()),
            before,
            marked: shown(&text[start..end]).width().clamp(1, Self::WIDEST.saturating_sub(before).max(1)),
        }
    }

    /// The line of a byte offset in a text, from 1.
    pub(crate) fn line_of(text: &str, at: usize) -> usize {
        text.as_bytes()[..at.min(text.len())].split(|byte| *byte == b'\n').count()
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let (before, carets) = (" ".repeat(self.before), "^".repeat(self.marked));
        write!(f, "{margin} |\n{number} | {}\n{margin} | {before}{carets}", self.text)
    }
}
