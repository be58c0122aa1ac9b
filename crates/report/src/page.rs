//! A page of text with a width, optional colours, and lines that fit the width in every script.

use super::columns::{cut_ids, fitted, wrapped};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// The smallest width in columns. The columns of a report have no room below it.
const MIN_COLUMNS: usize = 60;

/// The width and the colour setting of a page.
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
        self.columns = columns.max(MIN_COLUMNS);
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

    /// Paints a text in one of the 16 terminal colours. `None` is dim.
    pub(super) fn coloured(self, colour: Option<u8>, text: &str) -> String {
        match colour {
            // The codes of colours 0 to 7 begin at 30, those of the bright colours 8 to 15 at 90.
            Some(colour @ 0..8) => self.paint(&format!("{}", 30 + colour), text),
            Some(colour) => self.paint(&format!("{}", 82 + colour), text),
            None => self.dim(text),
        }
    }

    /// Wraps a text in an ANSI code. Returns the text unchanged if colours are off or the text is empty.
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }

    /// Writes a title in bold. A long title continues on the next line.
    pub(super) fn title(self, f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
        let lines = wrapped(text, self.columns);
        lines.iter().try_for_each(|line| writeln!(f, "{}", self.bold(line)))
    }

    /// Writes a label followed by a text. Continuation lines are indented by the width of the label.
    pub(super) fn hanging(self, f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
        let indent = label.width();
        let room = self.columns.saturating_sub(indent).max(1);
        for (number, line) in wrapped(text, room).iter().enumerate() {
            let line = format!("{}{line}", if number == 0 { label.to_owned() } else { " ".repeat(indent) });
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes a label followed by texts separated by commas. Lines break only between texts, never inside
    /// one.
    pub(super) fn listed(self, f: &mut fmt::Formatter<'_>, label: &str, texts: &[String]) -> fmt::Result {
        // A no-break space hides the spaces inside a text from `wrapped`, which breaks at plain spaces only.
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

    /// Writes a title and rows of a number, a name and a description. Of more than `most` rows, only the
    /// beginning and the end are shown, with a count between them.
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
        // Names get the columns that the texts leave free, but at least a third of the page.
        let names = self.columns.saturating_sub(numbers + 4 + widest(2)).max(self.columns / 3).min(widest(1));
        let rest = self.columns.saturating_sub(numbers + 4 + names);
        // At least two rows are shown. A third of them comes before the count, and the rest after it.
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
            // Trimming after painting would not find the spaces before the colour code.
            let text = self.dim(text.trim_end());
            writeln!(f, "{}", format!("{number:>numbers$}  {}  {text}", fitted(&name, names)).trim_end())?;
        }
        Ok(())
    }
}
