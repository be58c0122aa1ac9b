//! A prompt as a grid of cells with a legend.

use super::{columns::fitted, grouped, page::Page, palette, words};
use context_window::ContextPlan;
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// A plan as a grid of cells. Print it with `{}`.
///
/// The grid represents the prompt budget, and also the reply reserve if the budget is derived from the
/// context length. It has 10 by 10 cells, or 20 by 10 for a context window of 1,000,000 tokens or more. Below
/// 80 columns it has 5 by 10 cells.
#[derive(Debug, Clone, Copy)]
pub struct Grid<'a> {
    plan: &'a ContextPlan,
    page: Page,
}

/// Returns the number of cells per row for a context length in tokens: 20 from 1,000,000 tokens on, otherwise
/// 10.
#[must_use]
pub fn columns(context_len: u64) -> usize {
    if context_len >= 1_000_000 { 20 } else { 10 }
}

/// The number of rows of the grid.
const ROWS: usize = 10;

impl<'a> Grid<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, page: Page::default() }
    }

    pub(super) fn on(self, page: Page) -> Self {
        Self { page, ..self }
    }

    /// Sets the width in columns (default: 80). Widths below 60 become 60.
    #[must_use]
    pub fn with_width(mut self, columns: usize) -> Self {
        self.page = self.page.width(columns);
        self
    }

    /// Sets if ANSI colours are used (default: no).
    #[must_use]
    pub fn with_colour(mut self, colour: bool) -> Self {
        self.page = self.page.colour(colour);
        self
    }

    /// Returns the number of cells per row at the width of this page.
    fn columns(&self) -> usize {
        match self.page.columns() {
            0..80 => 5,
            _ => columns(self.plan.limits.model_context_len),
        }
    }
}

impl fmt::Display for Grid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let composition = self.plan.composition(0).by_group();
        let columns = self.columns();
        let divided = composition.cells(columns * ROWS);
        let mut cells: Vec<(char, Option<u8>)> = Vec::with_capacity(columns * ROWS);
        for ((kind, _), count) in composition.kinds.iter().zip(&divided.kinds) {
            cells.extend(std::iter::repeat_n((palette::sign(kind), Some(palette::colour(kind))), *count));
        }
        cells.extend(std::iter::repeat_n((palette::FREE, None), divided.free));
        cells.extend(std::iter::repeat_n((palette::REPLY, None), divided.reply));
        let kinds = composition.kinds.iter();
        let kinds = kinds.map(|(kind, tokens)| {
            (palette::sign(kind), words::capital(&kind.text()), *tokens, Some(palette::colour(kind)))
        });
        let rest = [
            (palette::FREE, "Free".to_owned(), composition.free, None),
            (palette::REPLY, "Reply reserve".to_owned(), composition.reply, None),
        ];
        let legend: Vec<_> = kinds.chain(rest).filter(|(.., tokens, _)| *tokens > 0).collect();
        let parts: Vec<u64> = composition.kinds.iter().map(|(_, tokens)| *tokens).collect();
        let mut percents = words::percentages(&parts, composition.total);
        // Free tokens and the reply reserve are not part of the prompt, so they get no percentage.
        let names = legend.iter().map(|(_, name, ..)| name.width()).max().unwrap_or_default();
        let names = names.min(self.page.columns() / 3);
        let numbers = legend.iter().map(|(_, _, tokens, _)| grouped(*tokens).len()).max().unwrap_or_default();
        let blank = " ".repeat(2 * columns);
        // One percentage per output line, empty if the legend is shorter than the grid.
        percents.resize(ROWS.max(legend.len()), String::new());
        for (row, percent) in percents.iter().enumerate() {
            let line = cells.chunks(columns).nth(row).map(|row| {
                row.iter()
                    .map(|(sign, colour)| format!(" {}", self.page.coloured(*colour, &sign.to_string())))
            });
            let line = line.map_or_else(|| blank.clone(), Iterator::collect);
            let entry = legend.get(row).map(|(sign, name, tokens, colour)| {
                let (sign, name) = (self.page.coloured(*colour, &sign.to_string()), fitted(name, names));
                format!("   {sign} {name}  {:>numbers$}  {percent:>5}", grouped(*tokens))
            });
            writeln!(f, "{}", format!("{line}{}", entry.unwrap_or_default()).trim_end())?;
        }
        Ok(())
    }
}
