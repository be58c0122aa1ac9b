//! A chart and a table of earlier prompts and this one. The chart has one bar per prompt in time order,
//! stacked by kind. A line shows the budget, and marks show events.

use super::{Html, shown::visible};
use crate::{
    dollars, palette,
    row::{number, short},
    words::percent,
};
use context_window::{ContextPlan, plan::Kind, text::plain::grouped};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write as _};

/// The width of a bar and the height of the chart, in units of the drawing.
const WIDTH: usize = 100;
const HEIGHT: u64 = 1_000;

/// The prompts of a conversation in time order.
#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    prompts: Vec<Prompt>,
    width: usize,
    /// The class, name and outline (SVG path) of each kind, from the bottom up.
    kinds: Vec<(&'static str, String, String)>,
    /// The outline of the budget.
    budget: String,
    /// The class, name and outline of each kind of event.
    marks: Vec<(&'static str, &'static str, String)>,
    /// The labels of the axis in tokens: the full height and half of it.
    top: String,
    half: String,
    sums: Vec<String>,
    /// The number of older prompts that are not shown; empty if all are shown.
    not_shown: String,
}

#[derive(Debug, Serialize)]
struct Prompt {
    name: String,
    x: usize,
    total: String,
    budget: String,
    percent: String,
    /// The tokens of its cached prefix, or `unknown` if the previous prompt is not recorded.
    cached: String,
    events: String,
    cost: String,
    /// A summary of the prompt in one line.
    title: String,
    #[serde(skip)]
    marks: Vec<usize>,
}

/// The kinds of events: the class of the mark, and its name.
const MARKS: [(&str, &str); 4] = [
    ("over", "over budget"),
    ("break", "cache break"),
    ("compaction", "compaction"),
    ("lost", "lost reasoning"),
];

impl Timeline {
    /// Builds the timeline. Returns `None` if there are no earlier plans.
    pub(super) fn new(html: &Html<'_>) -> Option<Self> {
        if html.earlier.is_empty() {
            return None;
        }
        let plans: Vec<&ContextPlan> = html.earlier.iter().chain([html.plan]).collect();
        // A budget can be 1,000 times as large as any prompt. Budgets above four times the largest prompt are
        // not drawn.
        let largest = plans.iter().map(|plan| plan.estimated_tokens_total.tokens).max().unwrap_or_default();
        let budgets = plans.iter().map(|plan| plan.prompt_budget).filter(|budget| *budget / 4 <= largest);
        let scale = budgets.max().unwrap_or_default().max(largest).max(1);
        let mut outlines: BTreeMap<Kind, String> = BTreeMap::new();
        let mut marks: [String; MARKS.len()] = Default::default();
        let (mut prompts, mut budget, mut sums) = (Vec::new(), String::new(), Sums::default());
        for (at, plan) in plans.iter().enumerate() {
            let x = at * WIDTH;
            let (mut below, mut kinds) = (0, plan.composition(0).by_group().kinds);
            // Sorted by kind, not by tokens, so that each kind keeps its place in every bar.
            kinds.sort();
            for (kind, tokens) in kinds {
                let (from, to) = (height(below, scale), height(below + tokens, scale));
                below += tokens;
                let outline = outlines.entry(kind).or_default();
                let _ = write!(outline, "M{x} {}h{WIDTH}v{}h-{WIDTH}z", HEIGHT - to, to - from);
            }
            if plan.prompt_budget <= scale {
                let y = HEIGHT - height(plan.prompt_budget, scale);
                let _ = write!(budget, "M{x} {y}h{WIDTH}");
            }
            let before = at.checked_sub(1).map(|before| plans[before]);
            let prompt = Prompt::new(html, at, plan, before, &mut sums);
            for mark in &prompt.marks {
                // A mark fills the full height of the lane of its kind.
                let _ = write!(marks[*mark], "M{x} 0h{WIDTH}v{HEIGHT}h-{WIDTH}z");
            }
            prompts.push(prompt);
        }
        let older = html.first.saturating_sub(1);
        Some(Self {
            width: prompts.len() * WIDTH,
            kinds: outlines
                .into_iter()
                .map(|(kind, outline)| (palette::name(&kind), visible(&kind.text()), outline))
                .collect(),
            budget,
            marks: MARKS
                .into_iter()
                .zip(marks)
                .filter(|(_, outline)| !outline.is_empty())
                .map(|((class, name), outline)| (class, name, outline))
                .collect(),
            top: grouped(scale),
            half: grouped(scale / 2),
            sums: sums.to_texts(),
            prompts,
            not_shown: if older == 0 { String::new() } else { grouped(older as u64) },
        })
    }
}

/// Converts tokens to a height in the chart. `scale` is the number of tokens of the full height.
fn height(tokens: u64, scale: u64) -> u64 {
    let part = u128::from(tokens) * u128::from(HEIGHT) / u128::from(scale);
    u64::try_from(part).unwrap_or(HEIGHT).min(HEIGHT)
}

/// The sums over all prompts.
#[derive(Debug, Default)]
struct Sums {
    breaks: u64,
    sent_again: u128,
    sent: u128,
    cached: u128,
    cost: Option<(u64, u64)>,
}

impl Sums {
    /// Describes the sums: tokens sent, the cache hit rate, cache breaks, and costs if known.
    fn to_texts(&self) -> Vec<String> {
        let whole = |tokens: u128| grouped(u64::try_from(tokens).unwrap_or(u64::MAX));
        let rate = percent(self.cached, self.sent);
        let mut texts = vec![format!("{} tokens sent, cache hit rate {rate}", whole(self.sent))];
        if self.breaks > 0 {
            let breaks = if self.breaks == 1 { "cache break" } else { "cache breaks" };
            texts.push(format!(
                "{} {breaks} sent {} tokens again",
                grouped(self.breaks),
                whole(self.sent_again)
            ));
        }
        texts.extend(self.cost.map(|(cost, uncached)| {
            format!("{} for input, {} without a cache", dollars(cost), dollars(uncached))
        }));
        texts
    }
}

impl Prompt {
    fn new(
        html: &Html<'_>,
        at: usize,
        plan: &ContextPlan,
        before: Option<&ContextPlan>,
        sums: &mut Sums,
    ) -> Self {
        let (total, budget) = (plan.estimated_tokens_total.tokens, plan.prompt_budget);
        let prefix = plan.repeated();
        let (mut events, mut marks) = (Vec::new(), Vec::new());
        if plan.overflow_tokens() > 0 {
            events.push(format!("over budget by {}", grouped(plan.overflow_tokens())));
            marks.push(0);
        }
        if let Some((prefix, cause)) = prefix.as_ref().and_then(|prefix| Some((prefix, prefix.cause?))) {
            let was = prefix.instead_of.as_ref().map(|id| short(id.as_str())).unwrap_or_default();
            events.push(format!("cache break at {was}: {}", cause.text()));
            marks.push(1);
            sums.breaks += 1;
            // Tokens of the last prompt after the break were cached and are sent again.
            sums.sent_again += u128::from(prefix.of - prefix.tokens);
        }
        // The predecessor of the first plan is unknown, so its compactions count as new only if it is prompt
        // 1.
        let compacted = match before {
            Some(before) => plan.usage.compactions.saturating_sub(before.usage.compactions),
            None if html.first == 1 => plan.usage.compactions,
            None => 0,
        };
        if compacted > 0 {
            events.push(format!("compaction #{}", plan.usage.compactions));
            marks.push(2);
        }
        let lost =
            plan.thoughts.lost.len().saturating_sub(before.map_or(0, |before| before.thoughts.lost.len()));
        if lost > 0 {
            events.push(format!("reasoning of {} replies lost", grouped(lost as u64)));
            marks.push(3);
        }
        let cached = prefix.as_ref().map(|prefix| prefix.tokens.min(total));
        sums.sent += u128::from(total);
        sums.cached += u128::from(cached.unwrap_or_default());
        let cost =
            html.model.and_then(|model| model.input_cost(total, cached.unwrap_or_default(), html.terms));
        if let Some(cost) = cost {
            let (sum, uncached) = sums.cost.unwrap_or_default();
            sums.cost = Some((sum.saturating_add(cost.billionths), uncached.saturating_add(cost.uncached)));
        }
        let cost = cost.map(|cost| dollars(cost.billionths)).unwrap_or_default();
        let cached = cached.map_or_else(|| "unknown".into(), grouped);
        let name = grouped((html.first + at) as u64);
        let events = visible(&events.join(", "));
        let (whole, percent) = (number(plan.estimated_tokens_total), percent(total, budget));
        let mut title =
            format!("prompt {name}: {whole} of {} tokens, {percent}; cached {cached}", grouped(budget));
        for more in [&events, &cost].into_iter().filter(|more| !more.is_empty()) {
            title = format!("{title}; {more}");
        }
        let x = at * WIDTH;
        Self { name, x, total: whole, budget: grouped(budget), percent, cached, events, cost, title, marks }
    }
}
