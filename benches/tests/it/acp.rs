//! Updates for clients of the Agent Client Protocol, read by the protocol's own types.

use agent_client_protocol_schema::v1::SessionUpdate;
use context_window::{Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, TokenCounter};
use context_window_formats::acp;
use serde_json::{Value, json};

/// Reads an update as the protocol's type and writes it again. Fields that the type does not know would be
/// lost or changed.
fn read(update: &Value) -> SessionUpdate {
    let read: SessionUpdate = serde_json::from_value(update.clone()).unwrap();
    let again = serde_json::to_value(&read).unwrap();
    for (key, value) in update.as_object().unwrap() {
        assert_eq!(&again[key], value, "{key} of {update}");
    }
    read
}

#[test]
fn protocol_types_deserialize_written_messages() {
    let mut config = Config::default();
    config.compaction.retain.messages = Some(1);
    let manager =
        ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config).unwrap();
    let mut log = Conversation::new();
    for turn in 0..8 {
        log.push(Message::user(format!("Question {turn}: {}", "why? ".repeat(20))));
        log.push(Message::assistant(format!("Answer {turn}: {}", "because. ".repeat(20))));
    }
    let usage = manager.build_plan(&PlanRequest::new(&log)).unwrap().usage;
    for cost in [None, Some((0.25, "USD"))] {
        let SessionUpdate::UsageUpdate(read) = read(&json!(acp::usage_update(&usage, cost))) else {
            panic!("no usage")
        };
        assert_eq!((read.used, read.size), (usage.prompt_tokens, usage.model_context_len));
        assert_eq!(read.cost.map(|cost| cost.amount), cost.map(|cost| cost.0));
    }
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    let record = manager.compactor().apply_summary(&mut log, &job, "They asked why.").unwrap();
    let begun = json!(acp::compaction_begins(record.number));
    let done = json!(acp::compaction_update(&record));
    assert_eq!(begun["compactionId"], done["compactionId"]);
    let stale = manager.compactor().apply_summary(&mut log, &job, "They asked why.").unwrap_err();
    for update in [begun, done, json!(acp::compaction_failed(2, &stale))] {
        assert!(matches!(read(&update), SessionUpdate::CompactionUpdate(_)), "{update}");
    }
}
