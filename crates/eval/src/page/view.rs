//! The values that the page template shows for one set of sessions.

use super::chart::{Chart, Series};
use crate::{
    needle::NeedleKind,
    needles::Needles,
    scores::{Metric, ScoreRow},
    share::{Share, percent},
};
use context_window::text::plain::dollars;
use serde::Serialize;

/// The number of styles of curves in the style sheet.
const STYLES: usize = 8;

/// One set of sessions.
#[derive(Serialize)]
pub(super) struct SetView {
    name: String,
    sessions: u64,
    questions: u64,
    unanswerable: u64,
    charts: Vec<Chart>,
    legend: Vec<(usize, String)>,
    rows: Vec<RowView>,
    needles: Vec<NeedleView>,
}

/// One row of the table.
#[derive(Serialize)]
struct RowView {
    policy: String,
    is_baseline: bool,
    budget: u64,
    whole: String,
    evidence: String,
    used: String,
    over: u64,
    kept: String,
    cached: String,
    cost: String,
    compactions: u64,
}

/// The survival of one kind of needle: by number of compactions, at each place.
#[derive(Serialize)]
struct NeedleView {
    policy: String,
    budget: u64,
    kind: &'static str,
    survival: [String; 3],
}

impl SetView {
    /// Creates the view of the rows of one set.
    pub(super) fn new(rows: &[ScoreRow]) -> Self {
        // In the order of the rows, so that a policy has the same colour on each page of the same command.
        let mut policies: Vec<&str> = Vec::new();
        for row in rows {
            if !policies.contains(&row.policy.as_str()) {
                policies.push(&row.policy);
            }
        }
        let series = |x: fn(&ScoreRow) -> Option<u64>| -> Vec<Series> {
            policies
                .iter()
                .enumerate()
                .map(|(at, policy)| Series {
                    name: (*policy).to_owned(),
                    style: at % STYLES,
                    points: points(rows.iter().filter(|row| row.policy == *policy), x),
                })
                .collect()
        };
        let budget =
            Chart::new("prompt budget in tokens", series(|row| Some(row.budget)), |value| value.to_string());
        let cost = Chart::new(
            "input cost of a prompt in millionths of a US dollar",
            series(cost_of_prompt),
            |value| value.to_string(),
        );
        let first = rows.first();
        Self {
            name: first.map(|row| row.set.clone()).unwrap_or_default(),
            sessions: first.map_or(0, |row| row.sessions),
            questions: first.map_or(0, |row| row.questions),
            unanswerable: first.map_or(0, |row| row.prompts - row.questions),
            charts: budget.into_iter().chain(cost).collect(),
            legend: policies.iter().enumerate().map(|(at, name)| (at % STYLES, (*name).to_owned())).collect(),
            rows: rows.iter().map(RowView::new).collect(),
            needles: rows.iter().flat_map(NeedleView::from_row).collect(),
        }
    }
}

/// Returns the points of a curve, in the order of their horizontal values.
fn points<'a>(
    rows: impl Iterator<Item = &'a ScoreRow>,
    x: fn(&ScoreRow) -> Option<u64>,
) -> Vec<(u64, u64, String)> {
    let mut points: Vec<(u64, u64, String)> = rows
        .filter_map(|row| {
            let share = row.per_mille(Metric::Evidence)?;
            let title = format!("{}, {} tokens: {} %", row.policy, row.budget, percent(share));
            Some((x(row)?, share, title))
        })
        .collect();
    // The cost of a larger budget can be smaller, as after a cache hit.
    points.sort();
    points
}

/// Returns the mean cost of a prompt's input in millionths of a US dollar.
fn cost_of_prompt(row: &ScoreRow) -> Option<u64> {
    (row.cost()? / 1_000).checked_div(row.prompts + row.turns.prompts)
}

impl RowView {
    fn new(row: &ScoreRow) -> Self {
        let figure = |metric| row.per_mille(metric).map_or_else(|| "-".into(), percent);
        Self {
            policy: row.policy.clone(),
            is_baseline: row.is_baseline,
            budget: row.budget,
            whole: row.whole().to_string(),
            evidence: figure(Metric::Evidence),
            used: figure(Metric::BudgetUsed),
            over: row.overflows + row.turns.overflows,
            kept: figure(Metric::PrefixKept),
            cached: figure(Metric::CacheHit),
            cost: row.cost().map_or_else(|| "-".into(), dollars),
            compactions: row.turns.compactions,
        }
    }
}

impl NeedleView {
    fn from_row(row: &ScoreRow) -> impl Iterator<Item = Self> {
        let kinds = NeedleKind::ALL.into_iter().filter(|_| !row.needles.is_empty());
        kinds.map(|kind| Self {
            policy: row.policy.clone(),
            budget: row.budget,
            kind: kind.name(),
            survival: Needles::COMPACTIONS.map(|compactions| {
                row.survival_by_place(kind, compactions).map(Share::rounded_percent).join(" / ")
            }),
        })
    }
}
