//! One prompt of a replay in numbers, and what happened there in words.

use context_window::{
    ExcludedReason, Model,
    analysis::Step,
    usage::{Cost, CostTerms},
};
use context_window_report as report;
use serde::Serialize;

/// The figures of a prompt, as `replay --format json` writes them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    #[serde(rename = "prompt")]
    pub(crate) number: usize,
    pub(crate) turn: usize,
    pub(crate) messages: usize,
    pub(crate) compactions: usize,
    #[serde(rename = "prompt_budget")]
    pub(crate) budget: u64,
    #[serde(rename = "estimated_tokens_total")]
    pub(crate) tokens: u64,
    #[serde(rename = "overflow_tokens")]
    pub(crate) over: u64,
    /// Tokens of the prompt before it that it repeats, and of how many; null for the first one.
    #[serde(rename = "reused_prefix_tokens")]
    pub(crate) reused: Option<u64>,
    #[serde(rename = "previous_tokens")]
    pub(crate) before: Option<u64>,
    /// The item at which the two part, and why.
    pub(crate) differs_from: Option<String>,
    pub(crate) cause: Option<&'static str>,
    pub(crate) window_start: Option<String>,
    /// Messages that are dropped.
    pub(crate) without_room: u64,
    /// Messages that are sent with their reasoning, and those that lost it.
    pub(crate) thoughts_sent: u64,
    pub(crate) thoughts_lost: u64,
    /// What its input costs; null where the model has no price.
    pub(crate) cost: Option<Cost>,
    /// What the cache break adds to that, in billionths of a US dollar: what it would cost less, had all of
    /// the prompt before been read from the cache.
    #[serde(rename = "cache_break_billionths")]
    pub(crate) break_cost: Option<u64>,
}

impl Figures {
    pub(crate) fn of(step: &Step, model: &Model, terms: CostTerms<'_>) -> Self {
        let plan = &step.plan;
        let prefix = plan.repeated();
        let prefix = prefix.as_ref();
        let without_room =
            plan.excluded.iter().filter(|row| matches!(row.reason, ExcludedReason::Budget { .. }));
        Self {
            number: step.prompt,
            turn: step.turn,
            messages: step.messages,
            compactions: step.compactions,
            budget: plan.prompt_budget,
            tokens: plan.estimated_tokens_total.tokens,
            over: plan.overflow_tokens(),
            reused: prefix.map(|prefix| prefix.tokens),
            before: prefix.map(|prefix| prefix.of),
            differs_from: prefix.and_then(|prefix| Some(prefix.instead_of.as_ref()?.to_string())),
            cause: prefix.and_then(|prefix| Some(prefix.cause?.text())),
            window_start: plan.window_start.as_ref().map(ToString::to_string),
            without_room: without_room.map(|row| row.count).sum(),
            thoughts_sent: plan.thoughts.sent,
            thoughts_lost: plan.thoughts.lost.len() as u64,
            break_cost: prefix.filter(|prefix| prefix.cause.is_some()).and_then(|prefix| {
                let cost = |repeated| {
                    Some(model.input_cost(plan.estimated_tokens_total.tokens, repeated, terms)?.billionths)
                };
                Some(cost(prefix.tokens)?.saturating_sub(cost(prefix.of)?))
            }),
            cost: model.input_cost(
                plan.estimated_tokens_total.tokens,
                prefix.map_or(0, |prefix| prefix.tokens),
                terms,
            ),
        }
    }

    /// Tokens of the prompt before it that it repeats, and of how many.
    pub(crate) fn repeats(&self) -> Option<(u64, u64)> {
        self.reused.zip(self.before)
    }

    /// Tokens that the prompt before it did not have there.
    pub(crate) fn new_tokens(&self) -> u64 {
        self.tokens.saturating_sub(self.reused.unwrap_or_default())
    }

    /// Whether the conversation was compacted between this prompt and the one before. Where that is not known
    /// and this is not the first of all, it is unknown.
    pub(crate) fn is_compacted_since(&self, before: Option<&Self>) -> bool {
        match before {
            Some(before) => self.compactions > before.compactions,
            None => self.number == 1 && self.compactions > 0,
        }
    }

    /// What happened at this prompt, after that one: over budget, compacted, where it parts and why; else
    /// what had no room.
    pub(crate) fn said(&self, before: Option<&Self>) -> String {
        let mut said = Vec::new();
        if self.over > 0 {
            said.push(format!("over budget by {}", report::grouped(self.over)));
        }
        if self.is_compacted_since(before) {
            said.push(format!("compacted #{}", self.compactions));
        }
        if let (Some(at), Some(cause)) = (&self.differs_from, self.cause) {
            said.push(format!("cache break at {}: {cause}", report::brief(at)));
        }
        if self.thoughts_lost > before.map_or(0, |before| before.thoughts_lost) {
            let thoughts = if self.thoughts_lost == 1 { "thought" } else { "thoughts" };
            said.push(format!("{} {thoughts} lost", report::grouped(self.thoughts_lost)));
        }
        if said.is_empty() && self.without_room > 0 {
            said.push(format!("{} dropped (budget)", report::grouped(self.without_room)));
        }
        said.join(", ")
    }
}
