//! Large results outside of the prompt (rule S7): the form of a result never changes.

use crate::support::generate;
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, ItemKind, Message, Model, PlanRequest,
    RequestLimits, Role, ToolCall,
    config::ToolResults,
    plan::{Anchor, NoticeCode},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One prompt and its reply: the settings of its request, and the results that follow.
#[derive(Debug, Clone)]
struct Step {
    offloads: bool,
    declares: bool,
    above: u64,
    keep: u64,
    /// True if the reply is lost, so that the next prompt follows the same messages.
    is_repeated: bool,
    /// The messages to go back before this prompt.
    rewinds: usize,
    /// The sizes of the results of the reply's calls; none ends the turn.
    results: Vec<usize>,
    is_read_back: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let rewinds = prop_oneof![9 => Just(0usize), 1 => 1usize..5];
    let often = || prop::bool::weighted(0.8);
    (
        often(),
        often(),
        0u64..400,
        0u64..200,
        prop::bool::weighted(0.1),
        rewinds,
        prop::collection::vec(0usize..900, 0..3),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(offloads, declares, above, keep, is_repeated, rewinds, results, is_read_back)| {
            Step {
                offloads,
                declares,
                above,
                keep: keep.min(above),
                is_repeated,
                rewinds,
                results,
                is_read_back,
            }
        })
}

fn manager(step: &Step) -> ContextWindowManager {
    let mut config = Config::default();
    config.conversation.tool_results = if step.offloads { ToolResults::Offload } else { ToolResults::Keep };
    (config.conversation.offload_above, config.conversation.offload_keep) = (step.above, step.keep);
    ContextWindowManager::new(Model::custom("test"), generate::bytes(), config).unwrap()
}

/// Returns the texts of the results in a plan by row id.
fn results(plan: &ContextPlan) -> BTreeMap<String, String> {
    let rows = plan.by_item().into_iter();
    let results = rows.filter(|row| row.kind == ItemKind::Message && row.message.role() == Role::Tool);
    results.map(|row| (row.ids[0].to_string(), row.message.text().to_owned())).collect()
}

proptest! {
    #![proptest_config(generate::cases(300, 20_000))]

    #[test]
    fn results_keep_the_form_of_their_first_prompt(
        steps in prop::collection::vec(step(), 1..14),
        budget in 2_000u64..20_000,
    ) {
        let tools = &*generate::RECALL;
        let mut log = Conversation::from([Message::user("The task.")]);
        let (mut sent, mut calls) = (BTreeMap::<String, String>::new(), 0);
        // The application that keeps its anchor itself has an equal log without prompts.
        let (mut stateless, mut anchor) = (log.clone(), None::<Anchor>);
        for step in steps {
            let at = log.messages().len().saturating_sub(step.rewinds);
            if step.rewinds > 0 && at > 0 && log.rewind_before(format!("m{at}")).is_ok() {
                stateless.rewind_before(format!("m{at}")).unwrap();
                for log in [&mut log, &mut stateless] {
                    log.push(Message::user("Again."));
                }
            }
            let manager = manager(&step);
            let request = |log| {
                let request = PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(budget));
                if step.declares { request.with_tools(tools) } else { request }
            };
            let plan = manager.build_plan(&request(&log)).unwrap();
            let mut again = request(&stateless);
            again = anchor.clone().map_or(again.clone(), |anchor| again.with_previous(anchor));
            let again = manager.build_plan(&again).unwrap();
            prop_assert_eq!(results(&plan), results(&again));
            if step.is_repeated {
                // A prompt without a reply is remembered by its anchor only.
                continue;
            }
            for (id, text) in results(&plan) {
                let result = &log.messages()[log.position_of_message(&id).unwrap()];
                let whole = result.text();
                let is_new = !sent.contains_key(&id);
                let first = sent.entry(id.clone()).or_insert_with(|| text.clone());
                prop_assert_eq!(&*first, &text, "{}", id);
                let is_read_back = log.messages().iter().flat_map(Message::tool_calls).any(|call| {
                    result.answers() == Some(&call.id) && call.name == "recall"
                });
                if is_read_back || is_new && !(step.offloads && step.declares) {
                    prop_assert_eq!(whole, &text, "{}", id);
                } else if is_new {
                    // Short enough results stay whole, and no text gets longer.
                    prop_assert!(text == whole || whole.len() as u64 > step.above && text.len() < whole.len());
                    let line = format!(" call recall with the handle {id}.]");
                    prop_assert!(whole.len() < step.above as usize + 200 || text.contains(&line), "{}", text);
                }
            }
            let waits = results(&plan).into_iter().any(|(id, text)| {
                let result = &log.messages()[log.position_of_message(&id).unwrap()];
                let mut calls = log.messages().iter().flat_map(Message::tool_calls);
                let call = calls.find(|call| result.answers() == Some(&call.id));
                let is_read_back = call.is_some_and(|call| call.name == "recall");
                result.text().len() as u64 > step.above && text == result.text() && !is_read_back
            });
            let has_notice = plan.notices.iter().any(|notice| notice.code == NoticeCode::ResultsNotOffloaded);
            prop_assert_eq!(has_notice, step.offloads && !step.declares && waits);
            anchor = Some(serde_json::from_str(&serde_json::to_string(&plan.anchor()).unwrap()).unwrap());
            let name = if step.is_read_back { "recall" } else { "run" };
            let made = (calls..).zip(&step.results);
            let made: Vec<ToolCall> = made.map(|(at, _)| ToolCall::new(format!("c{at}"), name, "{}")).collect();
            let reply = Message::assistant("Done.").with_tool_calls(made.clone());
            log.push_reply(&plan, reply.clone(), None);
            stateless.push(reply);
            for (call, size) in made.iter().zip(&step.results) {
                for log in [&mut log, &mut stateless] {
                    log.push(Message::tool(&call.id, "r".repeat(*size)));
                }
            }
            calls += made.len();
            if made.is_empty() {
                for log in [&mut log, &mut stateless] {
                    log.push(Message::user("Go on."));
                }
            }
        }
    }
}

/// Returns a step with results above 400 bytes offloaded.
fn offloads() -> Step {
    Step {
        offloads: true,
        declares: true,
        above: 400,
        keep: 100,
        is_repeated: false,
        rewinds: 0,
        results: Vec::new(),
        is_read_back: false,
    }
}

/// Returns a call and its result.
fn exchange(id: &str, result: String) -> [Message; 2] {
    let call = Message::assistant("").with_tool_calls([ToolCall::new(id, "list", "{}")]);
    [call, Message::tool(id, result)]
}

/// A prompt without a reply counts as sent for those who keep its anchor.
#[test]
fn anchor_of_an_unanswered_prompt_keeps_its_forms() {
    let tools = &*generate::RECALL;
    let mut log = Conversation::from([Message::user("List it.")]);
    log.extend(exchange("c", "r".repeat(900)));
    let offloads = offloads();
    let whole =
        manager(&Step { offloads: false, ..offloads.clone() }).build_plan(&PlanRequest::new(&log)).unwrap();
    let manager = manager(&offloads);
    let request = PlanRequest::new(&log).with_tools(tools);
    let short = manager.build_plan(&request).unwrap();
    assert!(results(&short)["m2"].len() < 300);
    let then = manager.build_plan(&request.clone().with_previous(whole.anchor())).unwrap();
    assert_eq!(results(&then), results(&whole));
    let again = manager.build_plan(&PlanRequest::new(&log).with_previous(short.anchor())).unwrap();
    assert_eq!(results(&again), results(&short));
}

/// An anchor may lack the items of its prompt. A prompt was sent before each reply nevertheless.
#[test]
fn results_before_the_last_reply_stay_whole_if_only_its_window_is_known() {
    let tools = &*generate::RECALL;
    let mut log = Conversation::new();
    for call in ["a", "b"] {
        log.push(Message::user("List it."));
        log.extend(exchange(call, "r".repeat(900)));
    }
    let previous: Anchor = serde_json::from_str(r#"{"window_start": "m0"}"#).unwrap();
    let request = PlanRequest::new(&log).with_tools(tools).with_previous(previous);
    let sent = results(&manager(&offloads()).build_plan(&request).unwrap());
    assert!(sent["m2"].len() == 900 && sent["m5"].len() < 300, "{sent:?}");
}

/// Returns a conversation with two calls of one message. The first result has 900 bytes, the second `size`.
fn two_calls(ids: [&str; 2], size: usize) -> Conversation {
    let calls = ids.map(|id| ToolCall::new(id, "list", "{}"));
    Conversation::from([
        Message::user("List both."),
        Message::assistant("").with_tool_calls(calls),
        Message::tool(ids[0], "r".repeat(900)),
        Message::tool(ids[1], "s".repeat(size)),
    ])
}

/// In a prompt that is too small, results that are offloaded anyway are not made longer than they were.
#[test]
fn clipping_leaves_shorter_results_as_they_are() {
    let tools = &*generate::RECALL;
    let log = two_calls(["a", "b"], 400);
    let manager = manager(&offloads());
    let request = PlanRequest::new(&log).with_tools(tools);
    let least = manager.build_plan(&request).unwrap();
    let budget = least.estimated_tokens_total.tokens - 100;
    let clipped = manager.build_plan(&request.with_limits(RequestLimits::prompt_budget(budget))).unwrap();
    assert!(clipped.overflow.is_none());
    assert_eq!(results(&clipped)["m2"], results(&least)["m2"]);
    assert!(results(&clipped)["m3"].contains(" bytes of m3 are left out here."), "{clipped:?}");
}

/// One of two calls with the same id has another id in the prompt, and so has its result (rule H1).
#[test]
fn offloaded_result_answers_the_id_that_its_call_has_in_the_prompt() {
    let tools = &*generate::RECALL;
    let log = two_calls(["a", "a"], 900);
    let plan = manager(&offloads()).build_plan(&PlanRequest::new(&log).with_tools(tools)).unwrap();
    let messages = plan.messages();
    let calls: Vec<&str> = messages.iter().flat_map(Message::tool_calls).map(|call| &*call.id).collect();
    let answered: Vec<&str> = messages.iter().filter_map(Message::answers).collect();
    assert_eq!(calls, answered);
    assert!(calls[0] != calls[1] && results(&plan).values().all(|text| text.len() < 300));
}

/// A result may be before an earlier message in the prompt. It was sent nevertheless (rule H1).
#[test]
fn moved_result_keeps_its_form() {
    let tools = &*generate::RECALL;
    let log = Conversation::from([
        Message::user("List it."),
        Message::assistant("").with_tool_calls([ToolCall::new("a", "list", "{}")]),
        Message::user("Are you there?"),
        Message::tool("a", "r".repeat(900)),
    ]);
    let whole = manager(&Step { offloads: false, ..offloads() }).build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(whole.included.last().unwrap().id, "m2", "the result is before the question");
    let request = PlanRequest::new(&log).with_tools(tools).with_previous(whole.anchor());
    let then = manager(&offloads()).build_plan(&request).unwrap();
    assert_eq!(results(&then)["m3"].len(), 900);
}

/// An option that alternates leaves forms only where a result has them.
#[test]
fn forms_of_no_result_are_forgotten() {
    let tools = &*generate::RECALL;
    let mut log = Conversation::new();
    for turn in 0..40 {
        let step = Step { offloads: turn % 2 == 0, ..offloads() };
        log.push(Message::user("List it."));
        log.extend(exchange(&format!("c{turn}"), "r".repeat(if turn == 20 { 900 } else { 90 })));
        let plan = manager(&step).build_plan(&PlanRequest::new(&log).with_tools(tools)).unwrap();
        log.push_reply(&plan, Message::assistant("Done."), None);
    }
    let anchor = serde_json::to_value(log.anchor().unwrap()).unwrap();
    assert!(anchor["result_forms"].as_array().unwrap().len() <= 3, "{}", anchor["result_forms"]);
}

/// The middles of offloaded results count neither as usage nor as tokens of excluded rows.
#[test]
fn usage_counts_offloaded_results_as_they_are_sent() {
    let tools = &*generate::RECALL;
    let mut log = Conversation::new();
    for turn in 0..30 {
        log.push(Message::user("List it."));
        log.extend(exchange(&format!("c{turn}"), "word ".repeat(10_000)));
        log.push(Message::assistant("Done."));
    }
    log.push(Message::user("And now?"));
    let request = PlanRequest::new(&log).with_tools(tools);
    let all = manager(&offloads()).build_plan(&request).unwrap();
    let few =
        manager(&offloads()).build_plan(&request.with_limits(RequestLimits::prompt_budget(2_000))).unwrap();
    let whole = all.estimated_tokens_total.tokens;
    assert!(few.usage.conversation_tokens.tokens.abs_diff(whole) < whole / 5, "{:?} of {whole}", few.usage);
    let out: u64 = few.excluded.iter().map(|row| row.token_estimate.tokens).sum();
    assert!(out < 2 * whole, "{out} of {whole}");
}
