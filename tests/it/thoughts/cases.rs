//! Twelve ways in which clients lost the reasoning of their model, from public issue threads: the outcome
//! there and in this crate. The provider is the simulated one of `lives`, which refuses invalid reasoning.

use super::{
    looked, manager, manager_for,
    prefix_check::{Rules, Server},
    seals, thought,
};
use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, PlanRequest, RequestLimits, Tool,
    ToolCall, Usage, WireFormat,
    compaction::CompactionRequest,
    config::ReasoningPolicy,
    config::ToolResults,
    message::Reasoning,
    render,
    usage::{ContextEvent, ReplyReport},
};
use serde_json::{Value, json};

/// A conversation and its simulated provider.
struct Talk {
    manager: ContextWindowManager,
    server: Server,
    log: Conversation,
    tools: Vec<Tool>,
    replies: usize,
}

impl Talk {
    fn new(manager: ContextWindowManager, question: &str) -> Self {
        let log = Conversation::from([Message::user(question)]);
        Self { manager, server: Server::new(Rules::Anthropic), log, tools: Vec::new(), replies: 0 }
    }

    /// Plans, and has the provider check the body.
    fn plan(&self, request: impl FnOnce(PlanRequest<'_>) -> PlanRequest<'_>) -> (ContextPlan, Value) {
        let plan =
            self.manager.build_plan(&request(PlanRequest::new(&self.log).with_tools(&self.tools))).unwrap();
        let body = serde_json::to_value(render::anthropic(&plan)).unwrap();
        let refused = self.server.check(&body);
        assert!(refused.is_empty(), "{refused:?} in {body:#}");
        (plan, body)
    }

    /// Adds a step of a tool loop with this reasoning.
    fn step_with(&mut self, thoughts: &[Reasoning], result: Option<&str>) {
        self.step_of(|request| request, thoughts, result);
    }

    fn step_of(
        &mut self,
        request: impl FnOnce(PlanRequest<'_>) -> PlanRequest<'_>,
        thoughts: &[Reasoning],
        result: Option<&str>,
    ) {
        let (plan, body) = self.plan(request);
        let made: Vec<(String, Vec<Value>)> =
            thoughts.iter().filter_map(|thought| Some((thought.signature.clone()?, Vec::new()))).collect();
        self.server.made(&body, &made);
        let id = format!("c{}", self.replies);
        self.replies += 1;
        let reply = Message::assistant("Looking.").with_tool_calls([ToolCall::new(&*id, "look", "{}")]);
        let reply = thoughts.iter().cloned().fold(reply, Message::with_reasoning);
        self.log.push_reply(&plan, reply, None);
        if let Some(result) = result {
            self.log.push(Message::tool(&*id, result));
        }
    }

    fn sent(&self) -> Vec<String> {
        seals(&self.plan(|request| request).0)
    }
}

/// openclaw#136782: a context that changes with every request came before the reasoning. It was refused, and
/// then all reasoning was deleted. Here only the reasoning invalidated by the change is withheld, nothing is
/// deleted, and without the state all of it is valid again.
#[test]
fn a_state_that_changes_every_step() {
    let mut talk = Talk::new(manager(), "Where is it?");
    for at in 0..3 {
        let clock = format!("It is {at} o'clock.");
        talk.step_of(
            |request| request.with_state("clock", &*clock),
            &[thought(&format!("a{at}"))],
            Some("Not here."),
        );
    }
    let (plan, _) = talk.plan(|request| request.with_state("clock", "It is late."));
    assert_eq!(plan.thoughts.sent + plan.thoughts.lost.len() as u64, 3);
    let kept = talk.log.messages().iter().filter(|message| !message.reasoning().is_empty()).count();
    assert_eq!(kept, 3, "the log has them all");
}

/// pi#9391: after a compaction the kept turns were sent with earlier reasoning, and 15 blocks were dropped
/// with each request for ever. Here the later plans send none of them, and reasoning made after the
/// compaction stays.
#[test]
fn a_compaction_that_keeps_a_tail() {
    let mut config = Config::default();
    config.compaction.retain.messages = Some(4);
    let mut talk = Talk::new(manager_for("claude-fable-5-2", config), "Where is it?");
    for at in 0..6 {
        talk.step_with(&[thought(&format!("a{at}"))], Some("Not here."));
    }
    let (plan, _) = talk.plan(|request| request);
    talk.log.push_reply(&plan, Message::assistant("Nowhere."), None);
    talk.log.push(Message::user("Look again."));
    talk.step_with(&[thought("b")], Some("Here."));
    let (plan, _) = talk.plan(|request| request);
    talk.log.push_reply(&plan, Message::assistant("Here."), None);
    talk.log.push(Message::user("Good."));
    let job: CompactionRequest =
        talk.manager.compactor().now(&PlanRequest::like_last(&talk.log)).unwrap().unwrap();
    talk.manager.compactor().apply_summary(&mut talk.log, &job, "It is here.").unwrap();
    assert!(talk.sent().is_empty());
    talk.step_with(&[thought("c")], Some("Yes."));
    assert_eq!(talk.sent(), ["c"]);
    talk.step_with(&[thought("d")], Some("Yes."));
    assert_eq!(talk.sent(), ["c", "d"]);
}

/// KiroCrew#11513: a turn reasons, calls and reasons again. One of its blocks was lost on the way back, and
/// the next one refused. Here all blocks of a reply are sent back in order.
#[test]
fn several_blocks_in_one_turn() {
    let mut talk = Talk::new(manager(), "Where is it?");
    talk.step_with(&[thought("a"), thought("b")], Some("Not here."));
    talk.step_with(&[thought("c")], Some("Not here."));
    talk.step_with(&[], Some("Not here."));
    talk.step_with(&[thought("d"), thought("e"), thought("f")], Some("Here."));
    assert_eq!(talk.sent(), ["a", "b", "c", "d", "e", "f"]);
}

/// opencode#48637 and pydantic-ai#7984: a system prompt or tools that differ from turn to turn were refused.
/// Four cases were tried live: unchanged 200, another system text 400, an additional tool 400, without
/// reasoning 200.
#[test]
fn changed_head_withholds_reasoning_as_in_live_trials() {
    let mut talk = Talk::new(manager(), "Where is it?");
    for at in 0..3 {
        talk.step_with(&[thought(&format!("a{at}"))], Some("Not here."));
    }
    assert_eq!(talk.sent().len(), 3, "unchanged");
    talk.tools.push(Tool::new("look", "Looks.", "{}"));
    assert!(talk.sent().is_empty(), "a tool more");
    talk.tools.clear();
    let (plan, _) = talk.plan(|request| request.with_focus("Never guess."));
    assert!(seals(&plan).is_empty(), "another system text");
    // An added system text is sent at the end if the model supports it.
    let mut other = talk.log.clone();
    other.push_system("rules", "Never guess.");
    std::mem::swap(&mut other, &mut talk.log);
    assert_eq!(talk.sent().len(), 3, "a system text more");
    std::mem::swap(&mut other, &mut talk.log);
    assert_eq!(talk.sent().len(), 3, "and back");
    let mut config = Config::default();
    config.conversation.reasoning = ReasoningPolicy::Drop;
    talk.manager = manager_for("claude-fable-5-2", config);
    assert!(talk.sent().is_empty(), "without thoughts");
}

/// hermes-agent#106426: orphans were removed and results invented, differently for each request. Here a
/// result that comes after its placeholder was sent is an ordinary change.
#[test]
fn a_repair_that_touches_the_past() {
    let mut talk = Talk::new(manager(), "Where is it?");
    talk.step_with(&[thought("a")], None);
    talk.log.push(Message::user("Never mind. And the key?"));
    talk.step_with(&[thought("b")], Some("Not here."));
    let before = talk.sent();
    assert_eq!(before, ["a", "b"]);
    talk.log.push(Message::tool("c0", "It was in the shed."));
    assert_eq!(talk.sent(), ["a"], "what stands before the result");
}

/// litellm#41361: signed reasoning with an empty text was treated as empty and left out. CLIProxyAPI#5422: a
/// signature of an unknown form was dropped without a notice. oh-my-openagent#2775: reasoning without a
/// signature was sent and refused. Here the signature decides, and its content is never read.
#[test]
fn signature_decides_if_reasoning_is_sent() {
    let mut talk = Talk::new(manager(), "Where is it?");
    let empty = Reasoning::signed(WireFormat::Anthropic, "", "v9.~not/base64~");
    talk.step_with(&[empty], Some("Not here."));
    assert_eq!(talk.sent(), ["v9.~not/base64~"]);
    let (plan, _) = talk.plan(|request| request);
    let call = ToolCall::new("u", "look", "{}");
    talk.log.push_reply(
        &plan,
        Message::assistant("Looking.").with_reasoning("I have no signature.").with_tool_calls([call]),
        None,
    );
    talk.log.push(Message::tool("u", "Not here."));
    assert_eq!(talk.sent(), ["v9.~not/base64~"]);
}

/// goose#11800: old pairs of calls and results were summarised while the loop ran. Here clearing results in a
/// running loop is a change, and the reasoning behind it is not sent.
#[test]
fn results_that_are_cleared_in_a_running_loop() {
    let mut config = Config::default();
    config.conversation.tool_results = ToolResults::Clear;
    config.conversation.clear_at_least = 100;
    config.conversation.keep_results = 1;
    let mut talk = Talk::new(manager_for("claude-fable-5-2", config), "Where is it?");
    let (mut cleared, mut sent) = (false, 0);
    for at in 0..10 {
        let limits = RequestLimits::prompt_budget(1_100);
        let (plan, _) = talk.plan(|request| request.with_limits(limits));
        cleared |= plan.cleared_before.is_some();
        sent += seals(&plan).len();
        let words = "line ".repeat(90);
        talk.step_of(|request| request.with_limits(limits), &[thought(&format!("a{at}"))], Some(&words));
    }
    assert!(cleared && sent > 0, "{cleared} {sent}");
}

/// sub2api#6677: the field that asks the provider to drop invalid reasoning was sent without its header and
/// refused. Here the plan states both, and only for providers that support them.
#[test]
fn drop_option_is_sent_with_its_header() {
    let mut config = Config::default();
    config.conversation.reasoning = ReasoningPolicy::Provider;
    let log = looked(&manager(), RequestLimits::new());
    for (model, says) in [("claude-fable-5-2", true), ("claude-opus-5", false), ("gpt-6.2-astra", false)] {
        let plan = manager_for(model, config.clone()).build_plan(&PlanRequest::new(&log)).unwrap();
        assert_eq!(plan.thoughts.switch_header().is_some_and(|(name, _)| !name.is_empty()), says, "{model}");
        let thinking = plan.thoughts.switch_thinking();
        assert_eq!(thinking.is_some_and(|thinking| thinking.contains("block_binding")), says, "{model}");
    }
    let plan = manager().build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.thoughts.switch_header().is_none(), "it is not asked for");
}

/// atomic#2809: a conversation that switched models and back lost its reasoning for good. Here it stays in
/// the log and is sent again to a model that can read it.
#[test]
fn switching_models_and_back_restores_reasoning() {
    let log = looked(&manager(), RequestLimits::new());
    let sent = |model: &str| {
        let plan = manager_for(model, Config::default()).build_plan(&PlanRequest::new(&log)).unwrap();
        seals(&plan)
    };
    assert_eq!(sent("claude-fable-5-2").len(), 3);
    assert!(sent("claude-sonnet-5-5").is_empty());
    assert_eq!(sent("claude-fable-5-2").len(), 3);
}

/// Reasoning that the provider reports as dropped is not sent again, and the application gets an event. A
/// drop that the plan foresaw causes no event (rule K7).
#[test]
fn reasoning_dropped_by_the_provider_stays_out() {
    let mut talk = Talk::new(manager(), "Where is it?");
    for at in 0..3 {
        talk.step_with(&[thought(&format!("a{at}"))], Some("Not here."));
    }
    let (plan, body) = talk.plan(|request| request);
    assert_eq!(seals(&plan), ["a0", "a1", "a2"]);
    let path = |seal: &str| {
        let messages = body["messages"].as_array().unwrap().iter().enumerate();
        let mut blocks = messages.flat_map(|(at, message)| {
            let content = message["content"].as_array().cloned().unwrap_or_default().into_iter().enumerate();
            content.map(move |(nth, block)| (format!("messages.{at}.content.{nth}"), block))
        });
        blocks.find(|(_, block)| block["signature"] == seal).unwrap().0
    };
    // The second block and all after it were dropped. The entry of an unknown type is ignored.
    let report = ReplyReport::from_json(&json!({
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 50, "output_tokens": 5, "iterations": [
            {"type": "compaction", "input_tokens": 900, "output_tokens": 90},
            {"type": "message", "input_tokens": 40, "output_tokens": 5},
        ]},
        "context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 7, "cleared_tool_uses": 1}]},
        "input_transformations": [
            {"type": "thinking_mismatch_allowed", "path": path("a0"), "reason": "prefix_binding_mismatch"},
            {"type": "thinking_dropped", "path": path("a1"), "reason": "prefix_binding_mismatch"},
            {"type": "thinking_dropped", "path": path("a2"), "reason": "prefix_binding_mismatch"},
            {"type": "unheard_of", "path": "messages.0.content.0"},
        ],
    }));
    assert_eq!(report.usage.unwrap().context_size(), 45, "the last message says how full the window is");
    let reply = Message::assistant("In the shed.").with_reasoning(thought("b"));
    let committed = talk.log.push_reply(&plan, reply, report);
    let told: Vec<(bool, usize)> = committed
        .events
        .iter()
        .filter_map(|event| match event {
            ContextEvent::ReasoningDropped { dropped, ids, .. } => Some((*dropped, ids.len())),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(false, 1), (true, 1), (true, 1)]);
    assert!(
        committed.events.contains(&ContextEvent::ClearedByProvider {
            edit: "clear_tool_uses_20250919".into(),
            tokens: 7
        })
    );
    talk.log.push(Message::user("And the key?"));
    let again = Conversation::from_events(talk.log.events()).unwrap();
    for log in [&talk.log, &again] {
        let plan = talk.manager.build_plan(&PlanRequest::new(log)).unwrap();
        assert_eq!(seals(&plan), ["a0", "b"], "b was made behind a0 alone");
        let why: Vec<String> = plan.thoughts.lost.iter().map(|lost| lost.why.to_string()).collect();
        assert_eq!(why, vec!["the provider dropped it: prefix_binding_mismatch"; 2]);
    }
    // OpenAI names items. Its removals were foreseen under the option that leaves them to the provider.
    let cost = Usage::from_compaction_json(
        &json!({"iterations": [{"type": "compaction", "input_tokens": 900, "output_tokens": 90}]}),
    );
    assert_eq!(cost.unwrap().context_size(), 990);
    assert_eq!(
        Usage::from_json(
            &json!({"input_tokens": 0, "iterations": [{"type": "compaction", "input_tokens": 900}]})
        ),
        None
    );
}

/// Reasoning sent with the provider's own drop option is dropped as the plan predicts, without an event (rule
/// K7).
#[test]
fn foreseen_drop_is_no_event() {
    let mut config = Config::default();
    config.conversation.reasoning = ReasoningPolicy::Provider;
    let mut talk = Talk::new(manager_for("claude-fable-5-2", config), "Where is it?");
    talk.log = looked(&manager(), RequestLimits::new());
    let plan = talk.manager.build_plan(&PlanRequest::new(&talk.log).with_focus("Sheds.")).unwrap();
    assert_eq!((plan.thoughts.lost.len(), seals(&plan).len()), (3, 3));
    let report = ReplyReport::from_json(&json!({"input_transformations": [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"},
    ]}));
    let committed = talk.log.push_reply(&plan, Message::assistant("Here."), report);
    assert!(committed.events.is_empty(), "{:?}", committed.events);
}

fn request(log: &Conversation) -> PlanRequest<'_> {
    PlanRequest::new(log).with_account("a").with_end_user("u")
}

/// Reasoning bound to an account or an end user is not sent by another one; other models' reasoning is not
/// withheld (rule K8).
#[test]
fn bound_reasoning_stays_with_its_sender() {
    for (model, account, end_user) in [
        ("claude-sonnet-5-5", false, true),
        ("claude-fable-5-2", true, true),
        ("gpt-6.2-astra", false, false),
    ] {
        let manager = manager_for(model, Config::default());
        let mut log = Conversation::from([Message::user("Where is it?")]);
        let plan = manager.build_plan(&request(&log)).unwrap();
        let format = plan.wire_format;
        let reasoning = Reasoning::signed(format, "", "sealed").with_id("rs_1");
        log.push_reply(&plan, Message::assistant("Here.").with_reasoning(reasoning), None);
        log.push(Message::user("Thanks."));
        let sent = |request: PlanRequest<'_>| manager.build_plan(&request).unwrap().thoughts.sent == 1;
        assert!(sent(request(&log)) && sent(PlanRequest::new(&log)), "{model}");
        assert_eq!(sent(request(&log).with_account("b")), account, "{model}");
        assert_eq!(sent(request(&log).with_end_user("v")), end_user, "{model}");
        let plan = manager.build_plan(&request(&log).with_account("b")).unwrap();
        if !account {
            assert_eq!(plan.thoughts.lost[0].why.to_string(), "it is bound to another account or end user");
        }
        let json = serde_json::to_string(&plan.anchor()).unwrap();
        assert!(!json.contains("\"b\"") && json.contains("sender"), "kept as a hash: {json}");
    }
}

/// If reasoning is hidden (an empty text), its size is known only from the report of its reply.
#[test]
fn hidden_reasoning_has_the_reported_size() {
    let manager = manager();
    let weight = |report: Value| {
        let mut log = Conversation::from([Message::user("Where is it?")]);
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        let reply =
            Message::assistant("Here.").with_reasoning(Reasoning::signed(WireFormat::Anthropic, "", "seal"));
        log.push_reply(&plan, reply, ReplyReport::from_json(&report));
        log.push(Message::user("Thanks."));
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        let row = plan.included.iter().find(|row| row.id == "m1").unwrap();
        row.token_estimate.tokens
    };
    let usage = |thinking: u64| json!({"usage": {"input_tokens": 9, "output_tokens": 700, "output_tokens_details": {"thinking_tokens": thinking}}});
    assert_eq!(weight(usage(600)) - weight(usage(100)), 500);
    assert!(weight(usage(600)) > weight(json!({})) + 500);
}

/// The twelve cases as data: the change, the outcome there and here, and the tests that check it. The guide's
/// table equals them.
#[test]
fn table_of_cases_matches_the_tests_and_the_guide() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    assert_eq!(cases.len(), 12);
    let (own, guide) = (include_str!("cases.rs"), include_str!("../../../docs/guide/caching.md"));
    for case in &cases {
        let text = |key: &str| case[key].as_str().unwrap();
        let row =
            format!("| {} ({}) | {} | {} |", text("changed"), text("threads"), text("there"), text("here"));
        assert!(guide.contains(&row), "docs/guide/caching.md has no row: {row}");
        for test in case["tests"].as_array().unwrap() {
            let name = format!("\n#[test]\nfn {}()", test.as_str().unwrap());
            assert!(own.contains(&name), "there is no test {test}");
        }
    }
}
