//! Messages that stay unchanged after a compaction (rules C4, C7).

use super::*;

#[test]
fn summary_tail_preset_keeps_the_published_messages() {
    let mut config = Config::preset("summary-tail").unwrap();
    config.compaction.percent = 0;
    config.compaction.messages = Some(10);
    config.compaction.target = 100;
    let manager = ContextWindowManager::configured(Model::custom("test"), config.clone()).unwrap();
    // Messages 0 to 5 of 10 are summarised and 4 stay, which is 40 % of 10.
    let mut log = talk(10, 400);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    assert_eq!((job.messages_archived(), job.first_active().unwrap().as_str()), (6, "m6"));
    let requested = ContextEvent::SummaryRequested {
        messages: 6,
        conversation_tokens: manager.usage(&PlanRequest::like_last(&log)).unwrap().conversation_tokens.tokens,
        limit: manager.usage(&PlanRequest::like_last(&log)).unwrap().limit,
        request_tokens: job.tokens().tokens,
        max_tokens: job.max_tokens(),
    };
    assert_eq!(job.event(), requested);
    let record = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    let freed = record.tokens_before - record.tokens_after;
    let compacted = ContextEvent::Compacted {
        number: 1,
        messages: 6,
        tokens_before: record.tokens_before,
        tokens_after: record.tokens_after,
        freed,
        limit: manager.usage(&PlanRequest::like_last(&log)).unwrap().limit,
        summary: record.summary.clone(),
    };
    assert_eq!(record.event(), compacted);
    assert!(record.limit > 0 && record.summary.is_some(), "{record:?}");
    assert_eq!((record.number, record.messages_archived, record.archived.len()), (1, 6, 1));
    assert_eq!((record.archived[0].id.as_str(), record.archived[0].last_id.as_str()), ("m0", "m5"));
    assert_eq!(ids(&log), [vec!["#1".into()], range(6, 10)].concat());
    // A log of 30 messages with 4 archived: 10 of the 26 active ones stay, the smaller of 10 and 40 %.
    let mut log = talk(10, 400);
    config.compaction.retain.messages = Some(6);
    config.compaction.retain.active = None;
    let first = ContextWindowManager::configured(Model::custom("test"), config).unwrap();
    let job = first.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    first.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    log.extend((10..30).map(|at| said(at, 400)));
    assert_eq!(ids(&log).len(), 27);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    let record = manager.compactor().apply_summary(&mut log, &job, "They talked on.").unwrap();
    assert_eq!((record.number, record.messages_archived), (2, 16));
    assert_eq!(ids(&log), [vec!["#2".into()], range(20, 30)].concat());
}

#[test]
fn kept_messages_never_start_with_a_call() {
    for messages in 0..8 {
        let manager = bytes(config(|config| config.compaction.retain.messages = Some(messages)));
        let mut log = Conversation::from([
            Message::system("Be brief."),
            Message::user("a".repeat(300)),
            Message::assistant("b".repeat(300)),
            Message::assistant("").with_tool_calls([ToolCall::new("c", "look", "{}")]),
            Message::tool("c", "d".repeat(300)),
            Message::user("e".repeat(300)),
            Message::assistant("f".repeat(300)),
        ]);
        let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
        manager.compactor().apply_summary(&mut log, &job, "s").unwrap();
        let active = ids(&log);
        // The retention is too small for the last turn. It is answered, so it is archived as a whole.
        let expected: &[&str] = if messages < 2 { &["m0", "#1"] } else { &["m0", "#1", "m5", "m6"] };
        assert_eq!(active, expected, "retain {messages}");
    }
}

#[test]
fn live_question_stays_with_every_retention() {
    let manager = bytes(Config::preset("summary-only").unwrap());
    let mut log = talk(21, 100);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m20"], "an unanswered question stands after the summary");
    let mut answered = talk(20, 100);
    let job = manager.compactor().now(&PlanRequest::like_last(&answered)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut answered, &job, "They talked.").unwrap();
    assert_eq!(ids(&answered), ["#1"], "an answered one goes with its answer");
    // The retention is larger than the conversation: only messages before the live turn can be archived.
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.retain.capacity) = (Some(99), Some(100));
    }));
    let mut log = talk(10, 100);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m8", "m9"]);
}

#[test]
fn agents_compact_inside_the_live_turn() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::from([Message::system("You fix kettles."), Message::user("Fix it.")]);
    let mut compactions = Vec::new();
    for step in 0..200 {
        let call = ToolCall::new(format!("c{step}"), "run", format!("{{\"path\":\"part{step}\"}}"));
        log.push(Message::assistant("").with_tool_calls([call]));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
        let request = PlanRequest::new(&log).with_limits(limits(10_100));
        assert!(manager.build_plan(&request).unwrap().overflow.is_none());
        if let Some(job) = manager.compactor().due(&request).unwrap() {
            assert_eq!(job.head().unwrap().as_str(), "m1");
            let record = manager.compactor().apply_summary(&mut log, &job, "Much was tried.").unwrap();
            assert!(record.progress);
            let active = ids(&log);
            assert_eq!(active[..2], ["m0", "m1"]);
            assert_eq!(active[2], format!("#{}", record.number));
            assert!(active.len() > 4 && active.len() % 2 == 1, "whole exchanges: {active:?}");
            compactions.push(step);
            let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap();
            let order: Vec<&str> = plan.included.iter().take(3).map(|row| row.id.as_str()).collect();
            assert_eq!(order, ["m0", "m1", &format!("summary:{}", record.number)]);
            assert!(
                plan.included.iter().any(|row| row.id.as_str() == format!("m{}", log.messages().len() - 1))
            );
        }
    }
    assert!(compactions.len() > 3, "{compactions:?}");
    // One question later, user message and summary keep their order.
    log.push(Message::assistant("Done."));
    log.push(Message::user("Thanks. And the lid?"));
    let plan = manager.build_plan(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap();
    let order: Vec<&str> = plan.included.iter().take(3).map(|row| row.id.as_str()).collect();
    assert_eq!(order, ["m0", "m1", &format!("summary:{}", compactions.len())]);
}

/// A summary without its question would have no request to refer to. The turn that follows is too large.
#[test]
fn question_before_a_summary_is_required() {
    let manager = bytes(Config::default());
    let mut log = Conversation::from([Message::user("Fix it.")]);
    for step in 0..20 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
    }
    let request = asking(|log| PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(1_000)));
    let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
    assert_eq!(job.head().unwrap().as_str(), "m0");
    manager.compactor().apply_summary(&mut log, &job, "Much was tried.").unwrap();
    log.push(Message::assistant("Done."));
    log.push(Message::user("Is the lid fixed too?"));
    log.push(Message::assistant("x".repeat(2_000)));
    log.push(Message::user("And the handle?"));
    let plan = manager.build_plan(&request(&log)).unwrap();
    let rows: Vec<_> = plan.included.iter().map(|row| (row.id.as_str(), row.reason)).collect();
    let last = format!("m{}", log.messages().len() - 1);
    assert_eq!(
        rows,
        [
            ("m0", IncludedReason::Required),
            ("summary:1", IncludedReason::Summary),
            (last.as_str(), IncludedReason::Required),
        ]
    );
}

#[test]
fn messages_added_during_a_compaction_are_kept() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = talk(12, 60);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    log.extend((12..16).map(|at| said(at, 60)));
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), [vec!["#1".into()], range(10, 16)].concat());
    // This job is stale: another compaction was applied first.
    let error = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap_err();
    assert!(error.to_string().contains("since this request was made"), "{error}");
    // A result that answers a call of the range removes its exchange from the range.
    let mut log = talk(8, 60);
    log.push(Message::assistant("").with_tool_calls([ToolCall::new("late", "look", "{}")]));
    log.push(Message::user("never mind"));
    log.push(Message::assistant("fine ".repeat(20)));
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    assert_eq!(job.first_active().unwrap().as_str(), "m9");
    log.push(Message::tool("late", "here"));
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m8", "m9", "m10", "m11"]);
}

#[test]
fn a_sliding_window_drops_until_every_threshold_holds() {
    let mut dropping = Config::preset("dropping").unwrap();
    (dropping.compaction.messages, dropping.compaction.turns) = (Some(21), Some(8));
    let manager = bytes(dropping);
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(3_100)));
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.pin(PinnedItem::new("tone", "Short answers."));
    log.extend((0..40).map(|at| said(at, 100)));
    let job = manager.compactor().due(&request(&log)).unwrap().unwrap();
    let record = manager.compactor().compact_without_model(&mut log, &job).unwrap();
    // 7 turns stay: the thresholds are 8 turns, 21 messages and 85 % of 3,000 tokens.
    assert_eq!(
        (record.kind, record.messages_archived, record.progress),
        (CompactionKind::SlidingWindow, 26, true)
    );
    assert_eq!(ids(&log), range(26, 40));
    let plan = manager.build_plan(&request(&log)).unwrap();
    assert_eq!(
        plan.included.iter().take(3).map(|row| row.id.as_str()).collect::<Vec<_>>(),
        ["s0", "tone", "m26"]
    );
    // Inside the oldest kept turn, exchanges are dropped and the user message stays.
    let mut agent = Conversation::from([Message::user("Go.")]);
    for step in 0..30 {
        agent.push(Message::assistant("").with_tool_calls([ToolCall::new(format!("c{step}"), "run", "{}")]));
        agent.push(Message::tool(format!("c{step}"), "o".repeat(100)));
    }
    let job = manager.compactor().due(&request(&agent)).unwrap().unwrap();
    manager.compactor().compact_without_model(&mut agent, &job).unwrap();
    let active = ids(&agent);
    assert_eq!(active[0], "m0");
    assert!(active.len() < 21 && active.len() % 2 == 1, "{active:?}");
    // The loop ends for every input.
    let odd: [Vec<Message>; 5] = [
        vec![],
        vec![Message::system("only")],
        (0..40).map(|at| Message::assistant(format!("{at} nobody asked"))).collect(),
        vec![Message::user("h".repeat(9_000))],
        vec![Message::tool("x", "y"); 40],
    ];
    for messages in odd {
        let mut log = Conversation::from(messages);
        let before = log.messages().len();
        if let Some(job) = manager.compactor().due(&request(&log)).unwrap() {
            drop(manager.compactor().compact_without_model(&mut log, &job));
        }
        assert_eq!(log.messages().len(), before);
    }
}

/// If the application sets its own prompt budget, the kept messages fit it. The summary request may be
/// larger.
#[test]
fn shares_are_of_the_applications_prompt_budget() {
    let manager = bytes(config(|config| config.compaction.summary.max_tokens = 100));
    let mut log = talk(40, 100);
    let request = asking(|log| {
        let mut limits = limits(100_000);
        limits.prompt_budget = Some(2_000);
        PlanRequest::new(log).with_limits(limits)
    });
    assert_eq!(manager.compactor().state(&request(&log)).unwrap(), CompactionState::Due(Trigger::OnDrop));
    let job = manager.compactor().due(&request(&log)).unwrap().unwrap();
    assert!(job.form() == RequestForm::Conversation && job.tokens().tokens > 3_000);
    let record = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    assert!(record.progress && record.tokens_after <= 1_000, "{record:?}");
    assert_eq!(ids(&log)[1..], range(36, 40));
}

/// Regression tests: each of these cases once separated a call from its result.
#[test]
fn a_sliding_window_parts_no_call_from_a_late_result() {
    let mut dropping = Config::preset("dropping").unwrap();
    dropping.compaction.messages = Some(20);
    let manager = bytes(dropping);
    let orphans = |log: &Conversation| {
        let plan = manager.build_plan(&PlanRequest::new(log).with_limits(limits(10_100))).unwrap();
        plan.excluded.iter().filter(|row| row.reason.name() == "policy").count()
    };
    // The result of each turn's call comes in the next turn.
    let mut log = Conversation::new();
    for turn in 0..12 {
        log.push(Message::user(format!("{turn} {}", "q".repeat(50))));
        if turn > 0 {
            log.push(Message::tool(format!("c{}", turn - 1), "r".repeat(50)));
        }
        log.push(call(&format!("c{turn}")));
        log.push(Message::assistant("working on it"));
    }
    let job = manager.compactor().due(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap();
    if let Some(job) = job {
        drop(manager.compactor().compact_without_model(&mut log, &job));
    }
    assert_eq!(orphans(&log), 0);
    // Inside the live turn, one call is answered long after the others.
    for late in 3..20 {
        let mut log = Conversation::from([Message::user("Go."), call("late")]);
        for step in 0..30 {
            log.push(call(&format!("s{step}")));
            log.push(Message::tool(format!("s{step}"), "o".repeat(100)));
            if step == late {
                log.push(Message::tool("late", "here at last"));
            }
        }
        let job =
            manager.compactor().due(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap().unwrap();
        drop(manager.compactor().compact_without_model(&mut log, &job));
        assert_eq!(orphans(&log), 0, "answered after {late} others");
    }
}

#[test]
fn fresh_strategy_keeps_unanswered_messages() {
    let manager = bytes(config(|config| config.compaction.strategy = CompactionStrategy::Fresh));
    let mut log = talk(41, 100);
    let job = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits(4_100))).unwrap().unwrap();
    log.push(Message::user("and one more"));
    manager.compactor().compact_without_model(&mut log, &job).unwrap();
    assert_eq!(ids(&log), ["m40", "m41"]);
}

/// A result comes late, after the next user message. The call and the result are one exchange across two
/// turns, and a boundary between these turns would split it. The call's whole turn is kept (rule C4).
#[test]
fn a_boundary_between_turns_parts_no_late_result() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(5)));
    let mut log = Conversation::from([
        Message::user("a".repeat(300)),
        Message::assistant("b".repeat(300)),
        Message::user("c".repeat(300)),
        Message::assistant("d".repeat(300)),
        call("late"),
        Message::user("e".repeat(300)),
        Message::tool("late", "f".repeat(300)),
        Message::assistant("g".repeat(300)),
        Message::user("h".repeat(300)),
        Message::assistant("i".repeat(300)),
    ]);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    // Five messages would begin at m5 and include the result for m4. m4 belongs to the turn of m2.
    assert_eq!(job.first_active().unwrap().as_str(), "m2");
    manager.compactor().apply_summary(&mut log, &job, "s").unwrap();
    assert_eq!(ids(&log), [vec!["#1".into()], range(2, 10)].concat());
}

/// The exchange in progress stays at any size: its results are present, its answer is not (rule C4).
#[test]
fn the_open_exchange_is_never_archived() {
    for messages in 0..4 {
        let manager = bytes(config(|config| config.compaction.retain.messages = Some(messages)));
        let mut log = talk(4, 300);
        log.extend([
            Message::user("q".repeat(300)),
            call("first"),
            Message::tool("first", "r".repeat(300)),
            call("second"),
            Message::tool("second", "s".repeat(3_000)),
        ]);
        let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
        manager.compactor().apply_summary(&mut log, &job, "s").unwrap();
        let active = ids(&log);
        assert!(active.ends_with(&range(7, 9)), "retain {messages}: {active:?}");
        assert!(active.contains(&"m4".into()), "retain {messages}: {active:?}");
    }
}

/// The result of a user's call stays with the question that a compaction inside its turn keeps. The summary
/// request holds no call that the model did not make (rule H9).
#[cfg(feature = "openai")]
#[test]
fn a_question_with_calls_keeps_their_results() {
    let user = |id: &str| Message::user("I run it.").with_tool_calls([ToolCall::new(id, "speed", "{}")]);
    let steps =
        (0..20).flat_map(|at| [call(&format!("c{at}")), Message::tool(format!("c{at}"), "x".repeat(200))]);
    let mut log = Conversation::from([user("u"), Message::assistant("I wait."), Message::tool("u", "slow")]);
    log.extend(steps);
    log.push(Message::assistant("So it is slow."));
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    let request = asking(|log| PlanRequest::new(log).with_limits(RequestLimits::prompt_budget(1_000)));
    for round in 1..4 {
        let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
        let sent = job.messages();
        let calls = sent.iter().filter(|message| message.role() == Role::User);
        assert!(calls.clone().all(|message| message.tool_calls().is_empty()), "{round}");
        let record = manager.compactor().apply_summary(&mut log, &job, "They measured.").unwrap();
        let archived: u64 = record.archived.iter().map(|run| run.count).sum();
        assert_eq!(archived, record.messages_archived);
        let active = ids(&log);
        assert_eq!(active[..2], ["m0", "m2"], "{round}: {active:?}");
        let plan = manager.build_plan(&request(&log)).unwrap();
        let included: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(included[..2], ["m0", "m2"], "{round}: {included:?}");
        assert!(plan.notices.iter().any(|notice| notice.rule() == "H9" && notice.ids.len() == 2));
        for at in 0..20 {
            log.push(call(&format!("d{round}.{at}")));
            log.push(Message::tool(format!("d{round}.{at}"), "y".repeat(200)));
        }
    }
}
