//! A table of texts in columns.

use context_window::report;
use std::fmt;
use unicode_width::UnicodeWidthStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under a heading; every column is as wide as its widest text.
pub(crate) struct Table<const N: usize> {
    align: [Align; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(columns: &[(&str, Align); N]) -> Self {
        Self { align: columns.map(|(_, align)| align), rows: vec![columns.map(|(name, _)| name.to_owned())] }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| report::printable(&cell)));
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        for row in &self.rows {
            let cells = row.iter().zip(widths).zip(self.align).map(|((cell, width), align)| {
                let fill = " ".repeat(width - cell.width());
                if align == Align::Left { format!("{cell}{fill}  ") } else { format!("{fill}{cell}  ") }
            });
            let line = cells.collect::<Vec<_>>().concat();
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
