//! Compactions by the provider (rule C11): they are requested, read back, and sent again unchanged.

use context_window::{
    Config, ContextWindowManager, Conversation, ErrorKind, Message, Model, PlanRequest, ToolCall, WireFormat,
    compaction::CompactionRequest, conversation::ProviderSummary, message::Reasoning, plan::NoticeCode,
    render,
};
use context_window_formats::{Session, SessionFile};
use serde_json::{Value, json};

fn manager(model: &str) -> ContextWindowManager {
    let mut config = Config::default();
    config.compaction.retain.messages = Some(2);
    config.rag.placement = context_window::config::Placement::BeforeQuestion;
    let mut model = Model::named(model).unwrap();
    model.tokenizer = Some("chars/4".into());
    ContextWindowManager::configured(model, config).unwrap()
}

fn talk() -> Conversation {
    let mut log = Conversation::from([Message::system("Be brief.")]);
    for turn in 0..12 {
        log.push(Message::user(format!("Question {turn}: {}", "where is it? ".repeat(20))));
        log.push(Message::assistant(format!("Answer {turn}: {}", "in the shed. ".repeat(20))));
    }
    log.push(Message::user("Thanks. And the key?"));
    log
}

fn anthropic(log: &Conversation) -> Value {
    let plan = manager("claude-opus-5-5").build_plan(&PlanRequest::new(log)).unwrap();
    serde_json::to_value(render::anthropic(&plan)).unwrap()
}

fn job(manager: &ContextWindowManager, log: &Conversation) -> CompactionRequest {
    manager.compactor().now(&PlanRequest::like_last(log)).unwrap().unwrap()
}

fn response() -> Value {
    json!({"stop_reason": "compaction", "content": [
        {"type": "compaction", "content": "It was in the shed.", "signature": "c2Vj", "tool_changes": []}]})
}

#[test]
fn provider_compaction_is_requested_in_the_body_and_then_leads_the_prompt() {
    let manager = manager("claude-opus-5-5");
    let mut log = talk();
    let job = job(&manager, &log);
    let request = job.on_demand().unwrap();
    assert_eq!(request.header, Some(("anthropic-beta".into(), "compact-2026-09-04".into())));
    assert_eq!(json!(request.body())["compaction"], json!({"type": "summarize"}));
    // The request has the system text and messages of earlier prompts up to the cut, and no added
    // instruction.
    let (ordinary, asked) = (anthropic(&log), json!(request.body()));
    assert_eq!(asked["system"], ordinary["system"]);
    let messages = asked["messages"].as_array().unwrap();
    let archived = usize::try_from(job.messages_archived()).unwrap();
    assert_eq!(messages.len(), archived);
    assert_eq!(messages[..], ordinary["messages"].as_array().unwrap()[..archived]);

    let made = ProviderSummary::from_json("anthropic", &response()).unwrap();
    manager.compactor().apply_provider_summary(&mut log, &job, made).unwrap();
    let body = anthropic(&log);
    assert_eq!(body["messages"][0], json!({"role": "assistant", "content": [response()["content"][0]]}));
    assert_eq!(body["messages"][1]["role"], "user");
    let after = body["messages"].as_array().unwrap();
    assert_eq!(after.len() + archived, ordinary["messages"].as_array().unwrap().len() + 1);
    // The log keeps the archived messages, and a store gives the same conversation.
    assert_eq!(log.messages().len(), 26);
    let again = Conversation::from_events(log.events()).unwrap();
    assert_eq!(anthropic(&again), body);
    // A second compaction covers the first: the block is sent as a message, and the reply holds one block.
    for turn in 0..12 {
        log.push(Message::assistant(format!("Answer {turn}: {}", "on the hook. ".repeat(20))));
        log.push(Message::user(format!("Question {turn}: {}", "and then? ".repeat(20))));
    }
    let second = super::by_provider::job(&manager, &log);
    assert_eq!(
        json!(second.on_demand().unwrap().body())["messages"][0]["content"][0],
        response()["content"][0]
    );
    let made = ProviderSummary::from_json("anthropic", &response()).unwrap();
    manager.compactor().apply_provider_summary(&mut log, &second, made).unwrap();
    let text = anthropic(&log).to_string();
    assert_eq!(text.matches("\"type\":\"compaction\"").count(), 1, "{text}");
}

#[test]
fn another_provider_gets_a_text_and_a_notice() {
    let mut log = talk();
    let opus = manager("claude-opus-5-5");
    let made = ProviderSummary::from_json("anthropic", &response()).unwrap();
    let job = job(&opus, &log);
    opus.compactor().apply_provider_summary(&mut log, &job, made).unwrap();
    let plan = manager("gpt-6.2-astra").build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.notices.iter().any(|notice| notice.code == NoticeCode::ForeignCompaction));
    let body = serde_json::to_value(render::openai_responses(&plan)).unwrap().to_string();
    assert!(body.contains("It was in the shed.") && !body.contains("c2Vj"), "{body}");
    let plan = opus.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.notices.is_empty(), "{:?}", plan.notices);
}

#[test]
fn openai_returns_the_whole_next_window() {
    let manager = manager("gpt-6.2-astra");
    let mut log = talk();
    let job = job(&manager, &log);
    let request = job.on_demand().unwrap();
    assert_eq!((request.path.as_str(), request.header), ("/v1/responses/compact", None));
    let items = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where is it?"}]},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"},
    ]);
    let response = json!({"object": "response.compaction", "output": items});
    let made = ProviderSummary::from_json("openai", &response).unwrap();
    manager.compactor().apply_provider_summary(&mut log, &job, made).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let body = serde_json::to_value(render::openai_responses(&plan)).unwrap();
    let input = body["input"].as_array().unwrap();
    let at = input.iter().position(|item| *item == items[0]).unwrap();
    assert_eq!(input[at + 1], items[1]);
    // Another provider with the same wire format cannot read it either.
    let mut other = Model::named("gpt-6.2-astra").unwrap();
    (other.provider, other.tokenizer) = ("xai".into(), Some("chars/4".into()));
    let other = ContextWindowManager::configured(other, Config::default()).unwrap();
    let plan = other.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(!serde_json::to_value(render::openai_responses(&plan)).unwrap().to_string().contains("c2VjcmV0"));
    // A request to xAI has the same form.
    let mut grok = Model::named("grok-4.7").unwrap().with_wire_format(WireFormat::OpenAiResponses);
    grok.tokenizer = Some("chars/4".into());
    let mut config = Config::default();
    config.compaction.retain.messages = Some(2);
    let grok = ContextWindowManager::configured(grok, config).unwrap();
    let request = super::by_provider::job(&grok, &talk()).on_demand().unwrap();
    assert_eq!((request.path.as_str(), request.header.clone()), ("/v1/responses/compact", None));
    assert!(json!(request.body())["input"].as_array().is_some_and(|input| input.len() > 2));
    // Other providers get a digest of the archived messages.
    let plan = super::by_provider::manager("claude-opus-5-5").build_plan(&PlanRequest::new(&log)).unwrap();
    let body = serde_json::to_value(render::anthropic(&plan)).unwrap().to_string();
    assert!(body.contains("Question 3") && !body.contains("c2VjcmV0"), "{body}");
}

#[test]
fn unsupported_or_invalid_provider_compaction_changes_nothing() {
    let mut log = talk();
    // Another provider does not support such a request.
    let error = job(&manager("gpt-4o"), &log).on_demand().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("gpt-4o"), "{error}");
    // A reply without a compaction, and one with a failed compaction.
    for (response, says) in [
        (json!({"stop_reason": "max_tokens", "content": [{"type": "text", "text": "x"}]}), "max_tokens"),
        (
            json!({"stop_reason": "end_turn", "content": [{"type": "compaction", "content": null}]}),
            "end_turn",
        ),
        (json!({"error": {}}), "content"),
    ] {
        let error = ProviderSummary::from_json("anthropic", &response).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    // Inside a turn the user message has to stay before the summary, and this form allows nothing before it.
    let opus = manager("claude-opus-5-5");
    let mut turn = Conversation::from([Message::user("Look everywhere.")]);
    for step in 0..20 {
        let id = format!("c{step}");
        turn.push(Message::assistant("").with_tool_calls([ToolCall::new(&*id, "look", "{}")]));
        turn.push(Message::tool(&*id, "line ".repeat(50)));
    }
    let error = job(&opus, &turn).on_demand().unwrap_err().to_string();
    assert!(error.contains("`m0`") || error.contains("the beginning of a turn"), "{error}");
    // The conversation was compacted in the meantime.
    let (first, second) = (job(&opus, &log), job(&opus, &log));
    let made = || ProviderSummary::from_json("anthropic", &response()).unwrap();
    opus.compactor().apply_provider_summary(&mut log, &first, made()).unwrap();
    let before = log.clone();
    let error = opus.compactor().apply_provider_summary(&mut log, &second, made()).unwrap_err();
    assert_eq!((error.kind(), log == before), (ErrorKind::Stale, true));
}

#[test]
fn reasoning_before_a_provider_compaction_is_not_sent_and_later_reasoning_is() {
    let opus = manager("claude-opus-5-5");
    let mut log = talk();
    let thought = |seal: &str| Reasoning::signed(WireFormat::Anthropic, "", seal);
    let plan = opus.build_plan(&PlanRequest::new(&log)).unwrap();
    log.push_reply(&plan, Message::assistant("On the hook.").with_reasoning(thought("before")), None);
    log.push(Message::user("Thanks."));
    let job = job(&opus, &log);
    opus.compactor()
        .apply_provider_summary(&mut log, &job, ProviderSummary::from_json("anthropic", &response()).unwrap())
        .unwrap();
    let plan = opus.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(!serde_json::to_string(&render::anthropic(&plan)).unwrap().contains("before"));
    log.push_reply(&plan, Message::assistant("Welcome.").with_reasoning(thought("after")), None);
    log.push(Message::user("Bye."));
    let plan = opus.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(plan.thoughts.sent, 1);
    assert!(serde_json::to_string(&render::anthropic(&plan)).unwrap().contains("after"));
}

/// Logged requests of a client whose provider compacts: the compaction block or item is a boundary.
#[test]
fn provider_compactions_in_files_are_boundaries() {
    let block = json!({"type": "compaction", "content": "It was in the shed.", "signature": "c2Vj"});
    let text = json!({"model": "claude-opus-5-5", "messages": [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": [{"type": "text", "text": "In the shed."}]},
        {"role": "user", "content": "And the key?"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "On the hook."}]},
        {"role": "user", "content": "Thanks."},
    ]});
    let session = Session::from_json(&text.to_string()).unwrap();
    assert_eq!(session.log.compactions().count(), 1);
    let body = anthropic(&session.log);
    assert_eq!(body["messages"][0]["content"][0], block);
    assert!(!body.to_string().contains("Where is it?") && body.to_string().contains("On the hook."));
    // Written to a file and read again, it is still a compaction by the provider.
    let record = session.log.compactions().next().unwrap().clone();
    let plain = json!({"messages": [{"role": "user", "content": "Where is it?"}, {"role": "user", "content": "Thanks."}]});
    let file = SessionFile::new("s.json", plain.to_string().into()).unwrap();
    let mut record = record;
    (record.first_active, record.messages_archived) = (None, 0);
    let written = file.with_compaction(None, &record).unwrap().unwrap();
    let again = Session::from_json(&written).unwrap();
    assert_eq!(again.log.compactions().next().unwrap().provider_summary, record.provider_summary);

    let item = json!({"type": "compaction", "encrypted_content": "c2VjcmV0"});
    let text = json!({"model": "gpt-6.2-astra", "input": [
        {"role": "user", "content": "Where is it?"}, item, {"role": "user", "content": "Thanks."},
    ]});
    let session = Session::from_json(&text.to_string()).unwrap();
    let plan = manager("gpt-6.2-astra").build_plan(&session.request()).unwrap();
    let body = serde_json::to_value(render::openai_responses(&plan)).unwrap();
    assert_eq!(body["input"][0], item, "{body:#}");
    assert!(!body.to_string().contains("Where is it?"));
    // A failed compaction is no boundary.
    let text = json!({"messages": [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": [{"type": "compaction", "content": null}, {"type": "text", "text": "In the shed."}]},
        {"role": "user", "content": "Thanks."},
    ]});
    assert_eq!(Session::from_json(&text.to_string()).unwrap().log.compactions().count(), 0);
}
