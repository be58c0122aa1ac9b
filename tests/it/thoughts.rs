//! Reasoning that its provider checks (rules K1 to K4): only reasoning that the provider would accept is
//! sent.

mod cases;
mod lives;
mod prefix_check;

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, PlanRequest, Priority, RagItem,
    RequestLimits, Tool, ToolCall, Ttl, WireFormat,
    analysis::Diff,
    compaction::CompactionRequest,
    config::{Placement, ReasoningPolicy},
    message::Reasoning,
    plan::{DropReason, NoticeCode},
    render,
};

/// Builds a manager for a model that checks reasoning, counted by characters so that every test build
/// supports it.
fn manager_for(model: &str, config: Config) -> ContextWindowManager {
    let mut model = Model::named(model).unwrap();
    model.tokenizer = Some("chars/4".into());
    ContextWindowManager::configured(model, config).unwrap()
}

fn manager() -> ContextWindowManager {
    manager_for("claude-fable-5-2", Config::default())
}

/// Creates reasoning signed with this text.
fn thought(seal: &str) -> Reasoning {
    Reasoning::signed(WireFormat::Anthropic, "I should look.", seal)
}

/// Adds a reply with reasoning and a call, and the call's result.
fn step(log: &mut Conversation, plan: &ContextPlan, number: usize, result: &str) {
    let id = format!("c{number}");
    let reply = Message::assistant("Looking.")
        .with_reasoning(thought(&format!("seal{number}")))
        .with_tool_calls([ToolCall::new(&*id, "look", "{}")]);
    log.push_reply(plan, reply, None);
    log.push(Message::tool(&*id, result));
}

/// Returns the signatures in a prompt, in order.
fn seals(plan: &ContextPlan) -> Vec<String> {
    let body = serde_json::to_value(render::anthropic(plan)).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    blocks.filter_map(|block| Some(block.get("signature")?.as_str()?.to_owned())).collect()
}

fn causes(plan: &ContextPlan) -> Vec<(String, String)> {
    plan.thoughts.lost.iter().map(|lost| (lost.id.to_string(), lost.why.to_string())).collect()
}

/// Creates a conversation of a question and three steps, with all of it in the prompt.
fn looked(manager: &ContextWindowManager, limits: RequestLimits) -> Conversation {
    let mut log = Conversation::from([Message::system("Be brief."), Message::user("Where is it?")]);
    for number in 0..3 {
        let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
        assert!(plan.thoughts.lost.is_empty(), "{:?}", plan.thoughts);
        step(&mut log, &plan, number, "Not here.");
    }
    log
}

#[test]
fn reasoning_is_sent_back_if_there_is_room() {
    let manager = manager();
    let mut log = looked(&manager, RequestLimits::new());
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((seals(&plan).len(), plan.thoughts.sent), (3, 3));
    log.push_reply(&plan, Message::assistant("In the shed.").with_reasoning(thought("seal3")), None);
    log.push(Message::user("Thanks. And the key?"));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(seals(&plan), ["seal0", "seal1", "seal2", "seal3"], "also those of the turn before");
    assert!(plan.notices.iter().all(|notice| notice.code != NoticeCode::ReasoningWithheld));
}

/// The same conversation with one change before the reasoning: no reasoning is sent, and a notice names it.
#[test]
fn changed_instructions_withhold_all_reasoning() {
    let manager = manager();
    let log = looked(&manager, RequestLimits::new());
    let lost = |log: &Conversation, tools: &[Tool]| {
        let plan = manager.build_plan(&PlanRequest::new(log).with_tools(tools)).unwrap();
        assert_eq!((seals(&plan).len(), plan.thoughts.sent, plan.thoughts.lost.len()), (0, 0, 3));
        let notices = plan.notices.iter().filter(|notice| notice.code == NoticeCode::ReasoningWithheld);
        let notices: Vec<&context_window::plan::Notice> = notices.collect();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert_eq!(notices[0].ids.len(), 3);
        assert_eq!(notices[0].rule(), "K1");
        causes(&plan)[0].1.clone()
    };
    let mut changed = log.clone();
    changed.pin(context_window::PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::Unlimited));
    assert_eq!(lost(&changed, &[]), "the prompt before it changed at `m1` (new item inserted before it)");
    let tools = [Tool::new("look", "Looks.", "{}")];
    assert_eq!(lost(&log, &tools), "the prompt before it changed at `m0` (new item inserted before it)");
}

/// Regression test: after a cut inside the live turn, the reasoning behind it was sent nevertheless.
#[test]
fn window_cut_in_a_running_loop_drops_later_reasoning() {
    let manager = manager();
    let mut log = Conversation::new();
    for at in 0..30 {
        log.push(Message::user(format!("Question {at}: {}", "word ".repeat(30))));
        log.push(Message::assistant(format!("Answer {at}: {}", "word ".repeat(30))));
    }
    log.push(Message::user("Where is it?"));
    let limits = RequestLimits::prompt_budget(2_600);
    let (mut cuts, mut kept) = (0, 0);
    for number in 0..12 {
        let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
        let cut = plan.notices.iter().any(|notice| notice.code == NoticeCode::WindowCut);
        cuts += usize::from(cut);
        kept += seals(&plan).len();
        for lost in &plan.thoughts.lost {
            assert!(
                matches!(lost.why, DropReason::PrefixChanged { .. } | DropReason::ChainBroken),
                "{lost:?}"
            );
        }
        if cut {
            assert!(seals(&plan).is_empty(), "all of them were made behind what was cut");
        }
        step(&mut log, &plan, number, &"line ".repeat(200));
    }
    assert!(cuts > 0 && kept > 0, "{cuts} cuts, {kept} kept");
}

/// Reasoning that was withheld when other reasoning was made is not sent before it later (rule K2).
#[test]
fn omitted_reasoning_stays_out() {
    let manager = manager();
    let mut log = looked(&manager, RequestLimits::new());
    log.pin(context_window::PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::Unlimited));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(seals(&plan).is_empty());
    step(&mut log, &plan, 3, "Not here.");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(seals(&plan), ["seal3"], "made behind the prompt as it is now");
    // After the note is gone the first three would be valid again, but the fourth is not. The newest valid
    // reasoning is sent with the unbroken run before it.
    log.unpin("tone");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(seals(&plan), ["seal0", "seal1", "seal2"]);
}

#[test]
fn compaction_withholds_earlier_reasoning() {
    let mut config = Config::default();
    config.compaction.retain.messages = Some(4);
    let manager = manager_for("claude-fable-5-2", config);
    let mut log = looked(&manager, RequestLimits::new());
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    log.push_reply(&plan, Message::assistant("In the shed.").with_reasoning(thought("seal3")), None);
    log.push(Message::user("And the key?"));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    step(&mut log, &plan, 4, "Here.");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    log.push_reply(&plan, Message::assistant("In the box.").with_reasoning(thought("seal5")), None);
    log.push(Message::user("Good. And the lamp?"));
    let job: CompactionRequest = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "The spade is in the shed.").unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(seals(&plan).is_empty(), "{:?}", plan.thoughts);
    assert!(causes(&plan).iter().all(|(_, why)| why.contains("changed at")), "{:?}", causes(&plan));
    step(&mut log, &plan, 6, "Here.");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(seals(&plan), ["seal6"], "what comes after the compaction is kept again");
}

/// A model reads the reasoning of some other models. Switching back to the first one restores its reasoning
/// (rule K3).
#[test]
fn another_model_gets_the_reasoning_it_can_read() {
    let first = manager();
    let log = looked(&first, RequestLimits::new());
    for (model, sent) in [
        ("claude-mythos-5-2", 3),
        ("claude-fable-5-1", 0),
        ("claude-opus-5-5", 0),
        ("claude-fable-5-2", 3),
        // A model newer than the registry is assumed to check, and to read only its own reasoning.
        ("claude-fable-6", 0),
    ] {
        let mut target = Model::named(model).unwrap().with_wire_format(WireFormat::Anthropic);
        target.tokenizer = Some("chars/4".into());
        let manager = ContextWindowManager::configured(target, Config::default()).unwrap();
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        assert_eq!(plan.thoughts.sent, sent, "{model}: {:?}", plan.thoughts);
        if sent == 0 {
            assert_eq!(causes(&plan)[0].1, "the model does not read the reasoning of claude-fable-5-2");
        }
    }
    // A model that does not check accepts all reasoning.
    let plan = manager_for("claude-opus-5", Config::default()).build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((plan.thoughts.sent, plan.thoughts.lost.len()), (3, 0));
}

/// Fable 5.1 reads the reasoning of Opus 5.5, but not the other way round. Opus reasoned without Fable's
/// reasoning before it, so that is not sent there again (rule K2).
#[test]
fn reasoning_is_not_reinserted_before_reasoning_made_without_it() {
    let fable = manager_for("claude-fable-5-1", Config::default());
    let opus = manager_for("claude-opus-5-5", Config::default());
    let mut log = looked(&fable, RequestLimits::new());
    let plan = opus.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(seals(&plan).is_empty());
    step(&mut log, &plan, 3, "Not here.");
    let plan = fable.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(seals(&plan), ["seal3"]);
    assert!(plan.thoughts.lost.iter().all(|lost| lost.why == DropReason::ChainBroken), "{:?}", plan.thoughts);
}

/// The second reply names no account, so its reasoning may go to any. The reasoning before it stays with its
/// own (rule K8), although the second reply was made after it.
#[test]
fn bound_reasoning_is_not_sent_before_unbound_reasoning() {
    let manager = manager_for("claude-sonnet-5-5", Config::default());
    let mut log = Conversation::from([Message::user("Where is it?")]);
    let plan = manager.build_plan(&PlanRequest::new(&log).with_account("a")).unwrap();
    step(&mut log, &plan, 0, "Not here.");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(seals(&plan), ["seal0"]);
    step(&mut log, &plan, 1, "Not here.");
    let sent = |account| seals(&manager.build_plan(&PlanRequest::new(&log).with_account(account)).unwrap());
    assert_eq!(sent("a"), ["seal0", "seal1"]);
    assert_eq!(sent("b"), ["seal1"]);
}

/// A document that joins those of the question would change the prompt before its reasoning (rule S5).
#[test]
fn no_document_joins_those_of_the_question() {
    let mut config = Config::default();
    config.rag.placement = Placement::BeforeQuestion;
    let manager = manager_for("claude-fable-5-2", config);
    let mut log = Conversation::from([Message::user("Where is it?")]);
    let (garden, house) = (RagItem::new("garden", 0.5, "A pond."), RagItem::new("house", 0.9, "A roof."));
    let plan = manager.build_plan(&PlanRequest::new(&log).with_rag([garden.clone()])).unwrap();
    step(&mut log, &plan, 0, "Not here.");
    let plan = manager.build_plan(&PlanRequest::new(&log).with_rag([garden, house])).unwrap();
    let ids: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["garden", "m0", "m1", "m2"]);
    assert_eq!(seals(&plan), ["seal0"]);
}

#[test]
fn reasoning_option_selects_the_policy() {
    let policy = |reasoning: ReasoningPolicy| {
        let mut config = Config::default();
        config.conversation.reasoning = reasoning;
        manager_for("claude-fable-5-2", config)
    };
    let mut log = looked(&policy(ReasoningPolicy::Keep), RequestLimits::new());
    let plan = policy(ReasoningPolicy::Drop).build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((plan.thoughts.sent, plan.thoughts.lost.len()), (0, 3));
    assert!(
        plan.notices.iter().all(|notice| notice.code != NoticeCode::ReasoningWithheld),
        "it was asked for"
    );
    log.pin(context_window::PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::Unlimited));
    let plan = policy(ReasoningPolicy::Provider).build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((plan.thoughts.sent, plan.thoughts.lost.len()), (3, 3), "sent, and the provider drops them");
    let header = plan.thoughts.switch_header();
    assert_eq!(header, Some(("anthropic-beta", "thinking-binding-controls-2026-08-01")));
    let thinking: serde_json::Value = serde_json::from_str(plan.thoughts.switch_thinking().unwrap()).unwrap();
    assert_eq!(thinking["block_binding"]["prefix_mismatch_behavior"], "drop_block");
    let plan = policy(ReasoningPolicy::Keep).build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!((plan.thoughts.sent, plan.thoughts.lost.len()), (0, 3));
}

/// A session from another tool: its reasoning is assumed to be made after everything before it.
#[test]
fn reasoning_of_unknown_origin_is_sent_after_a_complete_history() {
    let manager = manager();
    let call = |number: usize| ToolCall::new(format!("c{number}"), "look", "{}");
    let mut log = Conversation::from([Message::user("Where is it?")]);
    for number in 0..3 {
        let reply = Message::assistant("Looking.").with_reasoning(thought(&format!("seal{number}")));
        log.push(reply.with_tool_calls([call(number)]));
        log.push(Message::tool(format!("c{number}"), "Not here. ".repeat(40)));
    }
    let plan = |log: &Conversation, budget: u64| {
        let limits = RequestLimits::prompt_budget(budget);
        manager.build_plan(&PlanRequest::new(log).with_limits(limits)).unwrap()
    };
    assert_eq!(seals(&plan(&log, 5_000)).len(), 3);
    log.pin_message("m0", Priority::High).unwrap();
    assert_eq!(seals(&plan(&log, 5_000)).len(), 3, "a pinned message stays where it is");
    let cut = plan(&log, 300);
    assert!(cut.excluded.iter().any(|row| row.id == "m1") && cut.overflow.is_none());
    assert!(seals(&cut).is_empty(), "{:?}", cut.thoughts);
}

/// The difference of two plans includes the reasoning lost by the change.
#[test]
fn prefix_difference_lists_the_lost_reasoning() {
    let manager = manager();
    let log = looked(&manager, RequestLimits::new());
    let (before, after) = (PlanRequest::new(&log), PlanRequest::new(&log).with_focus("Sheds."));
    let diff = Diff::between(&manager.explainer(&before), &manager.explainer(&after)).unwrap();
    let said: Vec<(String, String)> = diff
        .thoughts
        .iter()
        .map(|change| (change.before().to_string(), change.after().to_string()))
        .collect();
    let lost = "lost: the prompt before it changed at `m1` (new item inserted before it)".to_owned();
    assert_eq!(said, vec![("sent".to_owned(), lost); 3]);
    let none = Diff::between(&manager.explainer(&before), &manager.explainer(&before)).unwrap();
    assert!(none.thoughts.is_empty() && none.changes.is_empty());
}
