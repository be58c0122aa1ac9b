//! Tests of the evaluation.
#![allow(clippy::pedantic, clippy::unwrap_used, unreachable_pub, reason = "tests")]

mod cases;
mod data;
mod laws;
mod needles;
mod turns;

use context_window::{Model, TokenCounter};
use context_window_eval::{Baseline, Evaluation, Policy};
use serde_json::{Value, json};

/// An evaluation of the default options and of all baselines.
fn evaluation(budgets: impl IntoIterator<Item = u64>) -> Evaluation {
    let policies = [Policy::preset("default").unwrap()];
    let counter = TokenCounter::named("o200k_base").unwrap();
    Evaluation::new(Model::custom("m"), counter)
        .with_budgets(budgets)
        .with_policies(policies.into_iter().chain(Baseline::ALL.map(Policy::baseline)))
}

/// A talk of this many messages. Each message states a number that no other message has.
fn talk(messages: usize) -> Vec<Value> {
    let text = |at: usize| {
        format!("Item number {at} of the long list costs {} euros and weighs {at} kilograms.", at * 7 + 1)
    };
    let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
    (0..messages).map(|at| json!({"id": format!("m{at}"), "role": role(at), "content": text(at)})).collect()
}
