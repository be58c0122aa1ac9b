//! A page of text: its width, its colours, and lines that fit on it whatever their script.

use super::columns::{cut_ids, fitted, wrapped};
use std::fmt;
use unicode_width::UnicodeWidthStr;

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

    /// In one of the 16 colours of a terminal.
    pub(super) fn coloured(self, colour: Option<u8>, text: &str) -> String {
        match colour {
            Some(colour @ 0..8) => self.paint(&format!("{}", 30 + colour), text),
            Some(colour) => self.paint(&format!("{}", 82 + colour), text),
            None => self.dim(text),
        }
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

    /// A label, and several texts beside it; lines break between them, not inside of one.
    pub(super) fn listed(self, f: &mut fmt::Formatter<'_>, label: &str, texts: &[String]) -> fmt::Result {
        const UNBROKEN: &str = "\u{a0}";
        let texts: Vec<String> = texts.iter().map(|text| text.replace(' ', UNBROKEN)).collect();
        let indent = label.width();
        let lines = wrapped(&texts.join(", "), self.columns.saturating_sub(indent).max(1));
        for (number, line) in lines.iter().enumerate() {
            let start = if number == 0 { label.to_owned() } else { " ".repeat(indent) };
            writeln!(f, "{}", format!("{start}{}", line.replace(UNBROKEN, " ")).trim_end())?;
        }
        Ok(())
    }

    /// A title, and under it rows of a number, a name and what is said of it. Of more than `most` the beginning and the end
    /// are shown.
    pub(super) fn rows(
        self,
        f: &mut fmt::Formatter<'_>,
        title: &str,
        most: usize,
        rows: Vec<[String; 3]>,
    ) -> fmt::Result {
        writeln!(f, "\n{}", self.bold(title))?;
        let widest = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or_default();
        let numbers = widest(0).max(8);
        // Names get what the texts leave them, and no less than a third of the page.
        let names = self.columns.saturating_sub(numbers + 4 + widest(2)).max(self.columns / 3).min(widest(1));
        let rest = self.columns.saturating_sub(numbers + 4 + names);
        let folded = rows.len().saturating_sub(most.max(2));
        let from = most.max(2) / 3;
        let cut = cut_ids((1..).zip(rows.iter().map(|row| row[1].as_str())), names);
        for (at, ([number, _, text], name)) in rows.into_iter().zip(cut).enumerate() {
            if folded > 0 && at == from {
                writeln!(f, "{:>numbers$}  {}", "…", self.dim(&format!("{folded} more: --all shows them")))?;
            }
            if folded > 0 && (from..from + folded).contains(&at) {
                continue;
            }
            let text = fitted(&text, rest.min(text.width()));
            let text = self.dim(text.trim_end());
            writeln!(f, "{}", format!("{number:>numbers$}  {}  {text}", fitted(&name, names)).trim_end())?;
        }
        Ok(())
    }
}
