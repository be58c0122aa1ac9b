//! A conversation as data: exported, stored and read back, and a server's compaction applied by a client. The
//! property test over long random conversations is in `crates/store/tests/it/endurance.rs`.

use crate::support::generate;
use context_window::{
    events::LogEvent,
    usage::{ContextEvent, Level, StopReason},
    *,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn manager() -> ContextWindowManager {
    ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), Config::default()).unwrap()
}

/// Creates a conversation with one entry of every kind.
fn everything() -> Conversation {
    let mut log = Conversation::new();
    log.push_system("rules", "Answer from the documents.");
    log.push(Message::user("Who paid? ".repeat(400)).with_id("question"));
    log.push(Message::assistant("Ida. ".repeat(400)));
    log.push(Message::user("And when?"));
    log.pin(PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::turns(2)));
    log.pin(PinnedItem::new("gone", "No longer."));
    log.unpin("gone");
    log.pin_message("question", Priority::High).unwrap();
    log.set_ttl("question", Ttl::turns(3)).unwrap();
    let plan = manager()
        .build_plan(&PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(2_000)))
        .unwrap();
    log.push_reply(&plan, Message::assistant("In May."), Usage::openai(plan.counted(), 10, 4));
    log.complete_turn(&plan);
    let mut usage = manager().usage(&PlanRequest::like_last(&log)).unwrap();
    usage.level = Level::Approaching;
    log.observe_usage(usage);
    let manager = manager();
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "Ida paid.").unwrap();
    log.push(Message::user("Thanks."));
    log.rewind_before("m4").unwrap();
    log
}

fn through_json(log: &Conversation) -> Vec<LogEvent> {
    log.events().map(|event| serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap()).collect()
}

#[test]
fn every_kind_of_entry_round_trips() {
    let log = everything();
    let again = Conversation::from_events(through_json(&log)).unwrap();
    assert_eq!(again, log);
    let kinds: std::collections::BTreeSet<&str> =
        log.events().map(|event| event.kind()).collect::<Vec<_>>().into_iter().collect();
    let all = [
        "compacted",
        "level_crossed",
        "message",
        "message_pinned",
        "pinned",
        "prompt_settings",
        "rewound",
        "sent",
        "system_text",
        "ttl_set",
        "turn_completed",
        "unpinned",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
    // The page names each kind, and the JSON is as shown there.
    let page = std::fs::read_to_string("docs/reference/events.md").unwrap();
    for event in log.events() {
        assert!(page.contains(&format!("| `{}` |", event.kind())), "{}", event.kind());
        let json = serde_json::to_value(&event).unwrap();
        assert_eq!(json["version"], 1);
        let entry = if event.kind() == "message" { &json["entry"] } else { &json["entry"]["event"] };
        assert!(entry.is_object() && !entry[event.kind()].is_null(), "{json}");
    }
}

proptest! {
    #![proptest_config(generate::cases(500, 20_000))]

    /// A store that is written entry by entry holds the same conversation as one written at once, split at
    /// any point.
    #[test]
    fn entries_continue_at_the_end_of_a_store(session in generate::session(), split in 0usize..40) {
        let log = session.log();
        let split = split.min(log.event_count());
        let all = through_json(&log);
        prop_assert_eq!(all.len(), log.event_count());
        let rest: Vec<LogEvent> = log.events_from(split).collect();
        prop_assert_eq!(&rest[..], &all[split..]);
        let mut again = Conversation::from_events(all[..split].iter().cloned()).unwrap();
        for event in rest {
            again.apply_event(event).unwrap();
        }
        prop_assert_eq!(&again, &log);
        let manager = session.manager();
        let plan = |log: &Conversation| manager.build_plan(&session.request(log)).unwrap().to_json();
        prop_assert_eq!(plan(&again), plan(&log));
    }
}

/// A server compacts. Its client holds the same messages, applies the record, and gets the same plan.
#[test]
fn a_client_applies_the_compaction_of_a_server() {
    let mut server = Conversation::new();
    for turn in 0..60 {
        server.push(Message::user(format!("Question {turn}: {}", "why? ".repeat(40))));
        server.push(Message::assistant(format!("Answer {turn}: {}", "so. ".repeat(40))));
    }
    let mut client = server.clone();
    let limits = RequestLimits::new().with_model_context_len(5_000);
    let record = manager().compactor().compact_if_due(&mut server, &[], limits).unwrap().unwrap();
    let sent = serde_json::to_string(&LogEvent::from(record)).unwrap();
    let event: LogEvent = serde_json::from_str(&sent).unwrap();
    client.apply_event(event.clone()).unwrap();
    assert_eq!(client, server);
    let plan = |log: &Conversation| manager().build_plan(&PlanRequest::new(log)).unwrap().fingerprint();
    assert_eq!(plan(&client), plan(&server));
    // Applying it twice is an error, and so is a conversation without these messages.
    assert_eq!(client.apply_event(event.clone()).unwrap_err().kind(), ErrorKind::Stale);
    let error = Conversation::from([Message::user("Hello")]).apply_event(event).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// A store may return anything. Invalid entries give an error with the place, append nothing and never panic.
#[test]
fn hostile_entries_are_errors() {
    let of = |entry: Value| json!({ "version": 1, "entry": entry });
    let cases = [
        (of(json!({ "event": { "message_pinned": { "id": "m7", "priority": "high" } } })), "m7"),
        (of(json!({ "event": { "ttl_set": { "id": "m7", "ttl": "unlimited", "asked": false } } })), "m7"),
        (of(json!({ "event": { "rewound": { "before": "m7" } } })), "m7"),
        (json!({ "version": 2, "entry": { "event": { "unpinned": "a" } } }), "version 2"),
        (
            of(
                json!({ "event": { "compacted": { "number": 1, "kind": "summary", "first_active": "m9", "messages_archived": 1,
                "tokens_before": 1, "tokens_after": 0, "summary": "s" } } }),
            ),
            "m9",
        ),
        (
            of(
                json!({ "event": { "compacted": { "number": 0, "kind": "fresh", "messages_archived": 1, "tokens_before": 1,
                "tokens_after": 0 } } }),
            ),
            "nothing was archived",
        ),
        (
            of(json!({ "event": { "compacted": { "number": 3, "kind": "summary", "head": "m0", "from": "m1",
                "messages_archived": 1, "tokens_before": 1, "tokens_after": 0, "summary": "s" } } })),
            "compaction #3",
        ),
    ];
    for (json, said) in cases {
        let event: LogEvent = serde_json::from_value(json.clone()).unwrap();
        let mut log = Conversation::from([Message::user("a"), Message::assistant("b")]);
        let before = log.clone();
        let error = log.apply_event(event.clone()).unwrap_err().to_string();
        assert!(error.contains(said), "{json}: {error}");
        assert_eq!(log, before);
        let message = Conversation::from([Message::user("a")]).events().next().unwrap();
        let error = Conversation::from_events([message, event]).unwrap_err().to_string();
        assert!(error.starts_with("entry 1: "), "{error}");
    }
    for text in [
        "{}",
        "{\"version\":1}",
        "{\"version\":1,\"entry\":{\"robbed\":1}}",
        "[]",
        "{\"version\":1,\"entry\":{},\"x\":1}",
    ] {
        assert!(serde_json::from_str::<LogEvent>(text).is_err(), "{text}");
    }
}

/// Checks the events that committing a reply returns.
#[test]
fn reply_reports_its_stop_reason_and_window_usage() {
    let manager = manager();
    let mut log = Conversation::from([Message::user("Tell me a long story. ".repeat(30))]);
    let limits = RequestLimits::new()
        .with_model_context_len(1_000)
        .with_max_completion_tokens(100)
        .with_safety_buffer(0);
    let plan = |log: &Conversation| manager.build_plan(&PlanRequest::new(log).with_limits(limits)).unwrap();
    let first = plan(&log);
    let committed = log.push_reply(&first, Message::assistant("Once"), StopReason::named("length"));
    assert_eq!((committed.id.as_str(), committed.events), ("m1", vec![ContextEvent::MaxTokens]));
    log.push(Message::user("Go on."));
    let second = plan(&log);
    let usage = Usage::openai(second.counted(), 0, 900 - second.counted());
    let committed =
        log.push_reply(&second, Message::assistant("there was"), (usage, StopReason::ContextFull));
    let figures = manager.usage(&PlanRequest::new(&log).with_limits(limits)).unwrap();
    assert_eq!(committed.events[0], ContextEvent::WindowFull);
    let ContextEvent::Usage(told) = &committed.events[1] else { panic!("{:?}", committed.events) };
    assert_eq!(
        (told.conversation_tokens, told.percent, told.level),
        (figures.conversation_tokens, figures.percent, figures.level)
    );
    let crossed = ContextEvent::LevelCrossed { from: Level::Normal, to: Level::AtLimit };
    assert_eq!(committed.events[2], crossed);
    // One event per crossing, because the log records it.
    assert_eq!(log.observe_usage(figures).len(), 1);
    // A rejected report changes no number.
    let third = plan(&log);
    let doubted = ContextEvent::ReportNotBelieved { reported: 0, counted: third.counted() };
    assert_eq!(log.push_reply(&third, Message::assistant("."), Usage::openai(0, 0, 0)).events, [doubted]);
}

/// The module for Python and the package for JavaScript hand these objects to applications.
#[test]
fn events_are_objects_with_their_kind() {
    let usage = manager().usage(&PlanRequest::new(&Conversation::from([Message::user("How?")]))).unwrap();
    let (from, to) = (Level::Normal, Level::Approaching);
    let summary = Some("Ida paid.".to_owned());
    let (messages, conversation_tokens, limit, request_tokens, max_tokens) = (6, 900, 1_000, 700, 200);
    let (tokens_before, tokens_after, freed) = (900, 300, 600);
    let events = [
        ContextEvent::Usage(usage),
        ContextEvent::LevelCrossed { from, to },
        ContextEvent::RuleAsk { id: "m2.r0".into() },
        ContextEvent::SummaryRequested { messages, conversation_tokens, limit, request_tokens, max_tokens },
        ContextEvent::Compacted { number: 1, messages, tokens_before, tokens_after, freed, limit, summary },
        ContextEvent::ReportNotBelieved { reported: 5, counted: 9 },
        ContextEvent::MaxTokens,
        ContextEvent::WindowFull,
        ContextEvent::ReasoningDropped { ids: vec!["m3".into()], dropped: true, reason: "expired".into() },
        ContextEvent::ClearedByProvider { edit: "clear_tool_uses_20250919".into(), tokens: 40 },
        ContextEvent::TtlAsk { id: "note".into() },
    ];
    let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
