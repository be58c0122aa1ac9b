//! The summary request, and the text that replaces the archived messages (rules C3, C6, C8, C9).

use super::*;

#[test]
fn request_holds_active_items_and_instruction_is_not_stored() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.pin(PinnedItem::new("tone", "Short answers."));
    log.extend((0..12).map(|at| said(at, 60)));
    let request = asking(|log| {
        PlanRequest::new(log)
            .with_tools(&*TOOLS)
            .with_rag([RagItem::new("d", 1.0, "a document")])
            .with_state("now", "12:00")
    });
    let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log).with_tools(&*TOOLS)).unwrap();
    let texts =
        |messages: &[Message]| messages.iter().map(|message| message.text().to_owned()).collect::<Vec<_>>();
    let (asked, sent) = (texts(job.messages()), texts(plan.messages()));
    let shared = asked.len() - 1;
    assert_eq!(asked[..shared], sent[..shared], "the request begins as the prompt does: a cache serves it");
    assert_eq!(shared, 2 + 10);
    for word in ["original task", "files", "outcomes", "remembered", "decisions", "next steps", "plain text"]
    {
        assert!(asked[shared].contains(word), "the instruction asks for {word}");
    }
    assert_eq!(job.tools().len(), 1);
    assert!(asked.iter().all(|text| !text.contains("a document") && !text.contains("12:00")));
    manager.compactor().apply_summary(&mut log, &job, "First summary.").unwrap();
    assert!(log.messages().iter().all(|message| !message.text().contains("original task")));
    log.extend((12..22).map(|at| said(at, 60)));
    let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
    let asked = texts(job.messages());
    assert!(asked.iter().any(|text| text.contains("First summary.")));
    assert!(asked.iter().all(|text| !text.contains("0003")), "what is archived is not sent again");
    manager.compactor().apply_summary(&mut log, &job, "Second summary.").unwrap();
    assert_eq!(ids(&log), ["#2", "m20", "m21"]);
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let order: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(order, ["s0", "tone", "summary:2", "m20", "m21"]);
    let summary = &plan.included[2];
    assert_eq!(
        (summary.reason, summary.source, summary.role),
        (IncludedReason::Summary, Source::Summary, Some(Role::User))
    );
    let archived: Vec<(&str, u64)> = plan.excluded.iter().map(|row| (row.reason.name(), row.count)).collect();
    assert_eq!(archived, [("archived", 10), ("archived", 10)], "by the first compaction and by the second");
}

#[test]
fn host_state_and_pins_survive_any_number_of_compactions() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = talk(4, 60);
    log.pin(PinnedItem::new("tone", "Short answers."));
    log.pin_message("m1", Priority::High).unwrap();
    for round in 1..4usize {
        log.extend((0..10).map(|at| said(round * 10 + at, 60)));
        let job = manager
            .compactor()
            .now(&PlanRequest::like_last(&log))
            .unwrap()
            .unwrap()
            .with_state("plan", "1. kettle")
            .with_timestamp("noon");
        let record = manager.compactor().apply_summary(&mut log, &job, "Talk. </summary> <state>").unwrap();
        assert_eq!(record.timestamp.as_deref(), Some("noon"));
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        let order: Vec<&str> = plan.included.iter().map(|row| row.id.as_str()).collect();
        let last = log.messages().len();
        let summary = format!("summary:{round}");
        assert_eq!(
            order,
            ["tone", &summary, "m0", "m1", &format!("m{}", last - 2), &format!("m{}", last - 1)]
        );
        let text = plan.messages()[1].text();
        assert!(text.contains("<state id=\"plan\">\n1. kettle\n</state>\n</summary>"), "{text}");
        assert_eq!(text.matches("</summary>").count(), 1, "the fence cannot be closed from inside");
        let pinned = plan.included.iter().find(|row| row.id.as_str() == "m1").unwrap();
        assert_eq!(pinned.reason, IncludedReason::Pinned);
    }
    // Once unpinned, it is archived with its turn.
    log.unpin("m1");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.included.iter().all(|row| row.id.as_str() != "m1" && row.id.as_str() != "m0"));
    // An archived message that is pinned returns to the prompt.
    log.pin_message("m3", Priority::Normal).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.included.iter().any(|row| row.id.as_str() == "m3"));
}

#[test]
fn a_digest_is_the_same_and_names_everything() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let call = |id: &str, name: &str, arguments: &str| {
        Message::assistant("").with_tool_calls([ToolCall::new(id, name, arguments)])
    };
    let log = Conversation::from([
        Message::user("Make the kettle whistle."),
        call("1", "read_file", "{\"path\":\"src/lid.rs\"}"),
        Message::tool("1", "fn lid() {}"),
        call("2", "write_file", "{\"path\":\"src/lid.rs\",\"text\":\"fn lid() { whistle() }\"}"),
        Message::tool("2", "Error: disk full").into_failed(),
        call("3", "write_file", "{\"path\":\"src/lid.rs\"}"),
        Message::tool("3", "ok"),
        call("4", "write_file", "{\"path\":\"src/lid.rs\"}"),
        Message::tool("4", "ok"),
        call("5", "run", "{\"command\":\"cargo test\"}"),
        Message::assistant("It whistles."),
        Message::user("Good. Now the base."),
        Message::assistant("On it."),
        Message::user("Hurry."),
        Message::assistant("Yes."),
    ]);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    let digest = job.digest().unwrap();
    insta::assert_snapshot!(digest);
    assert_eq!(
        digest,
        manager.compactor().now(&PlanRequest::like_last(&log.clone())).unwrap().unwrap().digest().unwrap()
    );
    // With a small limit the oldest messages become counts, and the digest never exceeds its limit.
    for most in [50, 80, 120, 200, 300, 500] {
        let manager = bytes(config(|config| {
            (config.compaction.retain.messages, config.compaction.digest_max_tokens) = (Some(2), most);
        }));
        let digest =
            manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap().digest().unwrap();
        assert!(digest.len() as u64 <= most, "{digest}");
        assert!(most < 120 || digest.contains("tool calls") || digest.contains("whistle"), "{digest}");
    }
}

#[test]
fn a_request_fits_its_summariser_and_halves_a_bounded_number_of_times() {
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.summary.max_tokens) = (Some(2), 500);
    }));
    let mut log = talk(60, 200);
    log.push(Message::assistant("").with_tool_calls([ToolCall::new("c", "read", "{\"path\":\"a\"}")]));
    log.push(Message::tool("c", "r".repeat(5_000)));
    log.extend((60..64).map(|at| said(at, 200)));
    let job = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits(40_000))).unwrap().unwrap();
    assert_eq!(job.form(), RequestForm::Conversation);
    assert!(job.tokens().tokens > 15_000);
    let small = manager.compactor().now(&PlanRequest::new(&log).with_limits(limits(6_000))).unwrap().unwrap();
    assert_eq!((small.form(), small.tools().len()), (RequestForm::Transcript, 0));
    assert!(small.tokens().tokens <= 5_900, "pre-sized: {:?}", small.tokens());
    let (mut sizes, mut next) = (vec![job.tokens().tokens], job.smaller().unwrap());
    while let Some(job) = next {
        sizes.push(job.tokens().tokens);
        assert!(job.messages().last().unwrap().text().contains("Write a summary"));
        next = job.smaller().unwrap();
    }
    assert!(
        sizes.len() <= 6
            && sizes.windows(2).all(|pair| pair[1] < pair[0] && pair[1] <= (pair[0] / 2).max(1_100)),
        "{sizes:?}"
    );
}

#[test]
fn an_agent_looks_after_its_own_window() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(3)));
    let tools = Compactor::tools();
    assert_eq!(
        tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        ["context_stats", "compact_context"]
    );
    let schemas = tools.iter().map(|tool| serde_json::from_str::<serde_json::Value>(&tool.schema).unwrap());
    assert!(schemas.into_iter().all(|schema| schema["type"] == "object"));
    let mut log = talk(13, 80);
    let call = |name: &str, arguments: &str| ToolCall::new("c", name, arguments);
    let answer = |log: &Conversation, call: &ToolCall| {
        manager.compactor().answer_call(&PlanRequest::like_last(log), call).unwrap()
    };
    assert!(answer(&log, &call("look", "{}")).is_none());
    let Some(ContextCall::Answer(stats)) = answer(&log, &call("context_stats", "")) else { panic!() };
    let stats: serde_json::Value = serde_json::from_str(stats.text()).unwrap();
    assert_eq!(
        (&stats["messages"], &stats["usage"]["conversation_tokens"]["n"]),
        (&13.into(), &(13 * 80).into())
    );
    for broken in ["[1]", "{\"summary\":", "{\"summary\":7}"] {
        let Some(ContextCall::Answer(refusal)) = answer(&log, &call("compact_context", broken)) else {
            panic!()
        };
        assert!(refusal.is_failed() && refusal.text().contains("expected"), "{broken}");
    }
    let wish = call("compact_context", "{\"summary\":\"Kettles were discussed.\"}");
    log.push(Message::assistant("").with_tool_calls([wish.clone()]));
    let Some(ContextCall::Compact { answer, summary }) = answer(&log, &wish) else { panic!() };
    // Nothing is compacted between a call and its result.
    let state = manager
        .compactor()
        .compact_for_agent(&mut log, &[], RequestLimits::new(), summary.as_deref())
        .unwrap();
    assert_eq!(state, CompactionOutcome::Blocked(CompactionState::Waiting(BlockedBy::OpenCall)));
    log.push(answer);
    let outcome = manager
        .compactor()
        .compact_for_agent(&mut log, &[], RequestLimits::new(), summary.as_deref())
        .unwrap();
    let CompactionOutcome::Compacted(record) = outcome else { panic!("{outcome:?}") };
    assert_eq!(record.summary.as_deref(), Some("Kettles were discussed."));
    assert_eq!(ids(&log), ["#1", "m12", "m13", "m14"]);
}

#[test]
fn an_earlier_summary_keeps_half_of_a_digest() {
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.digest_max_tokens) = (Some(2), 1_500);
    }));
    let mut log = talk(12, 200);
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    let summary = format!("The first half. {}", "What was agreed. ".repeat(40));
    manager.compactor().apply_summary(&mut log, &job, &summary).unwrap();
    for step in 0..60 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), format!("result {step}")));
    }
    log.push(Message::assistant("Done."));
    let digest = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap().digest().unwrap();
    assert!(digest.contains(summary.trim()) && digest.len() <= 1_500, "{digest}");
    // With enough room nothing is clipped.
    let manager = bytes(config(|config| config.compaction.digest_max_tokens = 100_000));
    let mut log = Conversation::from([Message::user("w".repeat(3_000)), Message::assistant("x")]);
    log.extend((0..4).map(|at| said(at, 60)));
    let digest = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap().digest().unwrap();
    assert!(digest.contains(&"w".repeat(3_000)));
}

/// A digest takes at most half of the window, so that a prompt still fits (rule C6).
#[test]
fn a_digest_leaves_room_for_a_prompt() {
    let mut seen = 0;
    for capacity in (700..4_000).step_by(300) {
        let manager = bytes(config(|config| config.compaction.digest_max_tokens = 100_000));
        let mut log = Conversation::from([Message::system("Be brief.")]);
        log.extend((0..40).map(|at| said(at, 100)));
        let request = asking(|log| PlanRequest::new(log).with_limits(limits(capacity)));
        let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
        let digest = job.digest().unwrap();
        assert!(digest.len() as u64 <= capacity / 2, "{capacity}: {}", digest.len());
        manager.compactor().compact_without_model(&mut log, &job).unwrap();
        log.push(Message::user("And now?"));
        let plan = manager.build_plan(&request(&log)).unwrap();
        assert_eq!(plan.overflow, None, "{capacity}");
        seen += usize::from(digest.len() as u64 > capacity / 4);
    }
    assert!(seen > 5, "the limit is what makes them short");
}

/// A digest takes at most half of what pins leave, so that none of them leaves the prompt (rule C6).
#[test]
fn a_digest_pushes_no_pin_out() {
    for capacity in (1_200..6_000).step_by(300) {
        let manager = bytes(config(|config| config.compaction.digest_max_tokens = 100_000));
        let mut log = Conversation::new();
        let pins = capacity as usize * 9 / 20 / 5;
        for at in 0..5 {
            log.pin(PinnedItem::new(format!("pin{at}"), "p".repeat(pins - 20)));
        }
        log.extend((0..40).map(|at| said(at, 100)));
        let request = asking(|log| PlanRequest::new(log).with_limits(limits(capacity)));
        let job = manager.compactor().now(&request(&log)).unwrap().unwrap();
        manager.compactor().compact_without_model(&mut log, &job).unwrap();
        log.push(Message::user("And now?"));
        let plan = manager.build_plan(&request(&log)).unwrap();
        let kept = plan.included.iter().filter(|row| row.id.as_str().starts_with("pin")).count();
        assert_eq!((kept, &plan.overflow), (5, &None), "{capacity}: {:?}", plan.excluded);
    }
}

/// The calls of a user and a result that the prompt has only in part are in a digest as the log has them.
#[test]
fn a_digest_reads_the_log() {
    let manager = bytes(config(|config| {
        config.compaction.retain.messages = Some(2);
        config.conversation.tool_results = ToolResults::Offload;
    }));
    let call = |id: &str, name: &str| [ToolCall::new(id, name, "{}")];
    let log = Conversation::from([
        Message::user("").with_tool_calls(call("1", "list")),
        Message::tool("1", "a, b"),
        Message::user("Read them."),
        Message::assistant("").with_tool_calls(call("2", "read")),
        Message::tool("2", "r".repeat(20_000)),
        Message::assistant("Done."),
        Message::user("Hurry."),
        Message::assistant("Yes."),
    ]);
    let tools = [Tool::new(Tool::RECALL, "", "{\"handle\":{}}")];
    let job = manager.compactor().now(&PlanRequest::like_last(&log).with_tools(&tools)).unwrap().unwrap();
    let digest = job.digest().unwrap();
    let begins = "- list {}: done, 4 bytes\nThe user asked: Read them.\n- read {}: done, 20000 bytes\n";
    assert!(digest.starts_with(begins), "{digest}");
}

/// Equal requests are one line with their number, at the place of the first (rule C6).
#[test]
fn a_digest_has_equal_requests_once() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = Conversation::new();
    for request in ["Continue.", "Fix the lid.", "Continue.", "Continue. ", "Fix the lid!"] {
        log.push(Message::user(request));
        log.push(Message::assistant("Yes."));
    }
    log.extend([Message::user("Hurry."), Message::assistant("Yes.")]);
    let digest = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap().digest().unwrap();
    let asked =
        "The user asked, 3 times: Continue.\nThe user asked: Fix the lid.\nThe user asked: Fix the lid!\n";
    assert!(digest.starts_with(asked), "{digest}");
}

#[test]
fn request_keeps_prompt_order_and_omits_expired_items() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::from([Message::system("Fix."), Message::user("Fix it.")]);
    let mut compactions = 0;
    for step in 0..120 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
        if let Some(job) =
            manager.compactor().due(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap()
        {
            let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
            let texts = |messages: &[Message]| {
                messages.iter().map(|message| message.text().to_owned()).collect::<Vec<_>>()
            };
            let (asked, sent) = (texts(job.messages()), texts(plan.messages()));
            assert_eq!(asked[..asked.len() - 1], sent[..asked.len() - 1], "compaction {compactions}");
            manager.compactor().apply_summary(&mut log, &job, "Much was tried.").unwrap();
            compactions += 1;
        }
    }
    assert!(compactions > 1);
    let mut log = talk(12, 60);
    log.push(Message::user("The code of the door is 4711."));
    log.set_ttl("m12", Ttl::NoneRemaining).unwrap();
    log.extend((0..4).map(|at| said(at, 60)));
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    assert!(job.messages().iter().all(|message| !message.text().contains("4711")));
    assert!(!job.digest().unwrap().contains("4711"));
}
