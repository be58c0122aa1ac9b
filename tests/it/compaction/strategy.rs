//! Each compaction follows its options: strategy, retention, summary cap, undo, and log records.

use super::*;
use std::{
    collections::BTreeSet,
    io::{self, Write},
    sync::{Arc, Mutex},
};

const STRATEGIES: [(CompactionStrategy, CompactionKind); 4] = [
    (CompactionStrategy::Summary, CompactionKind::Summary),
    (CompactionStrategy::Digest, CompactionKind::Digest),
    (CompactionStrategy::SlidingWindow, CompactionKind::SlidingWindow),
    (CompactionStrategy::Fresh, CompactionKind::Fresh),
];

/// Returns the ids of archived messages, as marked in the history rows.
fn archived(log: &Conversation) -> Vec<ItemId> {
    log.history()
        .filter_map(|row| match row {
            HistoryRow::Message { id, is_archived: true, .. } => Some(id),
            _ => None,
        })
        .collect()
}

/// The archived messages equal those that the job listed before, with each strategy.
#[test]
fn job_lists_the_messages_it_archives() {
    for (strategy, kind) in STRATEGIES {
        let manager = bytes(config(|config| {
            config.compaction.strategy = strategy;
            config.compaction.messages = Some(21);
            config.compaction.summary.max_tokens = 60;
            config.compaction.digest_max_tokens = 60;
        }));
        let mut log = talk(40, 100);
        let job =
            manager.compactor().due(&PlanRequest::new(&log).with_limits(limits(5_000))).unwrap().unwrap();
        assert_eq!((job.strategy(), job.trigger()), (strategy, Trigger::Messages));
        let record = match strategy {
            CompactionStrategy::Summary => manager.compactor().apply_summary(&mut log, &job, "They talked."),
            _ => manager.compactor().compact_without_model(&mut log, &job),
        };
        assert_eq!(record.unwrap().kind, kind);
        assert!(!job.archived_ids().is_empty(), "{strategy:?}");
        assert_eq!(job.archived_ids(), archived(&log), "{strategy:?}");
        assert_eq!(job.messages_archived(), archived(&log).len() as u64);
    }
}

/// One model has its own strategy and retention.
#[test]
fn a_model_has_its_own_strategy_and_retention() {
    let compacted = |change: &dyn Fn(&mut CompactionOverrides)| {
        let mut own = CompactionOverrides::default();
        change(&mut own);
        let manager = bytes(config(|config| {
            config.compaction.strategy = CompactionStrategy::Digest;
            config.compaction.messages = Some(21);
            config.compaction.digest_max_tokens = 60;
            config.compaction.models.insert("test".into(), own);
        }));
        let mut log = talk(40, 100);
        let limits = limits(9_000);
        let record = manager.compactor().compact_if_due(&mut log, &[], limits).unwrap().unwrap();
        (record.kind, 40 - record.messages_archived)
    };
    let plain = compacted(&|_| {});
    assert_eq!(plain.0, CompactionKind::Digest);
    assert_eq!(
        compacted(&|own| own.strategy = Some(CompactionStrategy::SlidingWindow)).0,
        CompactionKind::SlidingWindow
    );
    assert_eq!(compacted(&|own| own.retain.messages = Some(4)), (CompactionKind::Digest, 4));
    assert_eq!(compacted(&|own| own.retain.tokens = Some(600)), (CompactionKind::Digest, 6));
    assert_ne!(plain.1, 4);
    let wrong = "[compaction.models.x.retain]\ncapacity = 101\n";
    assert!(Config::from_toml(wrong, "mine").unwrap_err().to_string().contains("per cent, 0 to 100"));
}

/// Regression test: in a window of 4,096 a summary of 2,000 tokens left no room for retained messages, so a
/// question stayed without its answer.
#[test]
fn the_cap_of_a_summary_scales_with_the_window() {
    for window in [1_500, 2_048, 4_096, 8_192, 32_000] {
        let manager = bytes(Config::default());
        let limits = RequestLimits::new().with_model_context_len(window);
        let size = (window / 40) as usize;
        let mut log = talk(60, size);
        let job = manager.compactor().due(&PlanRequest::new(&log).with_limits(limits)).unwrap().unwrap();
        let capacity = window - window / 4;
        assert_eq!(job.max_tokens(), 2_000.min(capacity / 8), "{window}");
        manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
        let kept = ids(&log);
        assert!(
            kept.len() >= 3 && kept.len() % 2 == 1,
            "a summary, and questions with their answers: {kept:?}"
        );
    }
}

/// An answered question does not stay without its answer, because the model would answer it again.
#[test]
fn answered_question_is_archived_with_its_answer() {
    let manager = bytes(config(|config| config.compaction.summary.max_tokens = 60));
    let limits = limits(1_100);
    let mut log = talk(10, 60);
    log.push(said(10, 200));
    log.push(said(11, 900));
    let job = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits)).unwrap().unwrap();
    assert_eq!((job.head(), job.first_active()), (None, None));
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1"]);
    // An unanswered question stays.
    let mut log = talk(10, 60);
    log.push(said(10, 900));
    let job = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m10"]);
}

/// `enabled = false` switches off the triggers, but not a requested compaction.
#[test]
fn requested_compaction_runs_while_automatic_compaction_is_off() {
    let manager = bytes(config(|config| {
        config.compaction.enabled = false;
        config.compaction.messages = Some(4);
        config.compaction.summary.max_tokens = 60;
    }));
    let mut log = talk(20, 60);
    assert_eq!(
        manager.compactor().state(&PlanRequest::like_last(&log)).unwrap(),
        CompactionState::Waiting(BlockedBy::Disabled)
    );
    assert!(manager.compactor().due(&PlanRequest::like_last(&log)).unwrap().is_none());
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    assert_eq!(job.trigger(), Trigger::Asked);
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
}

/// An agent without a user message: its oldest steps are dropped, calls together with their results.
#[test]
fn a_conversation_without_a_user_message_slides() {
    let mut options = Config::preset("dropping").unwrap();
    options.compaction.messages = Some(21);
    let manager = bytes(options);
    let mut log = Conversation::new();
    for step in 0..20 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), "o".repeat(100)));
    }
    log.push(Message::assistant("done"));
    let record = manager.compactor().compact_if_due(&mut log, &[], limits(9_000)).unwrap().unwrap();
    assert_eq!(
        (record.kind, record.messages_archived, record.progress),
        (CompactionKind::SlidingWindow, 22, true)
    );
    assert_eq!(ids(&log), range(22, 41));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(plan.window_start.unwrap(), "m22");
}

/// Messages that the newest compaction archived are sent again, later ones stay, and numbering continues.
#[test]
fn undo_keeps_later_messages() {
    let manager = bytes(config(|config| {
        config.compaction.summary.max_tokens = 60;
        config.compaction.retain.messages = Some(2);
    }));
    let mut log = talk(12, 60);
    assert_eq!(log.undo_compaction(), None);
    let untouched = log.clone();
    for _ in 0..2 {
        let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
        manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
        log.extend([said(12, 60), said(13, 60)]);
    }
    assert_eq!(ids(&log), ["#2", "m12", "m13", "m14", "m15"]);
    assert_eq!(log.undo_compaction(), Some(2));
    assert_eq!(ids(&log)[0], "#1");
    assert_eq!(ids(&log)[1..], range(10, 16));
    assert!(
        manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().is_none(),
        "not before the next message"
    );
    assert_eq!(log.undo_compaction(), Some(1));
    assert_eq!(ids(&log), range(0, 16));
    assert_eq!(log.undo_compaction(), None);
    let plan = |log: &Conversation| manager.build_plan(&PlanRequest::new(log)).unwrap().fingerprint();
    let mut never = untouched;
    never.extend([said(12, 60), said(13, 60), said(12, 60), said(13, 60)]);
    let rows = |log: &Conversation| -> Vec<String> {
        manager
            .build_plan(&PlanRequest::new(log))
            .unwrap()
            .included
            .iter()
            .map(|row| row.id.to_string())
            .collect()
    };
    assert_eq!(rows(&log), rows(&never), "as if nothing had been compacted");
    let again = Conversation::from_events(log.events()).unwrap();
    assert_eq!((&again, plan(&again)), (&log, plan(&log)));
    log.push(said(16, 60));
    log.push(said(17, 60));
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    assert_eq!(manager.compactor().apply_summary(&mut log, &job, "Again.").unwrap().number, 3);
    let page = context_window_report::history(&log).to_string();
    assert!(page.contains("**Compaction #2 undone**") && page.contains("**Compaction #1 undone**"), "{page}");
}

/// A writer shared by a `tracing` subscriber and the test.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a test again in its own process and returns the records of `tracing`. Returns `None` in the outer
/// process. A subscriber sees all events reliably only if no other thread plans.
fn recorded(test: &str, work: impl FnOnce()) -> Option<String> {
    const ALONE: &str = "COMPACTION_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = format!("compaction::strategy::{test}");
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let done = alone.args(["--exact", &name]).env(ALONE, "1").output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return None;
    }
    let shared = Shared::default();
    let writer = shared.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .without_time()
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let text = String::from_utf8(shared.0.lock().unwrap().clone()).unwrap();
    Some(text)
}

/// Asserts that there is one record per list of fields, in this order, with all of its fields.
fn assert_records(text: &str, wanted: &[&[&str]]) {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), wanted.len(), "{text}");
    for (line, fields) in lines.iter().zip(wanted) {
        for field in *fields {
            assert!(line.contains(field), "{field} is not in: {line}");
        }
    }
}

/// A check, a compaction and a plan each emit one `tracing` event with kind, message count, tokens and
/// reason. The plan's event has limits, counts and ids.
#[test]
fn compaction_and_plan_are_logged_once() {
    let text = recorded("compaction_and_plan_are_logged_once", || {
        let manager = bytes(config(|config| {
            config.compaction.messages = Some(21);
            config.compaction.digest_max_tokens = 60;
        }));
        let mut log = talk(40, 100);
        manager.compactor().compact_if_due(&mut log, &[], limits(5_000)).unwrap().unwrap();
        manager
            .build_plan(
                &PlanRequest::new(&log).with_limits(limits(5_000)).with_trace_ids("talk-7", "prompt-9"),
            )
            .unwrap();
        log.start_fresh();
    });
    let Some(text) = text else { return };
    assert_records(
        &text,
        &[
            &[
                "compaction check",
                "state=\"due\"",
                "why=\"compaction.messages\"",
                "conversation_tokens=4000",
                "limit=4900",
            ],
            &[
                "compaction number=1",
                "kind=\"digest\"",
                "why=\"compaction.messages\"",
                "messages_archived=",
                "tokens_before=4000",
                "tokens_after=",
                "limit=4900",
                "summary_bytes=",
            ],
            &[
                "conversation=\"talk-7\"",
                "prompt=\"prompt-9\"",
                "attempt=1",
                "context_len=5000",
                "max_completion=100",
                "conversation_included=",
                "rag_excluded=0",
            ],
            &["kind=\"fresh\"", "why=\"start_fresh\""],
        ],
    );
    assert!(!text.contains("xxxx"), "no text of a message");
}

/// A turn as an application logs it: a prompt that is refused and planned again, a truncated reply, the check
/// after it, and the summary request. Each record has the ids, and the plans of one prompt are
/// distinguishable.
#[test]
fn turn_is_logged_from_its_plan_to_the_summary_request() {
    let text = recorded("turn_is_logged_from_its_plan_to_the_summary_request", || {
        let manager = bytes(config(|config| config.tokens.calibrate = false));
        let mut log = talk(41, 100);
        let asked = asking(|log| {
            PlanRequest::new(log).with_limits(limits(4_400)).with_trace_ids("talk-7", "prompt-9")
        });
        let plan = manager.build_plan(&asked(&log)).unwrap();
        let smaller = manager.plan_after_overflow(&asked(&log), &plan).unwrap();
        let smallest = manager.plan_after_overflow(&asked(&log), &smaller).unwrap();
        let report = (Usage::openai(smallest.estimated_tokens_total.tokens, 0, 100), StopReason::MaxTokens);
        log.push_reply(&smallest, said(41, 100), report);
        log.push(said(42, 100));
        let plan = manager.build_plan(&asked(&log)).unwrap();
        log.push_reply(&plan, said(43, 100), Usage::openai(175_000, 0, 100));
        let job = manager.compactor().due(&asked(&log)).unwrap().unwrap();
        job.smaller().unwrap().unwrap();
        // Replays and explanations are not logged as prompts.
        let request = asked(&log);
        assert!(manager.explainer(&request).replay().count() > 20);
        manager.explainer(&request).explain("m40").unwrap();
    });
    let Some(text) = text else { return };
    let ids = ["conversation=\"talk-7\"", "prompt=\"prompt-9\""];
    assert_records(
        &text,
        &[
            &[ids[0], ids[1], " attempt=1", "estimated_tokens_total=4100"],
            &[ids[0], ids[1], " attempt=2", "refused_tokens=4100", "prompt_budget=3075"],
            &[ids[0], ids[1], " attempt=3", "refused_tokens=2900"],
            &[
                "reply ",
                ids[0],
                ids[1],
                " attempt=3",
                "stop=\"max_tokens\"",
                "max_completion=100",
                "output=100",
                "believed=true",
            ],
            &[ids[0], ids[1], " attempt=1"],
            &["reply ", "reply=\"m43\"", "input=175000", "believed=false"],
            &[
                "compaction check",
                ids[0],
                ids[1],
                "state=\"due\"",
                "why=\"compaction.percent\"",
                "limit=4300",
                "level=",
            ],
            &[
                "summary requested",
                ids[0],
                ids[1],
                "attempt=1",
                "messages=",
                "limit=4300",
                "request_tokens=",
                "max_tokens=",
            ],
            &["summary requested", ids[0], "attempt=2"],
        ],
    );
    assert!(!text.contains("xxxx"), "no text of a message");
}

/// Checks the lists of pins, notes and lifetimes.
#[test]
fn pins_notes_and_lifetimes_are_listed() {
    let mut log = talk(6, 20);
    log.pin(PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::turns(2)));
    log.pin(PinnedItem::new("style", "Rhyme."));
    log.pin_message("m2", Priority::High).unwrap();
    log.set_ttl("m4", Ttl::turns(1)).unwrap();
    assert_eq!(log.notes().map(|note| note.id().as_str()).collect::<Vec<_>>(), ["tone", "style"]);
    assert_eq!(log.pins().collect::<Vec<_>>(), [("m2".into(), Priority::High)]);
    let left: BTreeSet<String> = log.ttls().map(|(id, ttl)| format!("{id} {ttl:?}")).collect();
    assert_eq!(left.len(), 2);
    assert_eq!((log.ttl("tone"), log.ttl("style")), (Some(Ttl::turns(2)), None));
    let manager = bytes(Config::default());
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    log.complete_turn(&plan);
    assert_eq!((log.ttl("tone"), log.ttl("m4")), (Some(Ttl::turns(1)), Some(Ttl::NoneRemaining)));
}
