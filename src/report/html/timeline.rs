//! Earlier prompts and this one, a line each.

use super::{
    Html,
    bar::{Bar, percent},
};
use crate::{plan::ContextPlan, report::row::number, text::plain::grouped};
use serde::Serialize;

/// Prompts that are shown, the newest ones.
const SHOWN: usize = 300;

/// The prompts of a conversation, newest first.
#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    prompts: Vec<Prompt>,
    /// How many older ones are not shown; empty where all are.
    not_shown: String,
}

#[derive(Debug, Serialize)]
struct Prompt {
    name: String,
    total: String,
    budget: String,
    percent: String,
    /// What it repeats of the one before, where that is remembered.
    repeated: String,
    overflow: String,
    compactions: String,
    bar: Bar,
}

impl Timeline {
    /// The timeline; none where no earlier plan is given.
    pub(super) fn new(html: &Html<'_>) -> Option<Self> {
        if html.earlier.is_empty() {
            return None;
        }
        let plans: Vec<&ContextPlan> = html.earlier.iter().chain([html.plan]).collect();
        let skipped = plans.len().saturating_sub(SHOWN);
        // The largest prompt is a whole bar: budgets may be a thousand times as large.
        let scale = plans[skipped..].iter().map(|plan| plan.total.n).max();
        let last = plans.len() - 1;
        let prompts = (skipped..plans.len()).rev().map(|at| {
            // Of the first one that is given, what was before is not known: nothing of it is called new.
            let before = match at.checked_sub(1) {
                None if html.first == 1 => 0,
                before => plans[before.unwrap_or(at)].usage.compactions,
            };
            let number = grouped((html.first + at) as u64);
            let name = if at == last { format!("{number} (this)") } else { number };
            Prompt::new(name, plans[at], before, scale.unwrap_or_default())
        });
        let older = skipped + html.first.saturating_sub(1);
        let not_shown = if older == 0 { String::new() } else { grouped(older as u64) };
        Some(Self { prompts: prompts.collect(), not_shown })
    }
}

impl Prompt {
    fn new(name: String, plan: &ContextPlan, compactions_before: u64, scale: u64) -> Self {
        let (total, budget, compactions) = (plan.total.n, plan.prompt_budget, plan.usage.compactions);
        let prefix = plan.repeated();
        let same = prefix.as_ref().map_or(0, |prefix| prefix.tokens).min(total);
        let more = compactions.saturating_sub(compactions_before);
        Self {
            name,
            total: number(plan.total),
            budget: grouped(budget),
            percent: percent(total, budget),
            repeated: prefix.map_or_else(
                || "unknown".into(),
                |prefix| format!("{} of {}", grouped(prefix.tokens), grouped(prefix.of)),
            ),
            overflow: if plan.overflow_tokens() == 0 {
                "no".into()
            } else {
                format!("by {}", grouped(plan.overflow_tokens()))
            },
            compactions: if more == 0 {
                grouped(compactions)
            } else {
                format!("{}, {} new", grouped(compactions), grouped(more))
            },
            bar: Bar::new(&[("same", same), ("new", total - same)], scale, budget),
        }
    }
}
