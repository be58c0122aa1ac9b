//! The text report for people. All text from a session is made printable before it reaches a terminal.

use super::{
    columns::{cut_ids, fitted},
    grid::Grid,
    grouped,
    page::Page,
    printable,
    row::{Rows, number, repeats, section as section_name, short},
    words::{self, signed, tenths},
};
use context_window::{
    ContextPlan, Section,
    analysis::Advice,
    plan::{Decision, ReasoningReport, SectionUse, first_line},
    usage::Level,
};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// A plan as text. Print it with `{}`.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    plan: &'a ContextPlan,
    page: Page,
    /// The length of the list of largest items.
    top: usize,
    /// The maximum number of rows shown per list.
    rows: usize,
    /// True if a grid replaces the tables and lists.
    grid: bool,
    advice: Option<Advice>,
}

/// The maximum number of kinds with a line of their own. The others share one line.
const MAX_KINDS: usize = 10;

/// The minimum and maximum width of a bar, in columns.
const SHORTEST_BAR: usize = 6;
const LONGEST_BAR: usize = 40;

/// The width in columns from which a row shows the beginning of its item's text.
const WITH_TEXTS: usize = 120;

impl<'a> Text<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, page: Page::default(), top: 5, rows: usize::MAX, grid: false, advice: None }
    }

    /// Sets the width in columns (default: 80). Widths below 60 become 60.
    #[must_use]
    pub fn with_width(mut self, columns: usize) -> Self {
        self.page = self.page.width(columns);
        self
    }

    /// Sets the length of the list of largest items (default: 5).
    #[must_use]
    pub fn with_top(mut self, items: usize) -> Self {
        self.top = items;
        self
    }

    /// Sets the maximum number of rows per list (default: no limit). A longer list shows its beginning and
    /// its end.
    #[must_use]
    pub fn with_rows(mut self, rows: usize) -> Self {
        self.rows = rows;
        self
    }

    /// Sets if a grid of cells replaces the tables and the lists of items (default: no).
    #[must_use]
    pub fn with_grid(mut self, grid: bool) -> Self {
        self.grid = grid;
        self
    }

    /// Adds advice for a full prompt, as [`Explainer::advice`](context_window::analysis::Explainer::advice)
    /// returns it for this plan's request (default: none).
    #[must_use]
    pub fn with_advice(mut self, advice: Option<Advice>) -> Self {
        self.advice = advice;
        self
    }

    /// Sets if ANSI colours are used (default: no). The words repeat the meaning of each colour.
    #[must_use]
    pub fn with_colour(mut self, colour: bool) -> Self {
        self.page = self.page.colour(colour);
        self
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.overflow(f)?;
        if self.grid {
            write!(f, "\n{}", Grid::new(self.plan).on(self.page))?;
            // The grid has no token column to align with.
            return self.largest(f, 0);
        }
        self.fills(f)?;
        self.sections(f)?;
        self.included(f)?;
        self.excluded(f)?;
        self.notices(f)
    }
}

impl Text<'_> {
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let (total, budget) = (number(plan.estimated_tokens_total), grouped(plan.prompt_budget));
        let title = format!("ctx tokens: {total} / {budget} ({})", short(&plan.model));
        let percent = words::percent(plan.estimated_tokens_total.tokens, plan.prompt_budget);
        self.page.title(f, &format!("{title}, {percent}"))?;
        self.field(f, "budget", &words::budget(plan))?;
        self.field(f, "limits", &words::limits(plan))?;
        words::history(plan).map_or(Ok(()), |start| self.field(f, "history", &start))?;
        self.filled(f)?;
        if plan.usage.level != Level::Normal {
            self.field(f, "usage", &self.usage())?;
        }
        plan.repeated().map_or(Ok(()), |prefix| self.field(f, "cached", &repeats(plan, &prefix)))?;
        if let Some(upkeep) = plan.upkeep.filter(|upkeep| upkeep.spent > 0) {
            self.field(f, "retained", &words::retention_cost(upkeep))?;
        }
        let ReasoningReport { sent, lost, .. } = &plan.thoughts;
        if *sent == 0 && lost.is_empty() {
            return Ok(());
        }
        self.field(f, "reasoning", &format!("{} sent, {} lost", grouped(*sent), grouped(lost.len() as u64)))
    }

    /// Writes the kind that fills most of the prompt, and the advice, if any.
    fn filled(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.advice.map(|advice| words::advised(&advice));
        match (words::advice(self.plan), advice) {
            (Some(fills), Some(advice)) => self.field(f, "contents", &format!("{fills}; {advice}")),
            (Some(fills), None) => self.field(f, "contents", &fills),
            (None, _) => Ok(()),
        }
    }

    /// Writes the composition of the prompt: its tokens by kind, and its largest items.
    fn fills(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let composition = self.plan.composition(self.top);
        let [shown, folded] = words::kinds(&composition, MAX_KINDS);
        if shown.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.page.bold("contents of the prompt"))?;
        let names = shown.iter().chain(&folded).map(|(name, _)| name.width()).max().unwrap_or_default();
        let names = names.min(self.page.columns() / 2);
        let numbers = grouped(composition.total).len().max(8);
        let room = self.page.columns().saturating_sub(numbers + names + 11).min(LONGEST_BAR);
        // Kinds are sorted by tokens, so the first one has the longest bar. Every kind has tokens, so `most`
        // is not 0.
        let most = composition.kinds.first().map_or(1, |(_, tokens)| *tokens);
        let parts: Vec<u64> = shown.iter().chain(&folded).map(|(_, tokens)| *tokens).collect();
        let percents = words::percentages(&parts, composition.total);
        let numbered =
            shown.iter().chain(&folded).zip(1..).map(|((name, _), number)| (number, name.as_str()));
        let cut = cut_ids(numbered, names);
        let lines = shown.iter().chain(&folded).zip(percents).zip(cut);
        for (number, (((_, tokens), percent), name)) in lines.enumerate() {
            // The product can exceed `u64`.
            let bar = usize::try_from(u128::from(*tokens) * room as u128 / u128::from(most)).unwrap_or(room);
            let bar = if number < shown.len() { "█".repeat(bar.min(room)) } else { String::new() };
            let tokens = grouped(*tokens);
            let line = format!("{tokens:>numbers$}  {percent:>5}  {}  {bar}", fitted(&name, names));
            writeln!(f, "{}", line.trim_end())?;
        }
        self.largest(f, numbers)
    }

    /// Writes the largest items. `numbers` is the minimum width of the token column.
    fn largest(&self, f: &mut fmt::Formatter<'_>, numbers: usize) -> fmt::Result {
        let composition = self.plan.composition(self.top);
        if composition.largest.is_empty() {
            return Ok(());
        }
        let widest =
            composition.largest.iter().map(|item| number(item.tokens).len()).max().unwrap_or_default();
        let numbers = numbers.max(widest);
        writeln!(f, "\n{}", self.page.bold("largest items"))?;
        let named: Vec<String> = composition.largest.iter().map(|item| short(item.id.as_str())).collect();
        let ids = named.iter().map(|id| id.width()).max().unwrap_or_default();
        let ids = ids.min(self.page.columns() / 3);
        let cut = cut_ids((1..).zip(named.iter().map(String::as_str)), ids);
        for (item, id) in composition.largest.iter().zip(cut) {
            let percent = words::share(item.tokens.tokens, composition.total);
            let tokens = number(item.tokens);
            let label = format!("{tokens:>numbers$}  {percent:>5}  {}  ", fitted(&id, ids));
            let room = self.page.columns().saturating_sub(label.width());
            let text = super::cut(&words::large_item(item), room);
            writeln!(f, "{label}{}", self.page.dim(&text))?;
        }
        Ok(())
    }

    fn field(&self, f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
        self.page.hanging(f, &format!("{name:<10}"), text)
    }

    /// Describes the tokens of the full conversation if they are near the limit (usage levels, rule U3).
    fn usage(&self) -> String {
        let usage = &self.plan.usage;
        let level = match usage.level {
            Level::Normal => return String::new(),
            Level::Approaching => self.page.yellow("approaching its limit"),
            Level::AtLimit if usage.percent > 100 => self.at_limit("over its limit"),
            Level::AtLimit => self.at_limit("at its limit"),
        };
        let (pressure, limit) = (number(usage.conversation_tokens), grouped(usage.limit));
        format!("full conversation {pressure} of {limit}, {}: {level}", crate::usage_percent(usage))
    }

    /// Paints a text red if the prompt itself exceeds the budget, otherwise yellow.
    fn at_limit(&self, text: &str) -> String {
        if self.plan.overflow.is_some() { self.page.red(text) } else { self.page.yellow(text) }
    }

    fn sections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let overhead: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
        let heading = ["share", "budget", "used", "in", "out"].map(str::to_owned);
        let rows = Section::ALL.map(|section| {
            let section = plan.section(section);
            [
                tenths(section.share),
                grouped(section.budget),
                grouped(section.used),
                grouped(section.included),
                grouped(section.excluded),
            ]
        });
        // Every column is as wide as its widest cell, the heading included.
        let mut widths = heading.clone().map(|cell| cell.len());
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.len());
            }
        }
        // The `used` column also contains the overhead and the free tokens.
        let [share, budget, used, ..] = widths;
        let left = grouped(plan.left_over());
        let used = used.max(left.len()).max(signed(overhead).len());
        let widths = [share, budget, used, widths[3], widths[4]];
        let line = |cells: &[String; 5]| {
            let cells = cells.iter().zip(widths).map(|(cell, width)| format!("  {cell:>width$}"));
            cells.collect::<Vec<_>>().concat()
        };
        let taken = 13 + widths.iter().map(|width| width + 2).sum::<usize>() + 2;
        let room = self.page.columns().saturating_sub(taken).min(LONGEST_BAR);
        let legend = "  █ used ░ free";
        // A legend without room for bars would explain nothing.
        let legend = if room < legend.chars().count() { "" } else { legend };
        writeln!(f, "\n{}", self.page.dim(&format!("{:<13}{}{legend}", "section", line(&heading))))?;
        // All bars have one scale, so that their lengths can be compared.
        let whole = plan.sections.iter().map(|section| section.budget.max(section.used)).max();
        let scale = (room, whole.unwrap_or_default().max(1));
        for (section, cells) in plan.sections.iter().zip(&rows) {
            let bar =
                if room < SHORTEST_BAR { String::new() } else { format!("  {}", self.bar(section, scale)) };
            let text = format!("{:<13}{}{bar}", section_name(section.section), line(cells));
            writeln!(f, "{}", text.trim_end())?;
        }
        for section in plan.sections.iter().filter(|section| section.used > section.budget) {
            let more = grouped(section.used - section.budget);
            let name = section_name(section.section);
            let text = format!("{name}: {more} tokens above its budget, unused by others");
            writeln!(f, "{}", self.page.yellow(&text))?;
        }
        let gap = share + budget + 6 + used;
        let lines: Vec<String> = plan
            .overhead
            .iter()
            .map(|line| format!("{} {}", words::overhead(line.what), signed(line.tokens)))
            .collect();
        let label = format!("{:<13}{:>gap$}  ", "Overhead", signed(overhead));
        self.page.listed(f, &label, &lines)?;
        writeln!(f, "{:<13}{left:>gap$}", "Free")
    }

    /// Draws a section's used tokens and the unused rest of its budget. The bar is yellow if the section uses
    /// more than its budget.
    fn bar(&self, section: &SectionUse, (room, whole): (usize, u64)) -> String {
        let part = |tokens: u64| {
            // The product can exceed `u64`.
            let part = u128::from(tokens) * room as u128 / u128::from(whole);
            usize::try_from(part).unwrap_or(room).min(room)
        };
        // A section with few tokens still shows one cell.
        let filled = part(section.used).max(usize::from(section.used > 0));
        let empty = part(section.budget).saturating_sub(filled);
        let (full, empty) = ("█".repeat(filled), "░".repeat(empty));
        let over = section.used > section.budget;
        let full = if over { self.page.yellow(&full) } else { self.page.green(&full) };
        full + &empty
    }

    fn included(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.plan.included;
        let title = format!("in the prompt, in order: {}", items.len());
        let wide = self.page.columns() >= WITH_TEXTS;
        let words = Rows::new(self.plan);
        let rows: Vec<_> = items.iter().map(|item| words.row(Decision::Included(item))).collect();
        // A single long reason does not take the columns of the texts.
        let reasons = rows.iter().map(|row| row.why.chars().count()).filter(|reason| *reason <= 40).max();
        let reasons = reasons.unwrap_or_default();
        let rows = rows.into_iter().zip(items).map(|(row, item)| {
            // A wide page shows the text of the item after the reason.
            let text = if wide { first_line(item) } else { String::new() };
            let why = if text.is_empty() {
                row.why
            } else {
                format!("{:<reasons$}  {}", row.why, printable(&text))
            };
            [row.tokens, row.id, why]
        });
        self.page.rows(f, &title, self.rows, rows.collect())
    }

    fn excluded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.plan.excluded;
        let count: u64 = items.iter().map(|item| item.count).sum();
        let title = format!("not in the prompt: {}", grouped(count));
        let words = Rows::new(self.plan);
        let rows = items.iter().map(|item| words.row(Decision::Excluded(item)));
        self.page.rows(f, &title, self.rows, rows.map(|row| [row.tokens, row.id, row.why]).collect())
    }

    fn notices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan.notices.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.page.bold(&format!("notices: {}", self.plan.notices.len())))?;
        for notice in &self.plan.notices {
            self.page.hanging(f, &format!("  {:<3} ", notice.rule()), &words::sentence(notice))?;
        }
        Ok(())
    }

    fn overflow(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(overflow) = &self.plan.overflow else {
            return Ok(());
        };
        let title = format!("over budget by {} tokens", grouped(overflow.tokens));
        writeln!(f, "\n{}", self.page.red(&title))?;
        self.page.hanging(f, "  required items: ", &words::largest(self.plan))?;
        self.page.hanging(f, "  these alone exceed the budget: ", &words::conflict(overflow))?;
        writeln!(f, "  any one of these makes it fit:")?;
        for remedy in &overflow.remedies {
            self.page.hanging(f, "  - ", &super::remedy(remedy, &self.plan.limits))?;
        }
        Ok(())
    }
}
