//! The figures of one prompt of a replay, and a description of its events.

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
    /// The tokens of the previous prompt that are repeated (the cached prefix). `None` for the first prompt.
    /// The next field is the previous prompt's total.
    #[serde(rename = "reused_prefix_tokens")]
    pub(crate) reused: Option<u64>,
    #[serde(rename = "previous_tokens")]
    pub(crate) before: Option<u64>,
    /// The item of the previous prompt at the cache break. The next field is the cause.
    pub(crate) differs_from: Option<String>,
    pub(crate) cause: Option<&'static str>,
    pub(crate) window_start: Option<String>,
    /// The number of messages excluded for lack of budget.
    pub(crate) without_room: u64,
    /// The number of messages sent with their reasoning, and of messages whose reasoning was dropped.
    pub(crate) thoughts_sent: u64,
    pub(crate) thoughts_lost: u64,
    /// The cost of the prompt's input. `None` if the model has no price.
    pub(crate) cost: Option<Cost>,
    /// The additional cost of the cache break, in billionths of a US dollar. It is the difference from the
    /// same prompt with the whole previous prompt read from the cache.
    #[serde(rename = "cache_break_billionths")]
    pub(crate) break_cost: Option<u64>,
}

impl Figures {
    pub(crate) fn from_step(step: &Step, model: &Model, terms: CostTerms<'_>) -> Self {
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

    /// Returns the repeated tokens and the total of the previous prompt. Returns `None` for the first prompt.
    pub(crate) fn repeats(&self) -> Option<(u64, u64)> {
        self.reused.zip(self.before)
    }

    /// Returns the number of tokens after the cached prefix.
    pub(crate) fn new_tokens(&self) -> u64 {
        self.tokens.saturating_sub(self.reused.unwrap_or_default())
    }

    /// Checks if the conversation was compacted between the previous prompt and this one. If the previous
    /// prompt is unknown, only prompt 1 can be known to follow a compaction.
    pub(crate) fn is_compacted_since(&self, before: Option<&Self>) -> bool {
        match before {
            Some(before) => self.compactions > before.compactions,
            None => self.number == 1 && self.compactions > 0,
        }
    }

    /// Describes the events of this prompt: over budget, compaction, cache break and lost reasoning. Without
    /// such an event, it reports the number of dropped messages.
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
            let replies = if self.thoughts_lost == 1 { "reply" } else { "replies" };
            said.push(format!("reasoning of {} {replies} lost", report::grouped(self.thoughts_lost)));
        }
        if said.is_empty() && self.without_room > 0 {
            said.push(format!("{} dropped (budget)", report::grouped(self.without_room)));
        }
        said.join(", ")
    }
}
