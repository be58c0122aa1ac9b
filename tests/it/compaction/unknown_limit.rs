//! With an unknown context length, levels and compaction are off, and a notice reports this (rule B2).

use super::*;
use context_window::plan::NoticeCode;

fn is_off(manager: &ContextWindowManager, request: PlanRequest<'_>, budget: u64) {
    let usage = manager.usage(&request).unwrap();
    assert!(usage.conversation_tokens.tokens > 150_000, "{usage:?}");
    assert_eq!((usage.limit, usage.percent, usage.level, usage.model_context_len), (0, 0, Level::Normal, 0));
    let state = manager.compactor().state(&request).unwrap();
    assert_eq!(state, CompactionState::Waiting(BlockedBy::UnknownLimit));
    assert!(manager.compactor().due(&request).unwrap().is_none());
    assert!(manager.compactor().now(&request).unwrap().is_none());
    let plan = manager.build_plan(&request).unwrap();
    let notices: Vec<&str> = plan
        .notices
        .iter()
        .filter(|notice| notice.code == NoticeCode::UnknownLimit)
        .map(|n| &*n.text)
        .collect();
    assert_eq!(notices.len(), 1, "{:?}", plan.notices);
    assert!(notices[0].contains("the context length is unknown"), "{notices:?}");
    assert_eq!((plan.prompt_budget, plan.limits_source.name()), (budget, "unknown"));
    assert!(plan.notices.iter().all(|notice| notice.code != NoticeCode::BudgetAboveWindow));
}

#[test]
fn unknown_limit_turns_levels_and_compaction_off_with_a_notice() {
    let unknown = RequestLimits::unknown();
    let mut own = unknown;
    own.prompt_budget = Some(500_000);
    let mut log = talk(1_000, 160);
    // The budget is that of `[model.default]` or of the request, although the registry knows the model.
    let known = ContextWindowManager::configured(
        {
            let mut model = Model::named("gpt-4").unwrap();
            model.tokenizer = Some("bytes".into());
            model
        },
        Config::default(),
    )
    .unwrap();
    let default = 128_000 - 4_096 - 1_024;
    for manager in [bytes(Config::default()), known] {
        is_off(&manager, PlanRequest::new(&log).with_limits(unknown), default);
        is_off(&manager, PlanRequest::new(&log).with_limits(own), 500_000);
    }
    // A reply reports more tokens than the default window. The report is accepted because it is near the
    // count, and the level stays normal.
    let manager = bytes(Config::default());
    let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(own)).unwrap();
    log.push_reply(&plan, said(1_001, 160), Usage::openai(plan.estimated_tokens_total.tokens, 0, 160));
    let usage = manager.usage(&PlanRequest::new(&log).with_limits(own)).unwrap();
    assert!(usage.reported, "{usage:?}");
    assert_eq!(log.level(), Level::Normal);
    // A context length in the request is known.
    let both = unknown.with_model_context_len(100_000);
    let usage = manager.usage(&PlanRequest::new(&log).with_limits(both)).unwrap();
    assert_eq!((usage.model_context_len, usage.level), (100_000, Level::AtLimit));
    // Without the flag there is no notice, and the default limits apply.
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.notices.iter().all(|notice| notice.code != NoticeCode::UnknownLimit));
    assert_eq!(plan.limits_source.name(), "default");
}

#[test]
fn session_file_keeps_the_unknown_limit() {
    let text = r#"{"model": "mine", "limits": {"unknown": true},
        "messages": [{"role": "user", "content": "Hello"}]}"#;
    let session = Session::from_json(text).unwrap();
    assert_eq!(session.limits, RequestLimits::unknown());
    let manager = bytes(Config::default());
    let usage = manager.usage(&session.request()).unwrap();
    assert_eq!((usage.limit, usage.level), (0, Level::Normal));
    let json = serde_json::to_value(session.limits).unwrap();
    assert_eq!(json["unknown"], true);
    assert!(serde_json::to_value(RequestLimits::new()).unwrap().get("unknown").is_none());
}
