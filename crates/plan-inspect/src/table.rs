//! A text table with aligned columns.

use context_window_report as report;
use std::fmt;
use unicode_width::UnicodeWidthStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The colour of a row, if colours are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Heading,
    Good,
    Warning,
    Alarm,
    Faint,
}

impl Tone {
    /// Paints a text in this tone if `colour` is true.
    pub(crate) fn paint(self, text: &str, colour: bool) -> String {
        let code = match self {
            Self::Plain => return text.into(),
            Self::Heading => "1",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Alarm => "1;31",
            Self::Faint => "2",
        };
        if colour && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }
}

/// The number of columns between two cells.
const GAP: usize = 2;

/// The minimum width of a name, and of a text next to other cells.
const LEAST: usize = 12;

/// The indent of a text that has its own lines below the row.
const INDENT: usize = 4;

/// Rows under a heading. Each column is as wide as its widest cell, if the page permits it.
pub(crate) struct Table<const N: usize> {
    align: [Align; N],
    rows: Vec<(Tone, [String; N])>,
    limit: Option<usize>,
    colour: bool,
}

/// The column widths of a table on its page.
struct Layout<const N: usize> {
    widths: [usize; N],
    /// The width of the last cell if it has its own lines, or `None` if it fits next to the others.
    below: Option<usize>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(columns: &[(&str, Align); N]) -> Self {
        let heading = columns.map(|(name, _)| name.to_owned());
        let rows = vec![(Tone::Heading, heading)];
        Self { align: columns.map(|(_, align)| align), rows, limit: None, colour: false }
    }

    /// Limits the line length to this many columns. Long names in the first column lose their middle. Texts
    /// in the last column continue on the next line, or move below the row. Numbers are never cut, even if
    /// the line becomes too long.
    pub(crate) fn within(mut self, columns: Option<usize>) -> Self {
        self.limit = columns;
        self
    }

    /// Sets if rows have colours.
    pub(crate) fn in_colour(mut self, colour: bool) -> Self {
        self.colour = colour;
        self
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.row_in(Tone::Plain, cells);
    }

    pub(crate) fn row_in(&mut self, tone: Tone, cells: [String; N]) {
        // Cells can contain text of a session, so they are made printable here.
        self.rows.push((tone, cells.map(|cell| report::printable(&cell))));
    }

    fn layout(&self) -> Layout<N> {
        let mut widths = [0; N];
        for (_, row) in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let all = widths.iter().sum::<usize>() + GAP * N.saturating_sub(1);
        let (Some(limit), [first, .., last]) = (self.limit.filter(|limit| *limit < all), &mut widths[..])
        else {
            return Layout { widths, below: None };
        };
        let between = all - *first - *last;
        let name = *first;
        // First the name column shrinks to a third of the page, and the text gets the rest.
        *first = name.min((limit / 3).max(LEAST));
        let room = limit.saturating_sub(between + *first);
        let is_text = self.align.last() == Some(&Align::Left);
        if is_text && room >= LEAST {
            *last = room;
            return Layout { widths, below: None };
        }
        // The text moves below the row, so the name can use its columns.
        let beside = if is_text { between - GAP } else { between + *last };
        *first = name.min(limit.saturating_sub(beside).max(LEAST));
        Layout { widths, below: is_text.then(|| limit.saturating_sub(INDENT)) }
    }

    /// Returns the lines of a row: the cells, and the rest of a long last cell.
    fn lines(&self, name: &str, row: &[String; N], Layout { widths, below }: &Layout<N>) -> Vec<String> {
        let mut line = String::new();
        let cells = std::iter::once(name).chain(row.iter().skip(1).map(String::as_str));
        for ((cell, width), align) in cells.zip(widths).zip(self.align).take(N.saturating_sub(1)) {
            let cell = report::cut(cell, *width);
            let fill = " ".repeat(width - cell.width());
            line += &if align == Align::Left { cell + &fill } else { fill + &cell };
            line += &" ".repeat(GAP);
        }
        let (Some(last), Some(width)) = (row.last(), widths.last()) else { return vec![line] };
        if self.align.last() == Some(&Align::Right) {
            return vec![format!("{line}{}{last}", " ".repeat(width - last.width()))];
        }
        if let Some(columns) = below {
            let texts = report::wrapped(last, *columns);
            let texts = texts.iter().filter(|text| !text.is_empty());
            return std::iter::once(line)
                .chain(texts.map(|text| format!("{}{text}", " ".repeat(INDENT))))
                .collect();
        }
        let indent = " ".repeat(line.width());
        let texts = report::wrapped(last, *width);
        let beside = |(number, text): (usize, &String)| {
            if number == 0 { format!("{line}{text}") } else { format!("{indent}{text}") }
        };
        texts.iter().enumerate().map(beside).collect()
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.layout();
        let names =
            self.rows.iter().enumerate().map(|(at, (_, row))| (at, row.first().map_or("", String::as_str)));
        let names = report::cut_ids(names, layout.widths.first().copied().unwrap_or_default());
        for ((tone, row), name) in self.rows.iter().zip(names) {
            for line in self.lines(&name, row, &layout) {
                writeln!(f, "{}", tone.paint(line.trim_end(), self.colour))?;
            }
        }
        Ok(())
    }
}
