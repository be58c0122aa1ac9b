//! Conditions under which a conversation is compacted or not (rules C2, C5).

use super::*;
use crate::support::generate;
use proptest::prelude::*;

#[test]
fn triggers_are_ored_and_count_their_boundary() {
    let due = |log: &Conversation, change: &dyn Fn(&mut CompactionOptions)| {
        let manager = bytes(config(|config| {
            config.compaction.percent = 0;
            config.compaction.on_drop = false;
            change(&mut config.compaction);
        }));
        manager.compactor().state(&PlanRequest::new(log).with_limits(limits(10_100))).unwrap()
    };
    let log = talk(40, 100); // 4,000 tokens of 10,000, 20 turns
    use CompactionState::{Due, NotDue};
    assert_eq!(due(&log, &|_| {}), NotDue);
    for (strict, at, before) in [(false, 40, 41), (true, 39, 40)] {
        let percent = |n: u16| {
            due(&log, &move |options| (options.percent, options.target, options.strict) = (n, 10, strict))
        };
        assert_eq!((percent(at), percent(before)), (Due(Trigger::Percent), NotDue));
        let messages = |n| due(&log, &move |options| (options.messages, options.strict) = (Some(n), strict));
        assert_eq!((messages(u64::from(at)), messages(u64::from(before))), (Due(Trigger::Messages), NotDue));
    }
    let tokens = |n| due(&log, &move |options| options.tokens = Some(n));
    assert_eq!((tokens(4_000), tokens(4_001)), (Due(Trigger::Tokens), NotDue));
    let remaining = |n| due(&log, &move |options| options.remaining = Some(n));
    assert_eq!((remaining(6_000), remaining(5_999)), (Due(Trigger::Remaining), NotDue));
    let turns = |n| due(&log, &move |options| options.turns = Some(n));
    assert_eq!((turns(20), turns(21)), (Due(Trigger::Turns), NotDue));
    assert_eq!(due(&talk(204, 100), &|options| options.on_drop = true), Due(Trigger::OnDrop));
    let both = due(&log, &|options| (options.tokens, options.messages) = (Some(9_999), Some(1)));
    assert_eq!(both, Due(Trigger::Messages));
    // One model has its own triggers.
    let own = due(&log, &|options| {
        let mut of_model = CompactionOverrides::default();
        of_model.tokens = Some(3_000);
        options.models.insert("test".into(), of_model);
    });
    assert_eq!(own, Due(Trigger::Tokens));
}

#[test]
fn each_obstacle_has_its_compaction_state() {
    let options = |change: &dyn Fn(&mut CompactionOptions)| {
        bytes(config(|config| {
            config.compaction.messages = Some(4);
            change(&mut config.compaction);
        }))
    };
    let state = |manager: &ContextWindowManager, log: &Conversation| {
        let request = PlanRequest::new(log).with_limits(limits(10_100));
        (manager.compactor().state(&request).unwrap(), manager.compactor().now(&request).unwrap().is_some())
    };
    use CompactionState::{Due, Waiting};
    let manager = options(&|_| {});
    let log = talk(12, 50);
    assert_eq!(state(&manager, &log), (Due(Trigger::Messages), true));
    assert_eq!(
        state(&options(&|options| options.enabled = false), &log),
        (Waiting(BlockedBy::Disabled), true)
    );
    // On request, a short conversation is no obstacle.
    assert_eq!(state(&manager, &talk(8, 50)), (Waiting(BlockedBy::TooShort), true));
    assert_eq!(state(&manager, &Conversation::new()), (Waiting(BlockedBy::Empty), false));
    let mut playing = log.clone();
    playing.set_playback(true);
    assert_eq!(state(&manager, &playing), (Waiting(BlockedBy::Playback), false));
    let mut responding = log.clone();
    responding.set_responding(true);
    assert_eq!(state(&manager, &responding), (Waiting(BlockedBy::Responding), false));
    let mut calling = log.clone();
    calling.push(Message::user("and now?"));
    calling.push(Message::assistant("").with_tool_calls([ToolCall::new("c", "look", "{}")]));
    assert_eq!(state(&manager, &calling), (Waiting(BlockedBy::OpenCall), false));
    calling.push(Message::tool("c", "done"));
    assert_eq!(state(&manager, &calling), (Due(Trigger::Messages), true));
    let mut compacted = log.clone();
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager.compactor().apply_summary(&mut compacted, &job, "They talked.").unwrap();
    assert_eq!(state(&manager, &compacted), (Waiting(BlockedBy::JustCompacted), false));
    compacted.push(Message::user("more"));
    assert_eq!(state(&manager, &compacted).0, Waiting(BlockedBy::NoReply));
    compacted.push(Message::assistant("here"));
    assert_ne!(state(&manager, &compacted).0, Waiting(BlockedBy::NoReply));
    let nowhere = manager
        .compactor()
        .state(&PlanRequest::new(&log).with_limits(RequestLimits::new().with_model_context_len(0)));
    assert_eq!(nowhere.unwrap(), Waiting(BlockedBy::UnknownLimit));
    let unknown = PlanRequest::new(&log).with_limits(RequestLimits::new().with_model_context_len(0));
    assert!(manager.compactor().now(&unknown).unwrap().is_none(), "for nobody");
    // The window is known, but leaves no tokens for a prompt.
    for no_room in [
        RequestLimits::new().with_model_context_len(1_000).with_max_completion_tokens(1_000),
        RequestLimits::new()
            .with_model_context_len(1_000)
            .with_max_completion_tokens(900)
            .with_safety_buffer(100),
        RequestLimits::new().with_max_completion_tokens(900_000),
        RequestLimits::new().with_max_input(0),
        RequestLimits::prompt_budget(0),
        RequestLimits::prompt_budget(10).with_model_context_len(100).with_max_completion_tokens(100),
    ] {
        let request = PlanRequest::new(&log).with_limits(no_room);
        assert_eq!(manager.compactor().state(&request).unwrap(), Waiting(BlockedBy::NoRoom), "{no_room:?}");
        assert!(manager.compactor().now(&request).unwrap().is_none());
    }
}

/// Checks the state when a trigger fires although every message has to stay.
#[test]
fn state_reports_nothing_to_archive() {
    let nothing = CompactionState::Waiting(BlockedBy::NothingToArchive);
    let manager = bytes(config(|config| config.compaction.min_messages = 1));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(2_100)));
    let mut log = Conversation::from([Message::user("u".repeat(2_000))]);
    assert_eq!(manager.compactor().state(&request(&log)).unwrap(), nothing);
    assert!(manager.compactor().due(&request(&log)).unwrap().is_none());
    // The system text alone is over the trigger.
    let mut led = Conversation::from([Message::system("s".repeat(1_900)), Message::user("Go.")]);
    assert_eq!(manager.compactor().state(&request(&led)).unwrap(), nothing);
    led.push(Message::user("Go on."));
    assert!(matches!(manager.compactor().state(&request(&led)).unwrap(), CompactionState::Due(_)));
    // A request by an agent reports the same state.
    let asked = manager.compactor().compact_for_agent(&mut log, &[], limits(2_100), None).unwrap();
    assert_eq!(asked, CompactionOutcome::Blocked(nothing));
    assert_eq!(BlockedBy::NothingToArchive.text(), "every active message must be kept");
    // One answered exchange: a summary could replace it, but a sliding window has nothing to drop.
    let sliding = bytes(config(|config| {
        config.compaction.min_messages = 1;
        config.compaction.strategy = CompactionStrategy::SlidingWindow;
    }));
    log.push(Message::assistant("a"));
    assert!(matches!(manager.compactor().state(&request(&log)).unwrap(), CompactionState::Due(_)));
    assert_eq!(sliding.compactor().state(&request(&log)).unwrap(), nothing);
}

proptest! {
    #![proptest_config(generate::cases(300, 20_000))]

    /// A loop that compacts while a compaction is due ends for every conversation and every strategy. A job
    /// is returned exactly if the state reports that it is due.
    #[test]
    fn a_loop_that_compacts_while_it_is_due_ends(
        session in generate::session(), strategy in 0u8..3, how in 0u8..4, context in 101u64..1_500,
        at_once: bool,
    ) {
        let mut session = session;
        session.config.compaction.strategy = match strategy {
            0 => CompactionStrategy::Summary,
            1 => CompactionStrategy::SlidingWindow,
            _ => CompactionStrategy::Fresh,
        };
        session.config.compaction.min_messages = 1;
        session.config.compaction.messages = at_once.then_some(1);
        let manager = session.manager();
        let mut log = session.log();
        let request = asking(|log| PlanRequest::new(log).with_limits(limits(context)));
        let mut rounds = 0;
        while let Ok(state) = manager.compactor().state(&request(&log)) {
            let job = manager.compactor().due(&request(&log)).unwrap();
            prop_assert_eq!(matches!(state, CompactionState::Due(_)), job.is_some(), "{:?}", state);
            let Some(job) = job else { break };
            rounds += 1;
            prop_assert!(rounds <= 3, "{:?} for ever", state);
            let _ = match how {
                0 => manager.compactor().apply_summary(&mut log, &job, ""),
                1 => manager.compactor().apply_summary(&mut log, &job, &"long ".repeat(900)),
                2 => manager.compactor().apply_summary(&mut log, &job, "s"),
                _ => manager.compactor().compact_without_model(&mut log, &job),
            };
        }
    }
}

#[test]
fn useless_compaction_changes_nothing_and_stops_retries() {
    let manager = bytes(config(|config| (config.compaction.percent, config.compaction.target) = (85, 50)));
    let request = asking(|log| PlanRequest::new(log).with_limits(limits(4_100)));
    let mut log = talk(41, 100);
    let unchanged = |log: &Conversation| assert_eq!(ids(log), range(0, 41));
    let job = manager.compactor().due(&request(&log)).unwrap().unwrap();
    for (answer, why) in [
        ("", "expected a summary, found nothing"),
        (" \n\t", "expected a summary, found nothing"),
        ("<think>hm</think>  ", "expected a summary, found nothing"),
        ("<tool_call>{\"name\":\"x\"}</tool_call>", "a tool call"),
        (&*"long ".repeat(2_000), "expected a shorter summary"),
    ] {
        let error = manager.compactor().apply_summary(&mut log, &job, answer).unwrap_err();
        let kind =
            if why == "expected a shorter summary" { ErrorKind::NotSmaller } else { ErrorKind::NoSummary };
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(why), "{error}");
        unchanged(&log);
    }
    // After five failures nothing more is requested until the next user message.
    let state = manager.compactor().state(&request(&log)).unwrap();
    assert_eq!(state, CompactionState::Stopped { attempts: 5 });
    assert!(manager.compactor().due(&request(&log)).unwrap().is_none());
    log.push(said(42, 100));
    assert!(manager.compactor().due(&request(&log)).unwrap().is_some());
}

#[test]
fn three_compactions_without_progress_stop_the_loop() {
    // The items that cannot be archived are over the trigger by themselves.
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::new();
    log.push_system("rules", "r".repeat(9_000));
    log.extend((0..10).map(|at| said(at, 20)));
    let mut compactions = 0;
    for at in 0..100 {
        let request = PlanRequest::new(&log).with_limits(limits(10_100));
        if let Some(job) = manager.compactor().due(&request).unwrap() {
            compactions += usize::from(manager.compactor().apply_summary(&mut log, &job, "s").is_ok());
        }
        // An agent at work, without user messages.
        for _ in 0..6 {
            log.push(Message::assistant(format!("{at} {}", "w".repeat(20))));
        }
    }
    assert_eq!(compactions, 3);
    let state = manager.compactor().state(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap();
    assert_eq!(state, CompactionState::Stopped { attempts: 3 });
    log.push(Message::user("Go on."));
    assert!(manager.compactor().due(&PlanRequest::new(&log).with_limits(limits(10_100))).unwrap().is_some());
}

#[test]
fn a_smaller_window_is_planned_for_before_anything_is_sent() {
    let log = talk(40, 100);
    let large = PlanRequest::new(&log).with_limits(limits(10_100));
    let manager = bytes(Config::default());
    assert_eq!(manager.compactor().state(&large).unwrap(), CompactionState::NotDue);
    let small = PlanRequest::new(&log).with_limits(limits(2_100));
    assert!(manager.build_plan(&small).unwrap().estimated_tokens_total.tokens <= 2_000);
    assert_eq!(manager.compactor().state(&small).unwrap(), CompactionState::Due(Trigger::Percent));
}

#[test]
fn fifty_turns_break_the_prefix_as_rarely_as_possible() {
    let manager = bytes(config(|config| {
        config.tokens.calibrate = false;
        config.compaction.summary.max_tokens = 200;
    }));
    let (growth, context) = (300u64, 10_100);
    let (high, low) = (8_500, 5_000);
    let mut log = Conversation::new();
    let (mut breaks, mut compactions) = (0, 0);
    let mut turn = 0;
    let mut past = 0;
    while past < 50 {
        log.push(Message::user(format!("{turn:04}{}", "u".repeat(96))));
        let request = PlanRequest::new(&log).with_limits(limits(context));
        let plan = manager.build_plan(&request).unwrap();
        breaks += u64::from(plan.repeated().is_some_and(|prefix| prefix.tokens < prefix.of));
        log.push_reply(&plan, Message::assistant("a".repeat(200)), None);
        let job = manager.compactor().due(&PlanRequest::new(&log).with_limits(limits(context))).unwrap();
        past += u64::from(job.is_some() || past > 0);
        if let Some(job) = job {
            let record = manager.compactor().apply_summary(&mut log, &job, &"s".repeat(200)).unwrap();
            assert!(record.tokens_after <= low && record.progress, "{record:?}");
            compactions += 1;
        }
        turn += 1;
    }
    let most = (50 * growth).div_ceil(high - low);
    assert!(breaks <= most && compactions > 1, "{breaks} breaks, {compactions} compactions, at most {most}");
}

#[test]
fn manual_compaction_waits_for_open_calls() {
    let manager = bytes(Config::default());
    let mut log = talk(12, 60);
    log.push(Message::user("go"));
    log.push(
        Message::assistant("")
            .with_tool_calls([ToolCall::new("b", "look", "{}"), ToolCall::new("c", "look", "{}")]),
    );
    log.push(Message::tool("b", "done"));
    assert!(
        manager.compactor().range(&PlanRequest::like_last(&log), None, None).unwrap().is_none(),
        "a call waits"
    );
    log.push(Message::tool("c", "done"));
    let job =
        manager.compactor().range(&PlanRequest::like_last(&log), None, Some(&"m3".into())).unwrap().unwrap();
    log.set_responding(true);
    let error = manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap_err();
    assert!(error.to_string().contains("a reply is being received"), "{error}");
    log.set_responding(false);
    manager.compactor().apply_summary(&mut log, &job, "They talked.").unwrap();
    // Items at the start of the prompt are part of no range.
    let mut log = Conversation::from([Message::system("Be brief.")]);
    log.extend((0..10).map(|at| said(at, 80)));
    let job = manager
        .compactor()
        .range(&PlanRequest::like_last(&log), Some(&"m0".into()), Some(&"m4".into()))
        .unwrap()
        .unwrap();
    let texts: Vec<&str> = job.messages().iter().map(Message::text).collect();
    assert_eq!(texts.iter().filter(|text| **text == "Be brief.").count(), 1);
    assert_eq!(manager.compactor().apply_summary(&mut log, &job, "s").unwrap().messages_archived, 4);
}

#[test]
fn successful_compaction_resets_failures() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::from([Message::user("Go on for ever.")]);
    let mut helped = 0;
    for step in 0..400 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
        let request = PlanRequest::new(&log).with_limits(limits(10_100));
        if let Some(job) = manager.compactor().due(&request).unwrap() {
            assert!(manager.compactor().apply_summary(&mut log, &job, "").is_err());
            helped +=
                usize::from(manager.compactor().compact_without_model(&mut log, &job).unwrap().progress);
        }
    }
    assert!(helped > 5, "{helped}");
}

/// The digest is longer than its messages, and no turn can be dropped: the error contains the token counts
/// (rule C5).
#[test]
fn a_compaction_without_a_model_that_does_not_shrink_has_figures() {
    let mut log = Conversation::from([Message::user("Hi."), Message::assistant("Yo.")]);
    let manager = bytes(config(|_| {}));
    let request = PlanRequest::new(&log).with_limits(limits(10_100));
    let job = manager.compactor().range(&request, None, None).unwrap().unwrap();
    let error = manager.compactor().compact_without_model(&mut log, &job).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSmaller, "{error}");
    assert!(error.to_string().contains("tokens, 6 without"), "{error}");
    assert_eq!(log.compactions().count(), 0);
}
