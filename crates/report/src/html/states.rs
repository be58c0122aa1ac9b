//! The other prompts that a page can show: at other budgets, and earlier ones. Each is stored as the
//! difference from the one before it, which keeps the page small.

use super::{
    Html,
    catalog::{Catalog, Finished, ItemTokens, Line, difference},
};
use context_window::{ContextPlan, TokenCount, analysis::BudgetMap, tokens::Certainty};
use serde::Serialize;
use std::fmt::Write as _;

/// The data for the script of a page.
#[derive(Debug, Serialize)]
pub(super) struct Data<'a> {
    #[serde(flatten)]
    known: Finished,
    /// The number of cells of the grid.
    cells: usize,
    now: State,
    /// The prompts at other budgets, if the page has a slider.
    budgets: Option<Budgets>,
    /// The prompts of the timeline. The first one is complete, the others are differences.
    prompts: Vec<State>,
    /// The texts of messages inside runs, with their item numbers.
    inside: &'a [Inside],
}

/// A message inside a run.
#[derive(Debug, Serialize)]
pub(super) struct Inside {
    /// Its item number.
    pub(super) item: usize,
    /// The index of its run among the excluded rows.
    pub(super) run: usize,
    pub(super) kind: String,
    pub(super) preview: String,
    pub(super) pieces: Vec<super::shown::Piece>,
}

/// A prompt, as the difference from another one.
#[derive(Debug, Serialize)]
struct State {
    /// Its name; empty for the present prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    budget: u64,
    reply: u64,
    total: u64,
    /// `~` if its token counts are not exact, otherwise empty.
    mark: &'static str,
    overhead: Vec<Line>,
    sections: Vec<Section>,
    enters: Vec<u64>,
    leaves: Vec<usize>,
}

/// A section: its smallest and its largest budget, its tokens, and the numbers of included and excluded
/// items.
type Section = (u64, u64, u64, u64, u64);

/// Returns the mark of a total: empty if it is exact, otherwise `~`.
fn mark(total: TokenCount) -> &'static str {
    if total.certainty == Certainty::Exact { "" } else { "~" }
}

/// The prompts at other budgets.
#[derive(Debug, Serialize)]
struct Budgets {
    /// The end of the last step and the largest budget of the model. Between them there can be further
    /// changes.
    to: u64,
    largest: u64,
    /// The range of budgets of the slider and the lanes.
    from: u64,
    until: u64,
    /// The steps in ascending order. Each has its smallest budget, total, mark, overhead, sections, new items
    /// and removed items.
    steps: Vec<Step>,
}

type Step = (u64, u64, &'static str, Vec<Line>, Vec<Section>, Vec<u64>, Vec<usize>);

impl<'a> Data<'a> {
    pub(super) fn new(html: &Html<'_>, mut catalog: Catalog, cells: usize, inside: &'a [Inside]) -> Self {
        let plan = html.plan;
        // The first state has no predecessor, so all its items are new.
        let now = State::new(&mut catalog, plan, &ItemTokens::new(), String::new()).0;
        let mut prompts = Vec::new();
        let mut before = ItemTokens::new();
        let timeline = html.earlier.iter().chain((!html.earlier.is_empty()).then_some(plan));
        for (at, plan) in timeline.enumerate() {
            // Each state is the difference from the one before it, so the order matters.
            let name = format!("prompt {}", html.first + at);
            let (state, held) = State::new(&mut catalog, plan, &before, name);
            prompts.push(state);
            before = held;
        }
        let budgets = html.budget_map.map(|map| Budgets::new(&mut catalog, map));
        Self { known: catalog.finish(), cells, now, budgets, prompts, inside }
    }

    /// Serializes the data as JSON for a script element. Markup characters and line separators are escaped,
    /// so nothing in it can end the element.
    pub(super) fn json(&self) -> String {
        // Serializing strings, numbers and lists does not fail.
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
    /// Builds a prompt as the difference from `before`, and returns its items for the next one.
    fn new(
        catalog: &mut Catalog,
        plan: &ContextPlan,
        before: &ItemTokens,
        name: String,
    ) -> (Self, ItemTokens) {
        let held = catalog.item_tokens(plan);
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
        let (from, until) = drawn_range(map, to);
        Self { to, largest: map.largest_budget, from, until, steps }
    }
}

/// Returns the range of budgets to draw. It reaches from the first to the last change and includes the
/// present budget, with a margin of 5 per cent on either side.
fn drawn_range(map: &BudgetMap, to: u64) -> (u64, u64) {
    let changes = map.steps.iter().skip(1).map(|step| step.from);
    let low = changes.clone().min().unwrap_or(map.prompt_budget).min(map.prompt_budget);
    let high = changes.max().unwrap_or(map.prompt_budget).max(map.prompt_budget);
    let margin = ((high - low) / 20).max(10);
    let least = map.steps.first().map_or(1, |step| step.from);
    (low.saturating_sub(margin).max(least), high.saturating_add(margin).min(to.max(high)))
}
