//! Plans every real session at every budget, one of three without `FULL=1`. Needs `CONTEXT_WINDOW_DATA` and
//! reports a skip without it.

use crate::support::{
    data, generate,
    laws::{self, Case},
    recount,
};
use context_window::{
    Config, ContextWindowManager, Model, PlanRequest, RagItem, RequestLimits, TokenCounter,
};
use context_window_formats::Session;

const BUDGETS: [u64; 5] = [300, 1_500, 6_000, 25_000, 128_000];

fn manager() -> ContextWindowManager {
    ContextWindowManager::configured(Model::custom("default"), Config::default()).unwrap()
}

/// Returns the documents in another order, by a fixed shuffle.
fn shuffled(items: &[RagItem]) -> Vec<RagItem> {
    let mut items = items.to_vec();
    items.reverse();
    let half = items.len() / 2;
    items.rotate_left(half / 2);
    items
}

fn check(manager: &ContextWindowManager, session: &Session, budget: u64) -> Result<(), String> {
    let limits = RequestLimits::prompt_budget(budget);
    let request = session.request().with_limits(limits);
    let plan = manager.build_plan(&request).map_err(|error| error.to_string())?;
    laws::hold(&Case {
        manager,
        request: &request,
        messages: session.log.messages(),
        rag: session.rag.iter().map(|item| item.id().as_str().to_owned()).collect(),
        config: &Config::default(),
        plan: &plan,
    })?;
    // One document has one order, which the checks above have already planned.
    if session.rag.len() > 1 {
        let other = request.clone().with_rag(shuffled(&session.rag));
        let other = manager.build_plan(&other).map_err(|error| error.to_string())?;
        if laws::all_bytes(&other) != laws::all_bytes(&plan) {
            return Err("O3: shuffled documents change the plan".into());
        }
    }
    let tools: i64 =
        plan.overhead.iter().filter(|line| line.what.name() == "tools").map(|line| line.tokens).sum();
    let recounted = recount::messages(&plan, &TokenCounter::o200k_base()) as i64 + tools;
    if recounted != plan.estimated_tokens_total.tokens as i64 {
        return Err(format!(
            "N3: the rendered prompt counts {recounted}, the plan says {}",
            plan.estimated_tokens_total.tokens
        ));
    }
    Ok(())
}

fn every_session_of(prefixes: &[&str]) {
    let manager = manager();
    let every = if generate::is_full() { 1 } else { 3 };
    let (mut plans, mut sessions) = (0, 0);
    for file in data::files(prefixes) {
        for session in file.sessions().step_by(every) {
            let session = session.unwrap();
            sessions += 1;
            for budget in BUDGETS {
                plans += 1;
                if let Err(law) = check(&manager, &session, budget) {
                    panic!("{:?} at {budget}: {law}", session.id);
                }
            }
        }
    }
    eprintln!("{prefixes:?}: {sessions} sessions, {plans} plans");
}

#[test]
fn every_agent_and_chat_session_plans_at_every_budget() {
    every_session_of(&["conv_"]);
}

#[test]
fn every_long_session_plans_at_every_budget() {
    every_session_of(&["long_"]);
}

#[test]
fn every_retrieval_session_plans_at_every_budget() {
    every_session_of(&["rag_"]);
}

#[test]
fn an_empty_request_is_a_valid_empty_plan() {
    let log = context_window::Conversation::new();
    let plan = manager().build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((plan.estimated_tokens_total.tokens, plan.included.len(), plan.excluded.len()), (3, 0, 0));
}
