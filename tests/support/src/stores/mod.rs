//! Stores for the tests: in SQLite, and in the tests' own PostgreSQL server.

pub mod places;
#[cfg(unix)]
pub mod server;

use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PinnedItem, PlanRequest, Priority,
    RequestLimits, TokenCounter, ToolCall, Ttl, Usage,
};

pub fn manager() -> ContextWindowManager {
    let mut config = Config::default();
    config.compaction.messages = Some(12);
    config.compaction.min_messages = 4;
    config.compaction.digest_max_tokens = 60;
    ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config).unwrap()
}

/// Creates a conversation with entries of many kinds.
pub fn lived() -> Conversation {
    let manager = manager();
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.pin(PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::Limited(3.try_into().unwrap())));
    for at in 0..20 {
        log.push(Message::user(format!("question {at}")).with_id(format!("q{at}")));
        log.push(Message::assistant("").with_tool_calls([ToolCall::new(
            format!("c{at}"),
            "look",
            "{\"a\":1}",
        )]));
        log.push(Message::tool(format!("c{at}"), format!("result {at}")));
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        log.push_reply(
            &plan,
            Message::assistant(format!("answer {at}")),
            Usage::openai(plan.counted(), 0, 9),
        );
        log.complete_turn(&plan);
        manager.compactor().compact_if_due(&mut log, &[], RequestLimits::new()).unwrap();
    }
    log.pin_message("q19", Priority::High).unwrap();
    log.push(Message::user("and now?"));
    assert!(log.compactions().count() > 2);
    log
}
