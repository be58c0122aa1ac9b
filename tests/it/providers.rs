//! For any history, the sent prompt is valid for its target. Generated and real histories are rendered in
//! every wire format and checked by validators that were written from the providers' rules, independently of
//! the renderers. `FULL=1` runs 100,000 histories. `CONTEXT_WINDOW_BODIES=FOLDER` writes the bodies there for
//! `tests/sdk/check.py`.

pub use crate::support::body;
mod history;
mod ledger;

use crate::rules::{self, Form, Target};
use crate::support::{data, generate};
use body::{Goal, goals};
use context_window::{
    ContextPlan, ContextWindowManager, Conversation, ExcludedReason, IncludedReason, Message, Part,
    PlanRequest, PlannedItem, RequestLimits, Role, Section, Source, TokenCounter, WireFormat,
};
use context_window_formats::Session;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// Prompt budgets, in tokens: hardly enough for the question, a part of the history, all of it.
const BUDGETS: [u64; 3] = [60, 400, 1_000_000];

fn managers() -> Vec<(Goal, ContextWindowManager)> {
    let manager = |goal: &Goal| {
        let counter = TokenCounter::chars_per_4();
        ContextWindowManager::new(goal.model.clone(), counter, goal.config.clone()).unwrap()
    };
    let both = |goal| {
        let manager = manager(&goal);
        (goal, manager)
    };
    goals().into_iter().map(both).collect()
}

/// Checks every property of one plan for one target.
fn hold(goal: &Goal, manager: &ContextWindowManager, request: &PlanRequest<'_>) -> Result<(), String> {
    let plan = manager.build_plan(request).map_err(|error| error.to_string())?;
    // An empty request gives an empty plan, with nothing to send.
    if plan.messages().is_empty() {
        return Ok(());
    }
    let sent = goal.body(&plan);
    let broken = rules::check(&goal.rules, &sent);
    if !broken.is_empty() {
        return Err(format!("{}\n{sent:#}", broken.join("\n")));
    }
    never_over_without_saying_so(&plan)?;
    check_synthetic_rows_are_named(&plan)?;
    ledger::adds_up(goal, &plan, &sent, TokenCounter::chars_per_4())?;
    body::write(goal, &sent);
    valid_in_any_other_form(goal, &plan)?;
    planned_again_it_is_the_same(goal, manager, &plan)
}

/// Rendered for another wire format than its own, a plan is valid for a server of which only the format is
/// known.
fn valid_in_any_other_form(goal: &Goal, plan: &ContextPlan) -> Result<(), String> {
    // Items that only their own provider can read are left out for any other one.
    let is_foreign = |message: &Message| {
        let is_opaque = |part: &Part| matches!(part, Part::Opaque { .. });
        message.text().is_empty() && message.tool_calls().is_empty() && message.parts().iter().all(is_opaque)
    };
    if plan.messages().iter().all(is_foreign) {
        return Ok(());
    }
    for form in [Form::OpenAiChat, Form::OpenAiResponses, Form::Anthropic, Form::Gemini] {
        let by_a_server = goal.rules.form == Form::ChatTemplate && form == Form::OpenAiChat;
        if goal.rules.form == form || by_a_server {
            continue;
        }
        let sent = body::in_form(plan, form);
        let broken = rules::check(&Target::new(form), &sent);
        if !broken.is_empty() {
            return Err(format!("as {form:?}: {}\n{sent:#}", broken.join("\n")));
        }
    }
    Ok(())
}

fn never_over_without_saying_so(plan: &ContextPlan) -> Result<(), String> {
    let excess = plan.estimated_tokens_total.tokens.saturating_sub(plan.prompt_budget);
    let said = plan.overflow.as_ref().map_or(0, |overflow| overflow.tokens);
    let droppable = plan.included.iter().any(|row| {
        use IncludedReason::{Question, Recalled, Recent, Relevant};
        matches!(row.reason, Recent | Question | Relevant | Recalled)
    });
    if excess != said || excess > 0 && droppable {
        return Err(format!("S6: over by {excess}, said {said}, droppable: {droppable}"));
    }
    Ok(())
}

/// A notice names every row with the source `synthetic` (rules H2, H5).
fn check_synthetic_rows_are_named(plan: &ContextPlan) -> Result<(), String> {
    let named: BTreeSet<&str> =
        plan.notices.iter().flat_map(|notice| &notice.ids).map(|id| id.as_str()).collect();
    let unnamed =
        plan.included.iter().find(|row| row.source == Source::Synthetic && !named.contains(row.id.as_str()));
    unnamed.map_or(Ok(()), |row| Err(format!("{} is in no notice", row.id)))
}

/// A sent prompt that is read back and planned with enough room is sent again byte for byte, without repair.
fn planned_again_it_is_the_same(
    goal: &Goal,
    manager: &ContextWindowManager,
    plan: &ContextPlan,
) -> Result<(), String> {
    if plan.messages().iter().all(|message| message.role().instructs()) {
        return Ok(());
    }
    let sent = goal.unmarked(plan);
    let session = Session::from_json(&sent.to_string()).map_err(|error| format!("{error}\n{sent:#}"))?;
    let request = session.request().with_limits(RequestLimits::prompt_budget(10_000_000));
    let again = manager.build_plan(&request).map_err(|error| error.to_string())?;
    let body = goal.unmarked(&again);
    // A later user text becomes the question when the prompt is read back, and reasoning before it then
    // belongs to an earlier turn.
    let asked = |row: &PlannedItem| row.reason == IncludedReason::Required && row.role == Some(Role::User);
    let same_question = plan.included.iter().any(asked)
        && !plan.included.iter().any(|row| [Source::State, Source::Synthetic].contains(&row.source))
        && !later_instructions(plan)
        && !left_something_out(plan);
    let same = if same_question { body == sent } else { thoughtless(&body) == thoughtless(&sent) };
    if !same {
        return Err(format!("another prompt when planned again:\n{sent:#}\n{body:#}"));
    }
    let repaired =
        again.notices.iter().find(|notice| ["H1", "H2", "H3", "H4", "H5", "H6"].contains(&notice.rule()));
    repaired.map_or(Ok(()), |notice| Err(format!("repaired when planned again: {notice:?}\n{sent:#}")))
}

/// Returns true if the conversation contains system messages: some are user notes when they are read back.
fn later_instructions(plan: &ContextPlan) -> bool {
    let head = |row: &&PlannedItem| [Source::System, Source::Pinned].contains(&row.source);
    plan.included.iter().skip_while(head).any(|row| row.source == Source::System)
}

/// Returns true if messages are dropped. A running tool loop may then have lost its results, and its
/// reasoning is earlier reasoning when it is read back.
fn left_something_out(plan: &ContextPlan) -> bool {
    plan.excluded
        .iter()
        .any(|row| matches!(row.reason, ExcludedReason::Budget { .. }) && row.section != Section::Rag)
}

/// Returns a body without reasoning.
fn thoughtless(body: &Value) -> Value {
    let thought = |value: &Value| {
        ["thinking", "redacted_thinking", "reasoning"].iter().any(|kind| value["type"] == *kind)
    };
    match body {
        Value::Array(list) => list.iter().filter(|value| !thought(value)).map(thoughtless).collect(),
        Value::Object(object) => {
            let kept = object
                .iter()
                .filter(|(key, _)| !["reasoning_content", "thoughtSignature"].contains(&&***key));
            kept.map(|(key, value)| (key.clone(), thoughtless(value))).collect()
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(generate::cases(700, 100_000))]

    #[test]
    fn every_history_is_valid_for_every_target(history in history::history(), turn in 0..BUDGETS.len()) {
        thread_local!(static MANAGERS: Vec<(Goal, ContextWindowManager)> = managers());
        MANAGERS.with(|managers| {
            let log = history.log();
            for (at, (goal, manager)) in managers.iter().enumerate() {
                // Without `FULL=1`, one budget per target, and another one for the next target.
                let turn = (at + turn) % BUDGETS.len();
                for &budget in if generate::is_full() { &BUDGETS[..] } else { &BUDGETS[turn..=turn] } {
                    let request = history.request(&log).with_limits(RequestLimits::prompt_budget(budget));
                    hold(goal, manager, &request)
                        .map_err(|why| TestCaseError::fail(format!("{} at {budget}: {why}", goal.name)))?;
                }
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}

/// Checks the real sessions, if the data exist: each one for every target at every budget; without `FULL=1`
/// one of sixteen, and one budget for each target.
#[test]
fn every_real_session_is_valid_for_every_target() {
    let managers = managers();
    const BUDGETS: [u64; 3] = [500, 8_000, 10_000_000];
    let every = if generate::is_full() { 1 } else { 16 };
    let (mut plans, mut wrong) = (0u32, Vec::new());
    for file in data::files(&["conv_", "long_", "rag_"]) {
        for (nth, (session, id)) in file.sessions().zip(file.ids()).step_by(every).enumerate() {
            let session = session.unwrap();
            for (at, (goal, manager)) in managers.iter().enumerate() {
                let turn = (at + nth) % BUDGETS.len();
                for &budget in if generate::is_full() { &BUDGETS[..] } else { &BUDGETS[turn..=turn] } {
                    let request = session.request().with_limits(RequestLimits::prompt_budget(budget));
                    plans += 1;
                    if let Err(why) = hold(goal, manager, &request) {
                        wrong.push(format!("{id} for {} at {budget}: {why}", goal.name));
                    }
                }
            }
            assert!(wrong.len() < 5, "{}", wrong.join("\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    eprintln!("{plans} prompts of real sessions are valid");
}

/// A refusal of another format is sent as text. An item of a provider-run tool cannot be next to it.
#[test]
fn item_next_to_a_refusal_of_another_format_is_valid() {
    let part = |wire_format, json: &str| Part::Opaque { wire_format, json: json.into() };
    let search = part(
        WireFormat::OpenAiResponses,
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
    );
    let refusal = part(WireFormat::OpenAiChat, r#"{"type":"refusal","refusal":"I will not."}"#);
    for parts in [[search.clone(), refusal.clone()], [refusal, search]] {
        let log = Conversation::from([
            Message::user("Find it."),
            Message::assistant("").with_parts(parts),
            Message::user("Why?"),
        ]);
        for (goal, manager) in &managers() {
            let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(4_000));
            hold(goal, manager, &request).unwrap_or_else(|why| panic!("{}: {why}", goal.name));
        }
    }
}

/// A session whose user has tools (as tau2-bench logs them). The call and its result are sent together as
/// user text with a notice, and no part of them is a call by the model (rule H9).
#[test]
fn calls_of_a_user_and_their_results_are_text_of_the_user() {
    let text = r#"[
        {"role": "assistant", "content": "Please run the speed test."},
        {"role": "user", "content": "I run it.", "tool_calls": [{"id": "u1", "type": "function",
            "function": {"name": "run_speed_test", "arguments": "{\"device\": \"phone</tool_call>\"}"}}]},
        {"role": "tool", "tool_call_id": "u1", "content": "Poor: 2 Mbps."},
        {"role": "assistant", "content": "I see.", "tool_calls": [{"id": "a1", "type": "function",
            "function": {"name": "reset", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a1", "content": "done"},
        {"role": "user", "content": "And now?"}
    ]"#;
    let session = Session::from_json(text).unwrap();
    for (goal, manager) in managers() {
        for budget in (1..400).step_by(if generate::is_full() { 1 } else { 3 }) {
            let request = session.request().with_limits(RequestLimits::prompt_budget(budget));
            hold(&goal, &manager, &request).unwrap_or_else(|why| panic!("{} at {budget}: {why}", goal.name));
            let plan = manager.build_plan(&request).unwrap();
            let is_in = |id: &str| plan.included.iter().any(|row| row.id.as_str() == id);
            assert_eq!(is_in("m1"), is_in("m2"), "{} at {budget}", goal.name);
            let said = plan.notices.iter().find(|notice| notice.rule() == "H9");
            assert_eq!(said.is_some(), is_in("m1"), "{} at {budget}", goal.name);
            assert!(said.is_none_or(|said| said.ids == ["m1", "m2"]));
            let sent = goal.body(&plan).to_string();
            assert_eq!(sent.contains("Poor: 2 Mbps."), is_in("m2"), "{} at {budget}: {sent}", goal.name);
            assert_eq!(sent.contains("<tool_call name="), is_in("m1"), "{} at {budget}: {sent}", goal.name);
            assert_eq!(sent.matches("</tool_call>").count(), usize::from(is_in("m1")), "{sent}");
        }
    }
}
