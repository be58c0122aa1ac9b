//! Edits that a provider supports are either requested from it or made locally, never both (rule C12).

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RequestLimits, Tool, ToolCall,
    compaction::{BlockedBy, CompactionState},
    config::{CompactionStrategy, ToolResults},
    plan::NoticeCode,
};
use serde_json::json;

fn manager(model: &str, tweak: impl Fn(&mut Config)) -> ContextWindowManager {
    let mut config = Config::default();
    tweak(&mut config);
    let mut model = Model::named(model).unwrap();
    model.tokenizer = Some("chars/4".into());
    ContextWindowManager::configured(model, config).unwrap()
}

fn agent() -> Conversation {
    let mut log = Conversation::from([Message::user("Where is it?")]);
    for at in 0..12 {
        let id = format!("c{at}");
        log.push(Message::assistant("Looking.").with_tool_calls([ToolCall::new(&*id, "look", "{}")]));
        log.push(Message::tool(&*id, "not here ".repeat(200)));
    }
    log
}

#[test]
fn clearing_is_requested_from_a_supporting_provider_and_not_done_locally() {
    let manager = manager("claude-opus-5-5", |config| {
        config.conversation.tool_results = ToolResults::Provider;
        config.conversation.keep_results = 4;
    });
    let log = agent();
    let tools = [Tool::new("look", "Looks.", "{}")];
    let request = PlanRequest::new(&log).with_tools(&tools).with_limits(RequestLimits::prompt_budget(6_000));
    let plan = manager.build_plan(&request).unwrap();
    let editing = plan.context_editing.clone().unwrap();
    let header = ("anthropic-beta".to_owned(), "context-management-2025-06-27".to_owned());
    assert_eq!(editing.headers, [header]);
    let expected = json!({"edits": [{
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 4_000},
        "keep": {"type": "tool_uses", "value": 4},
        "clear_at_least": {"type": "input_tokens", "value": 2_000},
    }]});
    assert_eq!(json!(editing.context_management()), expected);
    let shortened = [NoticeCode::ResultsCleared, NoticeCode::ResultsClipped, NoticeCode::EditedHere];
    assert!(plan.notices.iter().all(|notice| !shortened.contains(&notice.code)));
    // The budget is too small for one step, and still no result is clipped locally.
    let request = request.with_limits(RequestLimits::prompt_budget(450));
    let plan = manager.build_plan(&request).unwrap();
    assert!(plan.overflow.is_some());
    assert!(plan.notices.iter().all(|notice| !shortened.contains(&notice.code)));
}

#[test]
fn unsupported_context_editing_is_done_locally_with_a_notice() {
    let tweak = |config: &mut Config| {
        config.conversation.tool_results = ToolResults::Provider;
        config.compaction.strategy = CompactionStrategy::Provider;
    };
    let log = agent();
    let plan_for = |model: &str, budget| {
        let manager = manager(model, tweak);
        let limits = RequestLimits::prompt_budget(budget);
        let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits)).unwrap();
        let here = plan.notices.iter().filter(|notice| notice.code == NoticeCode::EditedHere);
        (
            here.count(),
            plan.context_editing,
            plan.notices.iter().any(|one| one.code == NoticeCode::ResultsClipped),
        )
    };
    // Neither is supported: results are clipped as by default.
    assert_eq!(plan_for("gpt-4o", 450), (2, None, true));
    // Only compaction is supported.
    let (here, editing, clipped) = plan_for("gpt-6.2-astra", 450);
    assert_eq!((here, clipped), (1, true));
    let expected = json!([{"type": "compaction", "compact_threshold": 382}]);
    assert_eq!(json!(editing.unwrap().context_management()), expected);
    // Both are supported.
    let (here, editing, clipped) = plan_for("claude-opus-5-5", 100_000);
    assert_eq!((here, clipped), (0, false));
    let editing = editing.unwrap();
    assert_eq!(editing.headers.len(), 2);
    let management = json!(editing.context_management());
    let edit = &management["edits"][1];
    let expected = json!({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 85_000}});
    assert_eq!(*edit, expected);
}

#[test]
fn no_compaction_is_due_if_the_provider_compacts() {
    let due = |model: &str, budget, tweak: fn(&mut Config)| {
        let manager = manager(model, |config| {
            config.compaction.strategy = CompactionStrategy::Provider;
            tweak(config);
        });
        let mut log = agent();
        log.push(Message::assistant("Nowhere."));
        let limits = RequestLimits::prompt_budget(budget);
        let request = PlanRequest::new(&log).with_limits(limits);
        let state = manager.compactor().state(&request).unwrap();
        (state, manager.build_plan(&request).unwrap().context_editing.is_some())
    };
    let by_provider = (CompactionState::Waiting(BlockedBy::Provider), true);
    assert_eq!(due("gpt-6.2-astra", 2_000, |_| ()), by_provider);
    assert_eq!(due("claude-opus-5-5", 60_000, |_| ()), by_provider);
    // Done locally: the conversation is below the provider's threshold, the provider does not support it, the
    // option is off, or the model has its own strategy.
    for (model, budget, tweak) in [
        ("claude-opus-5-5", 2_000, (|_| ()) as fn(&mut Config)),
        ("gpt-4o", 2_000, |_| ()),
        ("gpt-6.2-astra", 2_000, |config| {
            let own = config.compaction.models.entry("gpt-6.2-astra".into()).or_default();
            own.strategy = Some(CompactionStrategy::Digest);
        }),
    ] {
        let (state, asked) = due(model, budget, tweak);
        assert!(matches!(state, CompactionState::Due(_)), "{model}: {state:?}");
        assert!(!asked, "{model}");
    }
}
