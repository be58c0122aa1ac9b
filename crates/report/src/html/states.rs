//! The states of the prompt that a page can show beside its plan: at other budgets, and earlier prompts. Each
//! is written as what changes from the one before it.

use super::{
    Html,
    catalog::{Catalog, Finished, Held, Line, difference},
};
use context_window::{ContextPlan, TokenCount, analysis::BudgetMap, tokens::Certainty};
use serde::Serialize;
use std::fmt::Write as _;

/// What the script of a page is given.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    #[serde(flatten)]
    known: Finished,
    /// Cells of the grid.
    cells: usize,
    now: State,
    /// The budgets, where the page has a slider.
    budgets: Option<Budgets>,
    /// The prompts of the timeline, the first one of them whole.
    prompts: Vec<State>,
    /// The texts of messages inside of runs, by their numbers.
    inside: &'a [Inside],
}

/// A message inside of a run.
#[derive(Debug, Serialize)]
pub(super) struct Inside {
    /// Its number.
    pub(super) item: usize,
    /// The row that it belongs to, by its place among the rows that are out.
    pub(super) run: usize,
    pub(super) kind: String,
    pub(super) preview: String,
    pub(super) pieces: Vec<super::shown::Piece>,
}

/// A prompt.
#[derive(Debug, Serialize)]
struct State {
    /// Its name, where it is a prompt of the timeline.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    budget: u64,
    reply: u64,
    total: u64,
    /// The mark of its numbers if they are no exact counts.
    mark: &'static str,
    overhead: Vec<Line>,
    sections: Vec<Section>,
    enters: Vec<u64>,
    leaves: Vec<usize>,
}

/// A section: the smallest and the largest of its budgets, its tokens, and the items that are in and out.
type Section = (u64, u64, u64, u64, u64);

/// The mark of numbers that are no exact counts.
fn mark(total: TokenCount) -> &'static str {
    if total.certainty == Certainty::Exact { "" } else { "~" }
}

/// The prompt at other budgets.
#[derive(Debug, Serialize)]
struct Budgets {
    /// Where the last step ends, and the largest budget of the model: beyond the first there may be more
    /// changes.
    to: u64,
    largest: u64,
    /// The budgets that the slider and the lanes go over.
    from: u64,
    until: u64,
    /// Each with its smallest budget, its total and its mark, its overhead, its sections, what enters and
    /// what leaves.
    steps: Vec<Step>,
}

type Step = (u64, u64, &'static str, Vec<Line>, Vec<Section>, Vec<u64>, Vec<usize>);

impl<'a> Data<'a> {
    pub(super) fn new(html: &Html<'_>, mut catalog: Catalog, cells: usize, inside: &'a [Inside]) -> Self {
        let plan = html.plan;
        let now = State::new(&mut catalog, plan, &Held::new(), String::new()).0;
        let mut prompts = Vec::new();
        let mut before = Held::new();
        let timeline = html.earlier.iter().chain((!html.earlier.is_empty()).then_some(plan));
        for (at, plan) in timeline.enumerate() {
            let name = format!("prompt {}", html.first + at);
            let (state, held) = State::new(&mut catalog, plan, &before, name);
            prompts.push(state);
            before = held;
        }
        let budgets = html.budget_map.map(|map| Budgets::new(&mut catalog, map));
        Self { known: catalog.finish(), cells, now, budgets, prompts, inside }
    }

    /// As JSON inside of a page: nothing in it ends an element or is unseen.
    pub(super) fn json(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        let mut safe = String::with_capacity(json.len());
        for c in json.chars() {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    let _ = write!(safe, "\\u{:04x}", u32::from(c));
                }
                c => safe.push(c),
            }
        }
        safe
    }
}

impl State {
    /// A prompt as what differs from another one, and what it holds.
    fn new(catalog: &mut Catalog, plan: &ContextPlan, before: &Held, name: String) -> (Self, Held) {
        let held = catalog.held(plan);
        let (enters, leaves) = difference(before, &held);
        let (budget, total) = (plan.prompt_budget, plan.estimated_tokens_total.tokens);
        let (overhead, reply) = (catalog.overhead(&plan.overhead), plan.reply_reserve());
        let sections = plan.sections.iter();
        let sections = sections.map(|one| (one.budget, one.budget, one.used, one.included, one.excluded));
        let (sections, mark) = (sections.collect(), mark(plan.estimated_tokens_total));
        (Self { name, budget, reply, total, mark, overhead, sections, enters, leaves }, held)
    }
}

impl Budgets {
    fn new(catalog: &mut Catalog, map: &BudgetMap) -> Self {
        let numbers: Vec<usize> = map.items.iter().map(|item| catalog.mapped(item)).collect();
        let steps = map.steps.iter().map(|step| {
            let enters = step.enters.iter();
            let enters = enters.flat_map(|item| [numbers[item.place] as u64, item.tokens, item.reasoning]);
            let leaves = step.leaves.iter().map(|at| numbers[*at]);
            let sections = step.sections.iter();
            let sections =
                sections.map(|one| (one.budget_from, one.budget_to, one.used, one.included, one.excluded));
            let (total, overhead) = (step.total, catalog.overhead(&step.overhead));
            (
                step.from,
                total.tokens,
                mark(total),
                overhead,
                sections.collect(),
                enters.collect(),
                leaves.collect(),
            )
        });
        let steps: Vec<_> = steps.collect();
        let to = map.steps.last().map_or(map.prompt_budget, |step| step.to);
        let (from, until) = drawn(map, to);
        Self { to, largest: map.largest_budget, from, until, steps }
    }
}

/// The budgets that are drawn: those at which something changes and the present one, with a twentieth on
/// either side.
fn drawn(map: &BudgetMap, to: u64) -> (u64, u64) {
    let changes = map.steps.iter().skip(1).map(|step| step.from);
    let low = changes.clone().min().unwrap_or(map.prompt_budget).min(map.prompt_budget);
    let high = changes.max().unwrap_or(map.prompt_budget).max(map.prompt_budget);
    let margin = ((high - low) / 20).max(10);
    let least = map.steps.first().map_or(1, |step| step.from);
    (low.saturating_sub(margin).max(least), high.saturating_add(margin).min(to.max(high)))
}
