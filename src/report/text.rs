//! The report a person reads. Everything that comes from a session is cleaned before it reaches a terminal.

use super::printable;
use crate::{
    item::{ItemId, Source},
    plan::{BudgetSource, ContextPlan, ExcludedItem, PlannedItem, Remedy, SectionUse},
    tokens::{Certainty, TokenCount},
};
use std::fmt;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A plan as text; print it with `{}`.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    plan: &'a ContextPlan,
    width: usize,
}

/// Below this the columns have no room to say anything.
const NARROWEST: usize = 60;
const TOKENS: usize = 12;
const BAR: usize = 20;

impl<'a> Text<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, width: 80 }
    }

    /// Sets the width in columns; less than 60 reads as 60.
    #[must_use]
    pub fn width(mut self, columns: usize) -> Self {
        self.width = columns.max(NARROWEST);
        self
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.sections(f)?;
        self.included(f)?;
        self.excluded(f)?;
        self.notices(f)?;
        self.overflow(f)
    }
}

impl Text<'_> {
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        writeln!(
            f,
            "ctx tokens: {} / {} ({} {})",
            grouped(plan.total.n),
            grouped(plan.prompt_budget),
            printable(&plan.model),
            grouped(plan.limits.context_len),
        )?;
        let from = match plan.budget_source {
            BudgetSource::Request => "the budget was set by the request".to_owned(),
            BudgetSource::MaxInput => format!(
                "budget = max_input {} - safety_buffer {}",
                grouped(plan.limits.max_input.unwrap_or_default()),
                grouped(plan.limits.safety_buffer),
            ),
            BudgetSource::ContextLen => format!(
                "budget = context_len {} - max_completion {} - safety_buffer {}",
                grouped(plan.limits.context_len),
                grouped(plan.limits.max_completion),
                grouped(plan.limits.safety_buffer),
            ),
        };
        writeln!(f, "{from}")?;
        writeln!(
            f,
            "limits: {}, tokenizer: {} ({}), config: {}",
            plan.limits_source.name(),
            printable(&plan.tokenizer),
            plan.total.certainty.name(),
            plan.config,
        )
    }

    fn sections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        writeln!(
            f,
            "\n{:<14} {:>6} {TOKENS_HEAD:>TOKENS$} {:>TOKENS$} {:>5} {:>7}",
            "section",
            "share",
            "used",
            "in",
            "out",
            TOKENS_HEAD = "budget",
        )?;
        for section in &plan.sections {
            writeln!(
                f,
                "{:<14} {:>5}% {:>TOKENS$} {:>TOKENS$} {:>5} {:>7}  {}",
                section.section.name(),
                tenths(section.share),
                grouped(section.budget),
                grouped(section.used),
                section.included,
                grouped(section.excluded),
                self.bar(section),
            )?;
        }
        let overhead: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
        let lines: Vec<String> =
            plan.overhead.iter().map(|line| format!("{} {}", line.what, line.tokens)).collect();
        let (name, gap) = ("overhead", 6 + 1 + TOKENS);
        writeln!(f, "{name:<14} {:>gap$} {overhead:>TOKENS$}  {}", "", lines.join(", "))?;
        let left = grouped(plan.left_over());
        writeln!(f, "{:<14} {:>gap$} {left:>TOKENS$}", "left over", "")
    }

    /// The section's use, as a part of its own budget (or of its use, where other sections left it more).
    fn bar(&self, section: &SectionUse) -> String {
        let room = self.width.saturating_sub(14 + 7 + 2 * (TOKENS + 1) + 6 + 8 + 2).min(BAR);
        let whole = u128::from(section.budget.max(section.used).max(1));
        let filled = u128::from(section.used) * room as u128 / whole;
        let filled = usize::try_from(filled).unwrap_or(room).min(room);
        format!("{}{}", "█".repeat(filled), "░".repeat(room - filled))
    }

    fn included(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.plan.included;
        writeln!(f, "\nincluded: {}", items.len())?;
        let ids = self.id_column(items.iter().map(|item| label(&item.id, None, 1)));
        for item in items {
            writeln!(
                f,
                "{:>TOKENS$}  {}  {}",
                number(item.tokens),
                fitted(&label(&item.id, None, 1), ids),
                self.rest(ids, &why_in(item)),
            )?;
        }
        Ok(())
    }

    fn excluded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.plan.excluded;
        let count: u64 = items.iter().map(|item| item.count).sum();
        writeln!(f, "\nexcluded: {}", grouped(count))?;
        let name = |item: &ExcludedItem| label(&item.id, item.last_id.as_ref(), item.count);
        let ids = self.id_column(items.iter().map(name));
        for item in items {
            let tokens = number(item.tokens);
            writeln!(
                f,
                "{tokens:>TOKENS$}  {}  {}",
                fitted(&name(item), ids),
                self.rest(ids, &why_out(item))
            )?;
        }
        Ok(())
    }

    fn notices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan.notices.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nnotices: {}", self.plan.notices.len())?;
        for notice in &self.plan.notices {
            let ids: Vec<String> = notice.ids.iter().map(|id| printable(id.as_str())).collect();
            let at = if ids.is_empty() { String::new() } else { format!("{}: ", ids.join(", ")) };
            writeln!(f, "  {:<3} {at}{}", notice.rule, printable(&notice.text))?;
        }
        Ok(())
    }

    fn overflow(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(overflow) = &self.plan.overflow else {
            return Ok(());
        };
        writeln!(f, "\nover budget by {} tokens. Any one of these makes it fit:", grouped(overflow.tokens))?;
        for remedy in &overflow.remedies {
            match remedy {
                Remedy::RaiseBudget { to } => writeln!(f, "  raise the prompt budget to {}", grouped(*to)),
                Remedy::LowerCompletion { to } => writeln!(f, "  lower max_completion to {}", grouped(*to)),
                Remedy::Unpin { id } => writeln!(f, "  unpin {}", printable(id.as_str())),
                Remedy::Shorten { id, by } => {
                    writeln!(f, "  shorten {} by {} tokens", printable(id.as_str()), grouped(*by))
                }
            }?;
        }
        Ok(())
    }

    /// The width of the column of ids: as wide as the widest, and no more than half of the line.
    fn id_column(&self, ids: impl Iterator<Item = String>) -> usize {
        let widest = ids.map(|id| id.width()).max().unwrap_or_default();
        widest.min(self.width / 2 - TOKENS)
    }

    /// A text cut to what is left of the line behind the ids.
    fn rest(&self, ids: usize, text: &str) -> String {
        let room = self.width.saturating_sub(TOKENS + 2 + ids + 2);
        fitted(text, room.min(text.width()))
    }
}

fn why_in(item: &PlannedItem) -> String {
    let ttl = item.ttl.map_or(String::new(), |ttl| format!(", ttl {ttl}"));
    let what = match (item.source, item.role) {
        (Source::Conversation, Some(role)) => role.name(),
        (Source::Pinned, _) => "note",
        (source, _) => source.name(),
    };
    format!("{}, {what}{ttl}", item.reason.name())
}

fn why_out(item: &ExcludedItem) -> String {
    format!("{}: {}", item.reason.name(), printable(&item.reason.to_string()))
}

fn label(id: &ItemId, last: Option<&ItemId>, count: u64) -> String {
    match last {
        Some(last) => {
            format!("{}..{} ({})", printable(id.as_str()), printable(last.as_str()), grouped(count))
        }
        None => printable(id.as_str()),
    }
}

fn number(tokens: TokenCount) -> String {
    let mark = match tokens.certainty {
        Certainty::Exact => "",
        Certainty::AtLeast => ">=",
        Certainty::UpperBound => "<=",
        Certainty::Estimate => "~",
    };
    format!("{mark}{}", grouped(tokens.n))
}

/// Per mille as per cent.
fn tenths(share: u16) -> String {
    format!("{}.{}", share / 10, share % 10)
}

/// A number with commas at the thousands.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
        for (text, columns) in [("日本語の長い名前", 7), ("abc", 7), ("🦀🦀🦀🦀", 5), ("e\u{301}e\u{301}", 2)]
        {
            assert_eq!(fitted(text, columns).width(), columns, "{text}");
        }
        assert_eq!(printable("a\u{1b}[31m\u{202e}b\nc"), "a?[31m?b?c");
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
