//! The line of an error with a marker below it.

use std::{fmt, ops::Range};
use unicode_width::UnicodeWidthStr;

/// A line of text with carets under the faulty part.
#[derive(Debug)]
pub(crate) struct Snippet {
    /// The line number, from 1.
    pub(crate) line: usize,
    /// The column in characters, from 1.
    pub(crate) column: usize,
    /// The shown part of the line.
    text: String,
    /// The number of columns before the carets.
    before: usize,
    /// The number of carets.
    marked: usize,
}

impl Snippet {
    /// Maximum number of characters shown of a line.
    const WIDEST: usize = 100;

    /// Creates the snippet for a byte range of a text. The range may lie outside of the text or split a
    /// character.
    pub(crate) fn from_span(text: &str, span: Range<usize>) -> Self {
        // Moved into the text and to a character boundary, because slicing panics elsewhere.
        let mut start = span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // Control characters could move the cursor or hide text in a terminal.
        let shown = |text: &str| {
            text.chars()
                .take(Self::WIDEST)
                .collect::<String>()
                .replace('\t', " ")
                .replace(char::is_control, "?")
        };
        // A range over several lines is marked up to the end of its first line.
        let end =
            (start..=to).rev().find(|at| *at <= span.end && text.is_char_boundary(*at)).unwrap_or(start);
        let before = shown(&text[from..start]).width();
        Self {
            line: Self::line_of(text, start),
            column: text[from..start].chars().count() + 1,
            text: shown(text[from..to].trim_end()),
            before,
            // At least one caret, and none behind the shown part.
            marked: shown(&text[start..end]).width().clamp(1, Self::WIDEST.saturating_sub(before).max(1)),
        }
    }

    /// Returns the line number (from 1) of a byte offset in a text.
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
