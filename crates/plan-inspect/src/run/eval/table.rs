//! Scores as text tables.

use crate::{
    args::Screen,
    table::{Align, Table, Tone},
};
use context_window_eval::{Metric, NeedleKind, Needles, ScoreRow, Scores, Share};
use context_window_report as report;
use std::fmt::Write as _;

/// Returns a value in per mille as per cent with one decimal.
pub(super) fn percent(per_mille: Option<u64>) -> String {
    per_mille.map_or_else(|| "-".into(), |value| format!("{}.{}", value / 10, value % 10))
}

/// Formats one table for each set of sessions.
pub(super) fn text(scores: &Scores, screen: &Screen) -> String {
    let mut text = String::new();
    for rows in scores.rows().chunk_by(|a, b| a.set == b.set) {
        // A chunk has at least one row.
        let first = &rows[0];
        if !text.is_empty() {
            text.push('\n');
        }
        let heading = format!(
            "{}: {} sessions, {} questions with evidence, {} without",
            report::brief(&first.set),
            report::grouped(first.sessions),
            report::grouped(first.questions),
            report::grouped(first.prompts - first.questions),
        );
        // Writing to a string cannot fail.
        let _ =
            write!(text, "{}\n{}", Tone::Heading.paint(&heading, screen.colour()), main_table(rows, screen));
        let needles = needle_table(rows, screen);
        text.extend(needles.map(|table| format!("\n{table}")));
    }
    text
}

/// Returns the table with a row for each policy and budget.
fn main_table(rows: &[ScoreRow], screen: &Screen) -> String {
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("budget", Align::Right),
        ("all evidence % (95 %)", Align::Right),
        ("evidence %", Align::Right),
        ("used %", Align::Right),
        ("over", Align::Right),
        ("kept %", Align::Right),
        ("cached %", Align::Right),
        ("input cost", Align::Right),
        ("compactions", Align::Right),
    ]);
    for row in rows {
        let figure = |metric| percent(row.per_mille(metric));
        // Baselines are the background of the comparison.
        let tone = if row.is_baseline { Tone::Faint } else { Tone::Plain };
        table.row_in(
            tone,
            [
                report::brief(&row.policy),
                report::grouped(row.budget),
                interval(row.whole()),
                figure(Metric::Evidence),
                figure(Metric::BudgetUsed),
                report::grouped(row.overflows + row.turns.overflows),
                figure(Metric::PrefixKept),
                figure(Metric::CacheHit),
                row.cost().map_or_else(|| "-".into(), report::dollars),
                report::grouped(row.turns.compactions),
            ],
        );
    }
    table.within(screen.limit()).in_colour(screen.colour()).to_string()
}

/// Returns a share with its interval, in per cent.
fn interval(share: Share) -> String {
    match share.interval() {
        None => "-".into(),
        Some((low, high)) => {
            format!("{} ({} to {})", percent(share.per_mille()), percent(Some(low)), percent(Some(high)))
        }
    }
}

/// Returns the survival of needles, in per cent by place. Returns `None` if none were planted.
fn needle_table(rows: &[ScoreRow], screen: &Screen) -> Option<String> {
    let planted: Vec<&ScoreRow> = rows.iter().filter(|row| !row.needles.is_empty()).collect();
    if planted.is_empty() {
        return None;
    }
    let heading = |compactions: u64| format!("after {compactions} (first/middle/last %)");
    let [one, two, five] = Needles::COMPACTIONS.map(heading);
    let mut table = Table::new(&[
        ("policy", Align::Left),
        ("budget", Align::Right),
        ("needle", Align::Left),
        (one.as_str(), Align::Right),
        (two.as_str(), Align::Right),
        (five.as_str(), Align::Right),
    ]);
    for (row, kind) in planted.into_iter().flat_map(|row| NeedleKind::ALL.map(|kind| (row, kind))) {
        let [one, two, five] = Needles::COMPACTIONS.map(|compactions| survival(row, kind, compactions));
        table.row([
            report::brief(&row.policy),
            report::grouped(row.budget),
            kind.name().into(),
            one,
            two,
            five,
        ]);
    }
    Some(table.within(screen.limit()).in_colour(screen.colour()).to_string())
}

/// Returns the survival of one kind of needle at each place after some compactions.
fn survival(row: &ScoreRow, kind: NeedleKind, compactions: u64) -> String {
    row.survival_by_place(kind, compactions).map(Share::rounded_percent).join("/")
}
