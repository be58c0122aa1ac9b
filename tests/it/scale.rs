//! The cost follows the budget, not the history (rules N5, O2). It is measured in calls and bytes, never in
//! seconds.

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, TokenCounter,
    ToolCall, config::ToolResults,
};
use context_window_formats::SessionFile;
use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Number of calls to a counter, and their tokens (a token is a byte).
#[derive(Default)]
struct Asked {
    calls: AtomicU64,
    tokens: AtomicU64,
}

/// Returns a manager whose counter records its calls.
fn recording() -> (ContextWindowManager, Arc<Asked>) {
    recording_with(Config::default())
}

fn recording_with(config: Config) -> (ContextWindowManager, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let record = asked.clone();
    let counter = TokenCounter::from_fn("recording", move |text| {
        record.calls.fetch_add(1, Relaxed);
        record.tokens.fetch_add(text.len() as u64, Relaxed);
        Ok::<_, std::fmt::Error>(text.len() as u64)
    });
    let manager = ContextWindowManager::new(Model::custom("test"), counter, config).unwrap();
    asked.calls.store(0, Relaxed);
    asked.tokens.store(0, Relaxed);
    (manager, asked)
}

/// Returns a session file with this number of messages, in turns of five that each have a tool call.
fn session_text(messages: usize) -> String {
    let mut text = String::from(r#"{"system":"Be brief.","messages":["#);
    for at in 0..messages {
        let sep = if at == 0 { "" } else { "," };
        let _ = match at % 5 {
            0 => write!(text, r#"{sep}{{"role":"user","content":"question number {at}, a little longer"}}"#),
            1 => write!(
                text,
                r#"{sep}{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_{at}","type":"function","function":{{"name":"search","arguments":"{{\"q\":{at}}}"}}}}]}}"#
            ),
            2 => write!(
                text,
                r#"{sep}{{"role":"tool","tool_call_id":"call_{}","content":"result {at}"}}"#,
                at - 1
            ),
            3 => write!(text, r#"{sep}{{"role":"assistant","content":"answer number {at}"}}"#),
            _ => write!(text, r#"{sep}{{"role":"assistant","content":"and a word more on {at}"}}"#),
        };
    }
    text.push_str("]}");
    text
}

const BUDGET: u64 = 8_000;
/// An upper bound for the longest message above, in tokens with its frame.
const ONE_ITEM: u64 = 200;

#[test]
fn a_million_messages_load_and_plan_at_the_cost_of_the_budget() {
    let file = SessionFile::new("million.json", session_text(1_000_000).into_bytes()).unwrap();
    let session = file.session(None).unwrap();
    assert_eq!(session.log.messages().len(), 1_000_000);
    let (manager, asked) = recording();
    let request = session.request().with_limits(RequestLimits::prompt_budget(BUDGET));
    let plan = manager.build_plan(&request).unwrap();
    let tokens = asked.tokens.load(Relaxed);
    // Only one section has demand here: at most the budget is tokenised, and one item that did not fit.
    assert!(tokens <= BUDGET + ONE_ITEM, "{tokens} tokens were counted for a budget of {BUDGET}");
    assert!(
        plan.estimated_tokens_total.tokens > BUDGET - 2 * ONE_ITEM
            && plan.estimated_tokens_total.tokens <= BUDGET,
        "{}",
        plan.estimated_tokens_total.tokens
    );
    assert!(plan.excluded.len() <= 3, "{} rows", plan.excluded.len());
    let out: u64 = plan.excluded.iter().map(|row| row.count).sum();
    assert_eq!(out + plan.included.len() as u64, 1_000_000 + 1);
}

#[test]
fn the_history_behind_the_window_costs_no_call() {
    let calls = |messages: usize| {
        let log = Conversation::from_iter((0..messages).map(|at| match at % 2 {
            0 => Message::user(format!("{:07}", at)),
            _ => Message::assistant(format!("{:07}", at)),
        }));
        let (manager, asked) = recording();
        manager
            .build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(BUDGET)))
            .unwrap();
        (asked.calls.load(Relaxed), asked.tokens.load(Relaxed))
    };
    assert_eq!(calls(1_000), calls(100_000));
}

#[test]
fn nothing_is_counted_on_push_and_a_message_only_once() {
    let (manager, asked) = recording();
    let mut log = Conversation::new();
    for at in 0..100 {
        log.push(Message::user(format!("message {at}")));
    }
    assert_eq!(asked.calls.load(Relaxed), 0);
    let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(50_000));
    manager.build_plan(&request).unwrap();
    let first = asked.calls.load(Relaxed);
    manager.build_plan(&request).unwrap();
    assert!(first >= 100, "{first}");
    assert_eq!(asked.calls.load(Relaxed), first);
}

#[test]
fn a_live_turn_of_a_hundred_thousand_steps_costs_no_more_than_its_budget() {
    let mut log = Conversation::from([Message::user("do it")]);
    for at in 0..100_000 {
        log.push(Message::assistant("").with_tool_calls([ToolCall::new(format!("c{at}"), "step", "{}")]));
        log.push(Message::tool(format!("c{at}"), "done"));
    }
    let (manager, asked) = recording();
    let plan = manager
        .build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(BUDGET)))
        .unwrap();
    assert!(asked.tokens.load(Relaxed) <= BUDGET + ONE_ITEM);
    assert_eq!(plan.included[0].id.as_str(), "m0");
    assert_eq!(plan.excluded.len(), 1);
}

#[test]
fn a_document_that_is_in_is_counted_once() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let record = seen.clone();
    let counter = TokenCounter::from_fn("recording", move |text| {
        record.lock().unwrap().push(text.to_owned());
        Ok::<_, std::fmt::Error>(text.len() as u64)
    });
    let manager = ContextWindowManager::new(Model::custom("test"), counter, Config::default()).unwrap();
    let log = Conversation::from([Message::user("Which?")]);
    let documents = (0..5).map(|at| (f64::from(at), format!("d{at}"), format!("text {at}")));
    let request =
        PlanRequest::new(&log).with_rag(documents).with_limits(RequestLimits::prompt_budget(BUDGET));
    let plan = manager.build_plan(&request).unwrap();
    assert_eq!(plan.sections[2].included, 5);
    let counted = |start: &str| seen.lock().unwrap().iter().filter(|text| text.starts_with(start)).count();
    assert_eq!(counted("<document "), 5);
    // A custom counter may not be additive, so the whole block is counted once more.
    assert_eq!(counted("<documents>\n<document "), 1);
}

/// A conversation that remembers its window counts each message once over any number of planned steps. A
/// cleared result counts its stub once more.
#[test]
fn sticky_window_counts_only_new_messages() {
    for results in [ToolResults::Keep, ToolResults::Clear] {
        let mut config = Config::default();
        config.conversation.tool_results = results;
        config.conversation.clear_at_least = 500;
        let (manager, asked) = recording_with(config);
        let mut log = Conversation::from([Message::user("t".repeat(80))]);
        let mut pushed = 80;
        let mut dearest = 0;
        for step in 0..400 {
            let before = asked.tokens.load(Relaxed);
            let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(BUDGET));
            let plan = manager.build_plan(&request).unwrap();
            dearest = dearest.max(asked.tokens.load(Relaxed) - before);
            let call = ToolCall::new(format!("c{step}"), "run", "{}");
            log.push_reply(&plan, Message::assistant("").with_tool_calls([call]), None);
            log.push(Message::tool(format!("c{step}"), "r".repeat(300)));
            pushed += 3 + 2 + 300;
        }
        let (calls, tokens) = (asked.calls.load(Relaxed), asked.tokens.load(Relaxed));
        eprintln!(
            "{results:?}: 400 plans, {calls} calls, {tokens} tokens counted of {pushed} pushed; at most {dearest} in one plan"
        );
        let stubs = if results == ToolResults::Keep { 0 } else { 400 * 80 };
        assert!(tokens <= pushed + stubs, "{tokens} of {pushed}");
        assert!(dearest <= BUDGET, "{dearest}");
    }
}

/// If the new messages are so large that clearing cannot help, the count stops at the budget.
#[test]
fn clearable_results_are_not_counted_beyond_the_budget() {
    let mut config = Config::default();
    config.conversation.tool_results = ToolResults::Clear;
    config.conversation.clear_at_least = 1_000_000_000;
    let (manager, asked) = recording_with(config);
    let mut log = Conversation::from([Message::user("Look at everything.")]);
    for step in 0..20_000 {
        log.push(Message::assistant("").with_tool_calls([ToolCall::new(format!("c{step}"), "run", "{}")]));
        log.push(Message::tool(format!("c{step}"), "r".repeat(120)));
    }
    let anchor = serde_json::json!({"window_start": "m0"});
    let anchor: context_window::plan::Anchor = serde_json::from_value(anchor).unwrap();
    let request =
        PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(BUDGET)).with_previous(anchor);
    manager.build_plan(&request).unwrap();
    let tokens = asked.tokens.load(Relaxed);
    assert!(tokens <= 4 * BUDGET, "{tokens} tokens counted at a budget of {BUDGET}");
}
