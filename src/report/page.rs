//! A page of text: its width, its colours, and lines that fit on it whatever their script.

use std::fmt;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Below this the columns have no room to say anything.
const NARROWEST: usize = 60;

/// How wide a page is, and whether it has colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Page {
    columns: usize,
    colour: bool,
}

impl Default for Page {
    fn default() -> Self {
        Self { columns: 80, colour: false }
    }
}

impl Page {
    pub(super) fn width(mut self, columns: usize) -> Self {
        self.columns = columns.max(NARROWEST);
        self
    }

    pub(super) fn colour(mut self, colour: bool) -> Self {
        self.colour = colour;
        self
    }

    pub(super) fn columns(self) -> usize {
        self.columns
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }

    /// A title, which goes on in the next line where it is too long for one.
    pub(super) fn title(self, f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
        let lines = wrapped(text, self.columns);
        lines.iter().try_for_each(|line| writeln!(f, "{}", self.bold(line)))
    }

    /// A label, and a text beside it that goes on under itself where it is too long for a line.
    pub(super) fn hanging(self, f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
        let indent = label.width();
        let room = self.columns.saturating_sub(indent).max(1);
        for (number, line) in wrapped(text, room).iter().enumerate() {
            let line = format!("{}{line}", if number == 0 { label.to_owned() } else { " ".repeat(indent) });
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// A title, and under it rows of a number, a name and what is said of it.
    pub(super) fn rows(self, f: &mut fmt::Formatter<'_>, title: &str, rows: Vec<[String; 3]>) -> fmt::Result {
        writeln!(f, "\n{}", self.bold(title))?;
        let widest = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or_default();
        let numbers = widest(0).max(8);
        // Names get what the texts leave them, and no less than a third of the page.
        let names = self.columns.saturating_sub(numbers + 4 + widest(2)).max(self.columns / 3).min(widest(1));
        let rest = self.columns.saturating_sub(numbers + 4 + names);
        for [number, name, text] in rows {
            let text = fitted(&text, rest.min(text.width()));
            writeln!(f, "{number:>numbers$}  {}  {}", fitted(&name, names), self.dim(&text))?;
        }
        Ok(())
    }
}

/// A text in lines of at most so many columns, broken between words, and inside of a word that is too long for a line.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word;
        loop {
            let line = lines.last_mut().map(|line| (line.width(), line));
            let Some((used, line)) = line else { return lines };
            let space = usize::from(used > 0);
            if used + space + word.width() <= columns {
                if space > 0 {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let cut = word.char_indices().find(|(at, c)| word[..at + c.len_utf8()].width() > columns);
            let at = cut.map_or(word.len(), |(at, c)| if at == 0 { c.len_utf8() } else { at });
            line.push_str(&word[..at]);
            word = &word[at..];
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// A text of exactly so many columns: filled up with spaces, or cut with an ellipsis.
fn fitted(text: &str, columns: usize) -> String {
    let width = text.width();
    if width <= columns {
        return format!("{text}{}", " ".repeat(columns - width));
    }
    let mut cut = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or_default();
        if used > columns {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    let fill = columns.saturating_sub(cut.width());
    cut.push_str(&" ".repeat(fill));
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_columns_whatever_their_script() {
        let texts = [("日本語の長い名前", 7), ("abc", 7), ("🦀🦀🦀🦀", 5), ("e\u{301}e\u{301}", 2)];
        for (text, columns) in texts {
            assert_eq!(fitted(text, columns).width(), columns, "{text}");
            let lines = wrapped(text, columns);
            assert!(lines.iter().all(|line| line.width() <= columns), "{lines:?}");
            assert_eq!(lines.concat(), text);
        }
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("🦀", 1), ["🦀"]);
    }
}
