//! The report a person reads. Everything that comes from a session is cleaned before it reaches a terminal.

use super::{grouped, page::Page, printable};
use crate::{
    item::{Priority, Section, Source, Ttl},
    message::{Framing, Role},
    plan::{BudgetSource, ContextPlan, ExcludedItem, Notice, PlannedItem, SectionUse},
    prefix::{Prefix, PrefixCause},
    reason::{ExcludedReason, HeldBy, IncludedReason, PolicyRule},
    tokens::{Certainty, TokenCount},
    usage::{Level, Margin},
};
use std::fmt::{self, Write as _};

/// A plan as text; print it with `{}`.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    plan: &'a ContextPlan,
    page: Page,
}

/// Columns of a bar, where there is room for it.
const SHORTEST_BAR: usize = 6;
const LONGEST_BAR: usize = 40;

/// Ids of a notice that are shown.
const IDS_SHOWN: usize = 4;

/// Items of a minimum that are shown.
const LARGEST_SHOWN: usize = 5;

impl<'a> Text<'a> {
    pub(super) fn new(plan: &'a ContextPlan) -> Self {
        Self { plan, page: Page::default() }
    }

    /// Sets the width in columns (default: 80); less than 60 reads as 60.
    #[must_use]
    pub fn width(mut self, columns: usize) -> Self {
        self.page = self.page.width(columns);
        self
    }

    /// Whether ANSI colours are used (default: no). Colour says nothing that the words do not.
    #[must_use]
    pub fn colour(mut self, colour: bool) -> Self {
        self.page = self.page.colour(colour);
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
        let title = format!(
            "ctx tokens: {} / {} ({} {})",
            number(plan.total),
            grouped(plan.prompt_budget),
            short(&plan.model),
            grouped(plan.limits.context_len),
        );
        let percent = u128::from(plan.total.n) * 100 / u128::from(plan.prompt_budget.max(1));
        self.page.title(f, &format!("{title}, {percent} %"))?;
        let margin = plan.margin.map(|margin| format!(", {}", counted_there(margin))).unwrap_or_default();
        let form = match plan.framing {
            Framing::OpenAiChat => String::new(),
            other => format!(" · form {}", other.name()),
        };
        let limits = format!(
            "{} · tokenizer {} ({}{margin}) · config {}{form}",
            plan.limits_source.name(),
            printable(&plan.tokenizer),
            plan.total.certainty.name(),
            plan.config,
        );
        self.field(f, "budget", &self.formula())?;
        self.field(f, "limits", &limits)?;
        let start = plan.window_start.as_ref().map(|id| format!("from {} on", short(id.as_str())));
        start.map_or(Ok(()), |start| self.field(f, "window", &start))?;
        if plan.usage.level != Level::Normal {
            self.field(f, "usage", &self.usage())?;
        }
        plan.repeated().map_or(Ok(()), |prefix| self.field(f, "repeats", &repeats(&prefix)))
    }

    fn field(&self, f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
        self.page.hanging(f, &format!("{name:<8}"), text)
    }

    /// What the conversation would take if all of it were sent, where that is much (rule U3).
    fn usage(&self) -> String {
        let usage = &self.plan.usage;
        let level = match usage.level {
            Level::Normal => return String::new(),
            Level::Approaching => self.page.yellow("approaching the limit"),
            Level::AtLimit => self.page.red("at the limit"),
        };
        let (pressure, limit) = (number(usage.pressure), grouped(usage.limit));
        format!("{level}: all of the conversation takes {pressure} of {limit}, {} %", grouped(usage.percent))
    }

    /// Where the budget comes from.
    fn formula(&self) -> String {
        let limits = self.plan.limits;
        match self.plan.budget_source {
            BudgetSource::Request => "set by the request".to_owned(),
            BudgetSource::MaxInput => format!(
                "max_input {} - safety_buffer {}",
                grouped(limits.max_input.unwrap_or_default()),
                grouped(limits.safety_buffer),
            ),
            BudgetSource::ContextLen => {
                let quarter =
                    if limits.max_completion == limits.context_len / 4 { " (a quarter)" } else { "" };
                format!(
                    "context_len {} - max_completion {}{quarter} - safety_buffer {}",
                    grouped(limits.context_len),
                    grouped(limits.max_completion),
                    grouped(limits.safety_buffer),
                )
            }
        }
    }

    fn sections(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let overhead: i64 = plan.overhead.iter().map(|line| line.tokens).sum();
        let heading = ["share", "budget", "used", "in", "out"].map(str::to_owned);
        let rows = plan.sections.map(|section| {
            [
                tenths(section.share),
                grouped(section.budget),
                grouped(section.used),
                grouped(section.included),
                grouped(section.excluded),
            ]
        });
        let mut widths = heading.clone().map(|cell| cell.len());
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.len());
            }
        }
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
        let legend = if room < legend.chars().count() { "" } else { legend };
        writeln!(f, "\n{}", self.page.dim(&format!("{:<13}{}{legend}", "section", line(&heading))))?;
        // All bars are drawn to one scale, so that they can be compared.
        let whole = plan.sections.iter().map(|section| section.budget.max(section.used)).max();
        let scale = (room, whole.unwrap_or_default().max(1));
        for (section, cells) in plan.sections.iter().zip(&rows) {
            let bar =
                if room < SHORTEST_BAR { String::new() } else { format!("  {}", self.bar(section, scale)) };
            let text = format!("{:<13}{}{bar}", section.section.name(), line(cells));
            writeln!(f, "{}", text.trim_end())?;
        }
        let gap = share + budget + 6 + used;
        let lines: Vec<String> =
            plan.overhead.iter().map(|line| format!("{} {}", line.what, signed(line.tokens))).collect();
        let label = format!("{:<13}{:>gap$}  ", "overhead", signed(overhead));
        self.page.hanging(f, &label, &lines.join(", "))?;
        writeln!(f, "{:<13}{left:>gap$}", "left over")
    }

    /// What a section uses, and behind it what it leaves of its budget; yellow where other sections left it more.
    fn bar(&self, section: &SectionUse, (room, whole): (usize, u64)) -> String {
        let part = |tokens: u64| {
            let part = u128::from(tokens) * room as u128 / u128::from(whole);
            usize::try_from(part).unwrap_or(room).min(room)
        };
        let filled = part(section.used).max(usize::from(section.used > 0));
        let empty = part(section.budget).saturating_sub(filled);
        let (full, empty) = ("█".repeat(filled), "░".repeat(empty));
        let over = section.used > section.budget;
        let full = if over { self.page.yellow(&full) } else { self.page.green(&full) };
        full + &empty
    }

    fn included(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.plan.included;
        let title = format!("in the prompt, in this order: {}", items.len());
        let rows = items.iter().map(|item| [number(item.tokens), short(item.id.as_str()), self.why_in(item)]);
        self.page.rows(f, &title, rows.collect())
    }

    fn excluded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = &self.plan.excluded;
        let count: u64 = items.iter().map(|item| item.count).sum();
        let title = format!("left out: {}", grouped(count));
        let rows = items.iter().map(|item| [bound(item), run(item), why_out(item)]);
        self.page.rows(f, &title, rows.collect())
    }

    /// Why an item is in, in words.
    fn why_in(&self, item: &PlannedItem) -> String {
        let mut why = match item.reason {
            IncludedReason::Required => format!("always sent: {}", self.what_is_required(item)),
            IncludedReason::Pinned => match item.source {
                Source::Pinned => "pinned note".into(),
                _ => format!("pinned: {}", speaker(item)),
            },
            IncludedReason::Recent => format!("recent: {}", speaker(item)),
            IncludedReason::Relevant => "relevant document".into(),
            IncludedReason::Summary => "summary of what is archived".into(),
        };
        if item.priority != Priority::Normal {
            let _ = write!(why, ", priority {}", item.priority.name());
        }
        match item.ttl {
            Some(Ttl::Limited(turns)) if turns.get() == 1 => why += ", 1 turn left",
            Some(Ttl::Limited(turns)) => drop(write!(why, ", {turns} turns left")),
            Some(Ttl::NoneRemaining) => why += ", no turn left",
            Some(Ttl::Unlimited) => why += ", never dropped",
            None => {}
        }
        why
    }

    fn what_is_required(&self, item: &PlannedItem) -> &'static str {
        match (item.source, item.role) {
            (Source::System, _) if item.section == Section::SystemPinned && item.id.as_str() == "focus" => {
                "focus hint"
            }
            (Source::System, _) => "system text",
            (Source::State, _) => "state",
            (_, Some(Role::User)) if self.plan.live.as_ref() == Some(&item.id) => "the question",
            (Source::Synthetic, Some(Role::Tool)) => "a made-up result",
            (Source::Synthetic, _) => "the target demands it",
            (Source::Tool, _) => "a result of the running call",
            (_, Some(Role::Assistant)) if self.plan.live.is_some() => "the running call",
            _ => "the newest message",
        }
    }

    fn notices(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.plan.notices.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.page.bold(&format!("notices: {}", self.plan.notices.len())))?;
        for notice in &self.plan.notices {
            self.page.hanging(f, &format!("  {:<3} ", notice.rule), &sentence(notice))?;
        }
        Ok(())
    }

    fn overflow(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(overflow) = &self.plan.overflow else {
            return Ok(());
        };
        let title = format!("over budget by {} tokens", grouped(overflow.tokens));
        writeln!(f, "\n{}", self.page.red(&title))?;
        let items = self.plan.included.iter();
        let items =
            items.map(|item| (item.tokens.n, format!("{} {}", short(item.id.as_str()), number(item.tokens))));
        let lines = self.plan.overhead.iter().filter_map(|line| {
            Some((u64::try_from(line.tokens).ok()?, format!("{} {}", line.what, signed(line.tokens))))
        });
        let mut parts: Vec<(u64, String)> = items.chain(lines).collect();
        parts.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
        let largest: Vec<String> = parts.iter().take(LARGEST_SHOWN).map(|(_, text)| text.clone()).collect();
        let more = parts.len().saturating_sub(LARGEST_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        self.page.hanging(f, "  what cannot be left out: ", &(largest.join(", ") + &more))?;
        let conflict: Vec<String> = overflow.conflict.iter().map(|id| short(id.as_str())).collect();
        let alone = match conflict.len() {
            0 => "what is sent beside the items, by itself".to_owned(),
            1 => format!("{} alone", conflict[0]),
            _ if conflict.len() > LARGEST_SHOWN => format!("the {} largest of them together", conflict.len()),
            _ => format!("{} together", conflict.join(", ")),
        };
        self.page.hanging(f, "  too much already: ", &alone)?;
        writeln!(f, "  any one of these makes it fit:")?;
        for remedy in &overflow.remedies {
            self.page.hanging(f, "  - ", &super::remedy(remedy, &self.plan.limits))?;
        }
        Ok(())
    }
}

/// How the provider's count follows from ours.
fn counted_there(margin: Margin) -> String {
    let offset = match margin.offset {
        0 => String::new(),
        offset if offset > 0 => format!(" + {}", signed(offset)),
        offset => format!(" - {}", grouped(offset.unsigned_abs())),
    };
    let from = match margin.reports {
        0 => "as set".to_owned(),
        1 => "from 1 report".to_owned(),
        reports => format!("from {reports} reports"),
    };
    format!("x {}.{:03}{offset} {from}", margin.per_mille / 1000, margin.per_mille % 1000)
}

fn speaker(item: &PlannedItem) -> &'static str {
    match (item.source, item.role) {
        (Source::Tool, _) => "tool result",
        (Source::Synthetic, Some(Role::Tool)) => "made-up result",
        (Source::Synthetic, _) => "made up for the target",
        (_, Some(role)) => role.name(),
        (source, None) => source.name(),
    }
}

fn why_out(item: &ExcludedItem) -> String {
    if matches!(&item.reason, ExcludedReason::Duplicate { of } if *of == item.id) {
        return "duplicate: an earlier document has this id".into();
    }
    if matches!(item.reason, ExcludedReason::Archived { .. }) {
        return item.reason.to_string();
    }
    format!("{}: {}", item.reason.name(), printable(&item.reason.to_string()))
}

fn sentence(notice: &Notice) -> String {
    let mut ids: Vec<String> = notice.ids.iter().take(IDS_SHOWN).map(|id| short(id.as_str())).collect();
    let more = notice.ids.len().saturating_sub(IDS_SHOWN);
    if more > 0 {
        ids.push(format!("{more} more"));
    }
    let at = if ids.is_empty() { String::new() } else { format!("{}: ", ids.join(", ")) };
    at + &short(&notice.text)
}

/// An excluded row's id, or those of the run it stands for.
fn run(item: &ExcludedItem) -> String {
    match &item.last_id {
        Some(last) => {
            format!("{}..{} ({})", short(item.id.as_str()), short(last.as_str()), grouped(item.count))
        }
        None => short(item.id.as_str()),
    }
}

pub(super) fn number(tokens: TokenCount) -> String {
    let mark = match tokens.certainty {
        Certainty::Exact => "",
        Certainty::AtLeast => ">=",
        Certainty::UpperBound => "<=",
        Certainty::Estimate => "~",
    };
    format!("{mark}{}", grouped(tokens.n))
}

/// An excluded row's number: a bound even where the counter only estimates.
fn bound(item: &ExcludedItem) -> String {
    let weighed = match &item.reason {
        ExcludedReason::Budget { room, held_by: HeldBy::Size | HeldBy::Cap } => {
            item.tokens.n == room.saturating_add(1)
        }
        ExcludedReason::Policy(PolicyRule::MaxItemTokens { .. } | PolicyRule::MaxSourceTokens { .. }) => true,
        _ => false,
    };
    match item.tokens.certainty {
        Certainty::Estimate if weighed => format!(">={}", number(item.tokens)),
        Certainty::Estimate if item.tokens.n > 0 => format!("<={}", number(item.tokens)),
        _ => number(item.tokens),
    }
}

fn signed(tokens: i64) -> String {
    let sign = if tokens < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(tokens.unsigned_abs()))
}

/// A text of a session, cleaned, and cut where nobody reads on: an id may be a megabyte long.
pub(super) fn short(text: &str) -> String {
    const READ: usize = 300;
    match text.char_indices().nth(READ) {
        Some((at, _)) => printable(&text[..at]) + "…",
        None => printable(text),
    }
}

/// Per mille as per cent.
fn tenths(share: u16) -> String {
    match share % 10 {
        0 => format!("{} %", share / 10),
        rest => format!("{}.{rest} %", share / 10),
    }
}

/// How much of the last prompt is repeated, and where and why the two part.
fn repeats(prefix: &Prefix) -> String {
    let (tokens, of) = (grouped(prefix.tokens), grouped(prefix.of));
    let all = format!("{tokens} of the last prompt's {of} tokens");
    let (Some(was), Some(cause)) = (&prefix.instead_of, prefix.cause) else { return all };
    let why = match (&prefix.differs_at, cause) {
        (Some(now), PrefixCause::Inserted) => format!("{} stands before it now", short(now.as_str())),
        _ => cause.text().to_owned(),
    };
    format!("{all}, up to {}: {why}", short(was.as_str()))
}
