//! Usage, levels and compaction, behaviour by behaviour: rules U1 to U4 and C1 to C10.
#![allow(clippy::pedantic, clippy::unwrap_used, missing_docs, reason = "a test")]

use context_window::*;

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    change(&mut config);
    config
}

/// A planner whose tokens are bytes and nothing else, for round numbers.
fn bytes(config: Config) -> ContextWindowManager {
    let model = Model::custom("test").in_form(Framing::Plain);
    ContextWindowManager::new(
        model,
        TokenCounter::from_fn("bytes", |text| Ok::<_, std::convert::Infallible>(text.len() as u64)),
        config,
    )
    .unwrap()
}

fn limits(context_len: u64) -> RequestLimits {
    RequestLimits::new().context_len(context_len).max_completion(100).safety_buffer(0)
}

/// A closure that takes a conversation of any lifetime.
fn asking<F: Fn(&Conversation) -> PlanRequest<'_>>(request: F) -> F {
    request
}

static TOOLS: std::sync::LazyLock<[Tool; 1]> =
    std::sync::LazyLock::new(|| [Tool::new("look", "Looks.", "{}")]);

/// Messages of so many bytes each, user and assistant in turn.
fn talk(messages: usize, size: usize) -> Conversation {
    (0..messages).map(|at| said(at, size)).collect::<Vec<_>>().into()
}

fn said(at: usize, size: usize) -> Message {
    let text = format!("{at:04} {}", "x".repeat(size - 5));
    if at.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) }
}

fn ids(log: &Conversation) -> Vec<String> {
    log.active()
        .map(|part| match part {
            Active::Message { id, .. } => id.as_str().to_owned(),
            Active::Summary(record) => format!("#{}", record.number),
            _ => unreachable!(),
        })
        .collect()
}

fn range(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|at| format!("m{at}")).collect()
}

#[test]
fn behaviour_42_levels_tell_each_crossing_once_and_percent_is_honest() {
    let manager = bytes(config(|config| {
        config.tokens.calibrate = false;
        config.compaction.enabled = false;
    }));
    let mut log = Conversation::new();
    let mut told = Vec::new();
    for at in 0..14 {
        log.push(said(at, 100));
        let usage = manager.usage(PlanRequest::new(&log).limits(limits(1_100))).unwrap();
        assert_eq!(usage.percent, (at as u64 + 1) * 10);
        for event in log.observe(usage) {
            if let ContextEvent::LevelCrossed { from, to } = event {
                told.push((at + 1, from, to));
            }
        }
    }
    use Level::{Approaching, AtLimit, Normal};
    assert_eq!(told, [(8, Normal, Approaching), (10, Approaching, AtLimit)]);
    assert_eq!(log.level(), AtLimit);
    log.start_fresh();
    assert_eq!(log.level(), Normal);
}

#[test]
fn the_lights_of_a_window_of_200k_are_amber_at_150k_and_red_at_200k() {
    let options = Config::preset("lights").unwrap().usage;
    let log = Conversation::new();
    let request = PlanRequest::new(&log).limits(RequestLimits::new().context_len(200_000));
    let limits = bytes(Config::default()).build_plan(&request).unwrap().limits;
    let level = |tokens| Level::of(tokens, &limits, &options);
    assert_eq!([149_999, 150_000, 199_999, 200_000].map(level), {
        use Level::{Approaching, AtLimit, Normal};
        [Normal, Approaching, Approaching, AtLimit]
    });
}

#[test]
fn behaviour_38_documents_count_in_no_trigger_and_no_warning_and_a_paste_does_at_once() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = talk(20, 20);
    let documents =
        || (0..50).map(|at| RagItem::new(format!("d{at}"), 1.0, format!("{at:04}{}", "y".repeat(396))));
    let request = asking(|log| PlanRequest::new(log).limits(limits(5_100)).rag(documents()));
    let plan = manager.build_plan(&request(&log)).unwrap();
    assert!(plan.total.n > 4_500, "the documents fill the window");
    let quiet = manager.usage(request(&log)).unwrap();
    assert_eq!((quiet.level, quiet.pressure.n), (Level::Normal, 400));
    assert_eq!(plan.usage.pressure.n, 400);
    // What the provider reports holds the documents too, and they are taken off again.
    log.push_reply(&plan, said(21, 20), Usage::openai(plan.total.n, 0, 20));
    let reported = manager.usage(request(&log)).unwrap();
    assert!(reported.reported);
    assert_eq!((reported.level, reported.pressure.n), (Level::Normal, 420));
    assert_eq!(manager.compaction_state(request(&log)).unwrap(), CompactionState::NotDue);
    log.push(Message::user("z".repeat(4_000)));
    let pasted = manager.usage(request(&log)).unwrap();
    assert_eq!((pasted.pressure.n, pasted.level), (4_420, Level::Approaching));
    assert_eq!(manager.compaction_state(request(&log)).unwrap(), CompactionState::Due(Trigger::Percent));
}

#[test]
fn behaviour_37_reports_replace_estimates_and_nonsense_falls_through() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).limits(limits(10_100)));
    let mut log = talk(11, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    log.push_reply(&plan, said(11, 100), Usage::anthropic(200, 300, 900, 130));
    let pressure = |log: &Conversation| manager.usage(request(log)).unwrap().pressure.n;
    assert_eq!(pressure(&log), 1_530, "input, both caches and the reply");
    log.push(said(12, 100));
    assert_eq!(pressure(&log), 1_630, "and what came after");
    for usage in
        [None, Some(Usage::default()), Some(Usage::openai(9_999_999, 0, 1)), Some(Usage::openai(9, 0, 1))]
    {
        let plan = manager.build_plan(&request(&log)).unwrap();
        log.push_reply(&plan, said(13, 100), usage);
        assert_eq!(
            pressure(&log),
            1_630 + 100 * (log.messages().len() as u64 - 13),
            "{usage:?} is not believed"
        );
    }
    // The lifetime's bill is another number.
    assert_eq!(log.billed().cache_read, 900);
    let stats = manager.stats(request(&log)).unwrap();
    assert_eq!((stats.messages, stats.active, stats.archived, stats.compactions), (17, 17, 0, 0));
}

#[test]
fn behaviour_44_45_triggers_are_ored_and_count_their_boundary() {
    let due = |log: &Conversation, change: &dyn Fn(&mut CompactionOptions)| {
        let manager = bytes(config(|config| {
            config.compaction.percent = 0;
            config.compaction.on_drop = false;
            change(&mut config.compaction);
        }));
        manager.compaction_state(PlanRequest::new(log).limits(limits(10_100))).unwrap()
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
    // One model has triggers of its own.
    let own = due(&log, &|options| {
        let mut of_model = TriggerOptions::default();
        of_model.tokens = Some(3_000);
        options.models.insert("test".into(), of_model);
    });
    assert_eq!(own, Due(Trigger::Tokens));
}

#[test]
fn behaviour_46_57_what_stands_in_the_way() {
    let options = |change: &dyn Fn(&mut CompactionOptions)| {
        bytes(config(|config| {
            config.compaction.messages = Some(4);
            change(&mut config.compaction);
        }))
    };
    let state = |manager: &ContextWindowManager, log: &Conversation| {
        let request = PlanRequest::new(log).limits(limits(10_100));
        (
            manager.compaction_state(request.clone()).unwrap(),
            manager.compaction_now(request).unwrap().is_some(),
        )
    };
    use CompactionState::{Due, Waiting};
    let manager = options(&|_| {});
    let log = talk(12, 50);
    assert_eq!(state(&manager, &log), (Due(Trigger::Messages), true));
    assert_eq!(state(&options(&|options| options.enabled = false), &log), (Waiting(Gate::Disabled), false));
    // Asked for, it does not matter how little there is.
    assert_eq!(state(&manager, &talk(8, 50)), (Waiting(Gate::TooShort), true));
    assert_eq!(state(&manager, &Conversation::new()), (Waiting(Gate::Empty), false));
    let mut playing = log.clone();
    playing.playback(true);
    assert_eq!(state(&manager, &playing), (Waiting(Gate::Playback), false));
    let mut responding = log.clone();
    responding.responding(true);
    assert_eq!(state(&manager, &responding), (Waiting(Gate::Responding), false));
    let mut calling = log.clone();
    calling.push(Message::user("and now?"));
    calling.push(Message::assistant("").calls([ToolCall::new("c", "look", "{}")]));
    assert_eq!(state(&manager, &calling), (Waiting(Gate::OpenCall), false));
    calling.push(Message::tool("c", "done"));
    assert_eq!(state(&manager, &calling), (Due(Trigger::Messages), true));
    let mut compacted = log.clone();
    let job = manager.compaction_now(&log).unwrap().unwrap();
    manager.apply_compaction(&mut compacted, &job, "They talked.").unwrap();
    assert_eq!(state(&manager, &compacted), (Waiting(Gate::JustCompacted), false));
    compacted.push(Message::user("more"));
    assert_eq!(state(&manager, &compacted).0, Waiting(Gate::NoReply));
    compacted.push(Message::assistant("here"));
    assert_ne!(state(&manager, &compacted).0, Waiting(Gate::NoReply));
    let nowhere =
        manager.compaction_state(PlanRequest::new(&log).limits(RequestLimits::new().context_len(0)));
    assert_eq!(nowhere.unwrap(), Waiting(Gate::UnknownLimit));
    let unknown = PlanRequest::new(&log).limits(RequestLimits::new().context_len(0));
    assert!(manager.compaction_now(unknown).unwrap().is_none(), "for nobody");
}

#[test]
fn a_summary_and_a_tail_are_kept_as_published() {
    let mut config = Config::preset("summary-tail").unwrap();
    config.compaction.percent = 0;
    config.compaction.messages = Some(10);
    config.compaction.target = 100;
    let manager = ContextWindowManager::configured(Model::custom("test"), config.clone()).unwrap();
    // Messages 0 to 5 of 10 are summarised and 4 stay: 40 % of 10.
    let mut log = talk(10, 400);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    assert_eq!((job.messages_archived(), job.first_active().unwrap().as_str()), (6, "m6"));
    assert_eq!(job.event(), ContextEvent::SummaryRequested { messages: 6 });
    let record = manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    let freed = record.tokens_before - record.tokens_after;
    assert_eq!(record.event(), ContextEvent::Compacted { number: 1, messages: 6, freed });
    assert_eq!((record.number, record.messages_archived, record.archived.len()), (1, 6, 1));
    assert_eq!((record.archived[0].id.as_str(), record.archived[0].last_id.as_str()), ("m0", "m5"));
    assert_eq!(ids(&log), [vec!["#1".into()], range(6, 10)].concat());
    // A log of 30 messages, 4 archived: 10 of the 26 active ones stay, the smaller of 10 and 40 %.
    let mut log = talk(10, 400);
    config.compaction.retain.messages = Some(6);
    config.compaction.retain.active = None;
    let first = ContextWindowManager::configured(Model::custom("test"), config).unwrap();
    let job = first.compaction_now(&log).unwrap().unwrap();
    first.apply_compaction(&mut log, &job, "They talked.").unwrap();
    log.extend((10..30).map(|at| said(at, 400)));
    assert_eq!(ids(&log).len(), 27);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    let record = manager.apply_compaction(&mut log, &job, "They talked on.").unwrap();
    assert_eq!((record.number, record.messages_archived), (2, 16));
    assert_eq!(ids(&log), [vec!["#2".into()], range(20, 30)].concat());
}

#[test]
fn what_is_kept_never_starts_with_a_call() {
    for messages in 0..8 {
        let manager = bytes(config(|config| config.compaction.retain.messages = Some(messages)));
        let mut log = Conversation::from([
            Message::system("Be brief."),
            Message::user("a".repeat(300)),
            Message::assistant("b".repeat(300)),
            Message::assistant("").calls([ToolCall::new("c", "look", "{}")]),
            Message::tool("c", "d".repeat(300)),
            Message::user("e".repeat(300)),
            Message::assistant("f".repeat(300)),
        ]);
        let job = manager.compaction_now(&log).unwrap().unwrap();
        manager.apply_compaction(&mut log, &job, "s").unwrap();
        let active = ids(&log);
        // Too little for the last turn: its question and the summary alone.
        let expected: &[&str] = if messages < 2 { &["m0", "m5", "#1"] } else { &["m0", "#1", "m5", "m6"] };
        assert_eq!(active, expected, "retain {messages}");
    }
}

#[test]
fn behaviour_55_the_live_question_stays_whatever_is_kept() {
    let manager = bytes(Config::preset("summary-only").unwrap());
    let mut log = talk(21, 100);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m20"], "an unanswered question stands after the summary");
    let mut answered = talk(20, 100);
    let job = manager.compaction_now(&answered).unwrap().unwrap();
    manager.apply_compaction(&mut answered, &job, "They talked.").unwrap();
    assert_eq!(ids(&answered), ["m18", "#1"]);
    // More than there is: nothing is left to archive but what stands before the live turn.
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.retain.capacity) = (Some(99), 100);
    }));
    let mut log = talk(10, 100);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m8", "m9"]);
}

#[test]
fn agents_compact_inside_the_live_turn() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::from([Message::system("You fix kettles."), Message::user("Fix it.")]);
    let mut compactions = Vec::new();
    for step in 0..200 {
        let call = ToolCall::new(format!("c{step}"), "run", format!("{{\"path\":\"part{step}\"}}"));
        log.push(Message::assistant("").calls([call]));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
        let request = PlanRequest::new(&log).limits(limits(10_100));
        assert!(manager.build_plan(&request).unwrap().overflow.is_none());
        if let Some(job) = manager.compaction_due(request).unwrap() {
            assert_eq!(job.head().unwrap().as_str(), "m1");
            let record = manager.apply_compaction(&mut log, &job, "Much was tried.").unwrap();
            assert!(record.progress);
            let active = ids(&log);
            assert_eq!(active[..2], ["m0", "m1"]);
            assert_eq!(active[2], format!("#{}", record.number));
            assert!(active.len() > 4 && active.len() % 2 == 1, "whole exchanges: {active:?}");
            compactions.push(step);
            let plan = manager.build_plan(&PlanRequest::new(&log).limits(limits(10_100))).unwrap();
            let order: Vec<&str> = plan.included.iter().take(3).map(|row| row.id.as_str()).collect();
            assert_eq!(order, ["m0", "m1", &format!("summary:{}", record.number)]);
            assert!(
                plan.included.iter().any(|row| row.id.as_str() == format!("m{}", log.messages().len() - 1))
            );
        }
    }
    assert!(compactions.len() > 3, "{compactions:?}");
    // A question later, head and summary keep their order.
    log.push(Message::assistant("Done."));
    log.push(Message::user("Thanks. And the lid?"));
    let plan = manager.build_plan(&PlanRequest::new(&log).limits(limits(10_100))).unwrap();
    let order: Vec<&str> = plan.included.iter().take(3).map(|row| row.id.as_str()).collect();
    assert_eq!(order, ["m0", "m1", &format!("summary:{}", compactions.len())]);
}

#[test]
fn behaviour_48_49_50_what_does_not_help_changes_nothing_and_stops() {
    let manager = bytes(config(|config| (config.compaction.percent, config.compaction.target) = (85, 50)));
    let request = asking(|log| PlanRequest::new(log).limits(limits(4_100)));
    let mut log = talk(41, 100);
    let unchanged = |log: &Conversation| assert_eq!(ids(log), range(0, 41));
    let job = manager.compaction_due(request(&log)).unwrap().unwrap();
    for (answer, why) in [
        ("", "the answer holds nothing"),
        (" \n\t", "the answer holds nothing"),
        ("<think>hm</think>  ", "the answer holds nothing"),
        ("<tool_call>{\"name\":\"x\"}</tool_call>", "a tool call"),
        (&*"long ".repeat(2_000), "make it shorter"),
    ] {
        let error = manager.apply_compaction(&mut log, &job, answer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Compaction);
        assert!(error.to_string().contains(why), "{error}");
        unchanged(&log);
    }
    // Five failures: nothing more is asked for, until the user speaks.
    let state = manager.compaction_state(request(&log)).unwrap();
    assert_eq!(state, CompactionState::Stopped { attempts: 5 });
    assert!(manager.compaction_due(request(&log)).unwrap().is_none());
    log.push(said(42, 100));
    assert!(manager.compaction_due(request(&log)).unwrap().is_some());
}

#[test]
fn behaviour_48_three_compactions_without_progress_are_the_last() {
    // What cannot be archived is over the trigger by itself.
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::new();
    log.push_system("rules", "r".repeat(9_000));
    log.extend((0..10).map(|at| said(at, 20)));
    let mut compactions = 0;
    for at in 0..100 {
        let request = PlanRequest::new(&log).limits(limits(10_100));
        if let Some(job) = manager.compaction_due(request).unwrap() {
            compactions += usize::from(manager.apply_compaction(&mut log, &job, "s").is_ok());
        }
        // An agent at work: the user says nothing.
        for _ in 0..6 {
            log.push(Message::assistant(format!("{at} {}", "w".repeat(20))));
        }
    }
    assert_eq!(compactions, 3);
    let state = manager.compaction_state(PlanRequest::new(&log).limits(limits(10_100))).unwrap();
    assert_eq!(state, CompactionState::Stopped { attempts: 3 });
    log.push(Message::user("Go on."));
    assert!(manager.compaction_due(PlanRequest::new(&log).limits(limits(10_100))).unwrap().is_some());
}

#[test]
fn behaviour_41_47_after_a_compaction_the_shown_usage_is_the_new_estimate() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).limits(limits(4_100)));
    let mut log = talk(35, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    log.push_reply(&plan, said(35, 100), Usage::openai(3_600, 0, 100));
    assert_eq!(manager.usage(request(&log)).unwrap().pressure.n, 3_700);
    let job = manager.compaction_due(request(&log)).unwrap().unwrap();
    let record = manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    let usage = manager.usage(request(&log)).unwrap();
    assert!(!usage.reported && usage.pressure.n == record.tokens_after && usage.pressure.n > 0);
    assert!(record.progress && record.tokens_before == 3_600 && record.tokens_after < 2_000, "{record:?}");
    assert_eq!(record.freed(), record.tokens_before - record.tokens_after);
    assert!(manager.compaction_due(request(&log)).unwrap().is_none());
}

#[test]
fn behaviour_51_54_the_request_holds_what_is_active_and_the_instruction_is_not_stored() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.pin(PinnedItem::new("tone", "Short answers."));
    log.extend((0..12).map(|at| said(at, 60)));
    let request = asking(|log| {
        PlanRequest::new(log).tools(&*TOOLS).rag([RagItem::new("d", 1.0, "a document")]).state("now", "12:00")
    });
    let job = manager.compaction_now(request(&log)).unwrap().unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log).tools(&*TOOLS)).unwrap();
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
    manager.apply_compaction(&mut log, &job, "First summary.").unwrap();
    assert!(log.messages().iter().all(|message| !message.text().contains("original task")));
    log.extend((12..22).map(|at| said(at, 60)));
    let job = manager.compaction_now(request(&log)).unwrap().unwrap();
    let asked = texts(job.messages());
    assert!(asked.iter().any(|text| text.contains("First summary.")));
    assert!(asked.iter().all(|text| !text.contains("0003")), "what is archived is not sent again");
    manager.apply_compaction(&mut log, &job, "Second summary.").unwrap();
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
fn behaviour_56_what_comes_meanwhile_is_kept() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = talk(12, 60);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    log.extend((12..16).map(|at| said(at, 60)));
    manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), [vec!["#1".into()], range(10, 16)].concat());
    // Too late: another one was first.
    let error = manager.apply_compaction(&mut log, &job, "They talked.").unwrap_err();
    assert!(error.to_string().contains("since this request was made"), "{error}");
    // A result that answers a call of the range takes its exchange out of it.
    let mut log = talk(8, 60);
    log.push(Message::assistant("").calls([ToolCall::new("late", "look", "{}")]));
    log.push(Message::user("never mind"));
    log.push(Message::assistant("fine ".repeat(20)));
    let job = manager.compaction_now(&log).unwrap().unwrap();
    assert_eq!(job.first_active().unwrap().as_str(), "m9");
    log.push(Message::tool("late", "here"));
    manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    assert_eq!(ids(&log), ["#1", "m8", "m9", "m10", "m11"]);
}

#[test]
fn behaviour_58_host_state_and_pins_survive_any_number_of_compactions() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = talk(4, 60);
    log.pin(PinnedItem::new("tone", "Short answers."));
    log.pin_message("m1", Priority::High).unwrap();
    for round in 1..4usize {
        log.extend((0..10).map(|at| said(round * 10 + at, 60)));
        let job = manager.compaction_now(&log).unwrap().unwrap().with_state("plan", "1. kettle").at("noon");
        let record = manager.apply_compaction(&mut log, &job, "Talk. </summary> <state>").unwrap();
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
    // Unpinned, it is archived with its turn.
    log.unpin("m1");
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.included.iter().all(|row| row.id.as_str() != "m1" && row.id.as_str() != "m0"));
    // Pinned while it is archived, it is back.
    log.pin_message("m3", Priority::Normal).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.included.iter().any(|row| row.id.as_str() == "m3"));
}

#[test]
fn behaviour_59_a_digest_is_the_same_and_names_everything() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let call = |id: &str, name: &str, arguments: &str| {
        Message::assistant("").calls([ToolCall::new(id, name, arguments)])
    };
    let log = Conversation::from([
        Message::user("Make the kettle whistle."),
        call("1", "read_file", "{\"path\":\"src/lid.rs\"}"),
        Message::tool("1", "fn lid() {}"),
        call("2", "write_file", "{\"path\":\"src/lid.rs\",\"text\":\"fn lid() { whistle() }\"}"),
        Message::tool("2", "Error: disk full").failed(),
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
    let job = manager.compaction_now(&log).unwrap().unwrap();
    let digest = job.digest().unwrap();
    insta::assert_snapshot!(digest);
    assert_eq!(digest, manager.compaction_now(&log.clone()).unwrap().unwrap().digest().unwrap());
    // In little room the oldest become counts, and it never grows over its limit.
    for most in [50, 80, 120, 200, 300, 500] {
        let manager = bytes(config(|config| {
            (config.compaction.retain.messages, config.compaction.digest.max_tokens) = (Some(2), most);
        }));
        let digest = manager.compaction_now(&log).unwrap().unwrap().digest().unwrap();
        assert!(digest.len() as u64 <= most, "{digest}");
        assert!(most < 120 || digest.contains("tool calls") || digest.contains("whistle"), "{digest}");
    }
}

#[test]
fn behaviour_60_a_sliding_window_drops_until_every_threshold_holds() {
    let mut dropping = Config::preset("dropping").unwrap();
    (dropping.compaction.messages, dropping.compaction.turns) = (Some(21), Some(8));
    let manager = bytes(dropping);
    let request = asking(|log| PlanRequest::new(log).limits(limits(3_100)));
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.pin(PinnedItem::new("tone", "Short answers."));
    log.extend((0..40).map(|at| said(at, 100)));
    let job = manager.compaction_due(request(&log)).unwrap().unwrap();
    let record = manager.fall_back(&mut log, &job).unwrap();
    // 7 turns: the thresholds are 8 turns, 21 messages and 85 % of 3,000 tokens.
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
    // Inside the oldest kept turn: exchanges go, its question stays.
    let mut agent = Conversation::from([Message::user("Go.")]);
    for step in 0..30 {
        agent.push(Message::assistant("").calls([ToolCall::new(format!("c{step}"), "run", "{}")]));
        agent.push(Message::tool(format!("c{step}"), "o".repeat(100)));
    }
    let job = manager.compaction_due(request(&agent)).unwrap().unwrap();
    manager.fall_back(&mut agent, &job).unwrap();
    let active = ids(&agent);
    assert_eq!(active[0], "m0");
    assert!(active.len() < 21 && active.len() % 2 == 1, "{active:?}");
    // It ends on anything.
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
        if let Some(job) = manager.compaction_due(request(&log)).unwrap() {
            drop(manager.fall_back(&mut log, &job));
        }
        assert_eq!(log.messages().len(), before);
    }
}

#[test]
fn behaviour_62_a_request_fits_its_summariser_and_halves_a_bounded_number_of_times() {
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.summary.max_tokens) = (Some(2), 500);
    }));
    let mut log = talk(60, 200);
    log.push(Message::assistant("").calls([ToolCall::new("c", "read", "{\"path\":\"a\"}")]));
    log.push(Message::tool("c", "r".repeat(5_000)));
    log.extend((60..64).map(|at| said(at, 200)));
    let job = manager.compaction_now(PlanRequest::new(&log).limits(limits(40_000))).unwrap().unwrap();
    assert_eq!(job.form(), RequestForm::Conversation);
    assert!(job.tokens().n > 15_000);
    let small = manager.compaction_now(PlanRequest::new(&log).limits(limits(6_000))).unwrap().unwrap();
    assert_eq!((small.form(), small.tools().len()), (RequestForm::Transcript, 0));
    assert!(small.tokens().n <= 5_900, "pre-sized: {:?}", small.tokens());
    let (mut sizes, mut next) = (vec![job.tokens().n], job.smaller().unwrap());
    while let Some(job) = next {
        sizes.push(job.tokens().n);
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
fn behaviour_63_a_smaller_window_is_planned_for_before_anything_is_sent() {
    let log = talk(40, 100);
    let large = PlanRequest::new(&log).limits(limits(10_100));
    let manager = bytes(Config::default());
    assert_eq!(manager.compaction_state(large).unwrap(), CompactionState::NotDue);
    let small = PlanRequest::new(&log).limits(limits(2_100));
    assert!(manager.build_plan(&small).unwrap().total.n <= 2_000);
    assert_eq!(manager.compaction_state(small).unwrap(), CompactionState::Due(Trigger::Percent));
}

#[test]
fn behaviour_64_a_rewind_across_a_compaction_brings_the_messages_back() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let mut log = talk(12, 60);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    log.extend((12..16).map(|at| said(at, 60)));
    log.rewind_before("m14").unwrap();
    assert_eq!(ids(&log), ["#1", "m10", "m11", "m12", "m13"], "after the compaction: it stays");
    log.rewind_before("m8").unwrap();
    assert_eq!(ids(&log), range(0, 8), "across it: what it archived is back");
    assert!(log.rewind_before("m9").is_err(), "taken away already");
    assert!(log.rewind_before("nobody").is_err());
    log.push(said(16, 60));
    assert_eq!(ids(&log), [range(0, 8), vec!["m16".into()]].concat());
    let markers = log.display().filter(|row| !matches!(row, Row::Message { .. })).count();
    assert_eq!((markers, log.messages().len()), (3, 17));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    let reasons: Vec<String> = plan.excluded.iter().map(|row| row.reason.to_string()).collect();
    assert_eq!(reasons, ["archived by a rewind"]);
    // Numbers go on.
    log.extend((0..10).map(|at| said(20 + at, 60)));
    let job = manager.compaction_now(&log).unwrap().unwrap();
    assert_eq!(manager.apply_compaction(&mut log, &job, "Again.").unwrap().number, 2);
}

#[test]
fn starting_fresh_archives_everything_without_a_summary() {
    let manager = bytes(Config::default());
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.extend((0..12).map(|at| said(at, 60)));
    log.start_fresh();
    assert!(ids(&log).is_empty());
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(plan.included.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["s0"]);
    log.push(said(12, 60));
    assert_eq!(ids(&log), ["m12"]);
    let stats = manager.stats(&log).unwrap();
    assert_eq!((stats.messages, stats.active, stats.archived, stats.turns), (13, 1, 12, 1));
}

#[test]
fn a_plan_of_what_is_active_is_the_plan_of_a_conversation_of_just_that() {
    let manager = bytes(Config::default());
    for keep in [3, 8, 14, 19] {
        let mut log = talk(20, 90);
        log.rewind_before("m15").unwrap();
        log.start_fresh();
        log.extend((0..keep).map(|at| said(40 + at, 90)));
        let same: Conversation =
            (0..keep).map(|at| said(40 + at, 90).id(format!("m{}", 20 + at))).collect::<Vec<_>>().into();
        for budget in [100, 300, 700, 1_500, 5_000] {
            let plan = |log| {
                manager.build_plan(&PlanRequest::new(log).limits(RequestLimits::budget(budget))).unwrap()
            };
            let (compacted, fresh) = (plan(&log), plan(&same));
            let rows = |plan: &ContextPlan| -> Vec<String> {
                plan.included
                    .iter()
                    .map(|row| format!("{} {:?} {:?}", row.id, row.tokens, row.reason))
                    .collect()
            };
            assert_eq!(rows(&compacted), rows(&fresh));
            assert_eq!(compacted.total, fresh.total);
            let out = |plan: &ContextPlan| {
                plan.excluded
                    .iter()
                    .filter(|row| row.reason.name() != "archived")
                    .cloned()
                    .collect::<Vec<_>>()
            };
            assert_eq!(out(&compacted), out(&fresh));
        }
    }
}

#[test]
fn fifty_turns_of_equal_growth_break_the_prefix_no_more_often_than_they_must() {
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
        let request = PlanRequest::new(&log).limits(limits(context));
        let plan = manager.build_plan(&request).unwrap();
        breaks += u64::from(plan.repeated().is_some_and(|prefix| prefix.tokens < prefix.of));
        log.push_reply(&plan, Message::assistant("a".repeat(200)), None);
        let job = manager.compaction_due(PlanRequest::new(&log).limits(limits(context))).unwrap();
        past += u64::from(job.is_some() || past > 0);
        if let Some(job) = job {
            let record = manager.apply_compaction(&mut log, &job, &"s".repeat(200)).unwrap();
            assert!(record.tokens_after <= low && record.progress, "{record:?}");
            compactions += 1;
        }
        turn += 1;
    }
    let most = (50 * growth).div_ceil(high - low);
    assert!(breaks <= most && compactions > 1, "{breaks} breaks, {compactions} compactions, at most {most}");
}

/// Where the application sets a budget of its own, what is kept fits that, and the request for a summary may be larger.
#[test]
fn a_budget_of_ones_own_is_what_shares_are_of() {
    let manager = bytes(config(|config| config.compaction.summary.max_tokens = 100));
    let mut log = talk(40, 100);
    let request = asking(|log| {
        let mut limits = limits(100_000);
        limits.prompt_budget = Some(2_000);
        PlanRequest::new(log).limits(limits)
    });
    assert_eq!(manager.compaction_state(request(&log)).unwrap(), CompactionState::Due(Trigger::OnDrop));
    let job = manager.compaction_due(request(&log)).unwrap().unwrap();
    assert!(job.form() == RequestForm::Conversation && job.tokens().n > 3_000);
    let record = manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    assert!(record.progress && record.tokens_after <= 1_000, "{record:?}");
    assert_eq!(ids(&log)[1..], range(36, 40));
}

#[test]
fn a_plan_tells_whose_days_are_over() {
    let manager = bytes(config(|config| config.ttl.policy = TtlPolicy::Ask));
    let mut log = talk(3, 20);
    log.pin(PinnedItem::new("old", "A note.").ttl(Ttl::NoneRemaining));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(plan.events().collect::<Vec<_>>(), [ContextEvent::TtlAsk { id: "old".into() }]);
}

#[test]
fn behaviour_66_percentages_are_zero_where_either_side_is() {
    let manager = bytes(Config::default());
    let usage = manager.usage(&Conversation::new()).unwrap();
    assert_eq!((usage.percent, usage.pressure.n, usage.level), (0, 0, Level::Normal));
}

#[test]
fn an_agent_looks_after_its_own_window() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(3)));
    let tools = ContextWindowManager::context_tools();
    assert_eq!(
        tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
        ["context_stats", "compact_context"]
    );
    let schemas = tools.iter().map(|tool| serde_json::from_str::<serde_json::Value>(&tool.schema).unwrap());
    assert!(schemas.into_iter().all(|schema| schema["type"] == "object"));
    let mut log = talk(13, 80);
    let call = |name: &str, arguments: &str| ToolCall::new("c", name, arguments);
    let answer = |log: &Conversation, call: &ToolCall| manager.answer_context_call(log, call).unwrap();
    assert!(answer(&log, &call("look", "{}")).is_none());
    let Some(ContextCall::Answer(stats)) = answer(&log, &call("context_stats", "")) else { panic!() };
    let stats: serde_json::Value = serde_json::from_str(stats.text()).unwrap();
    assert_eq!((&stats["messages"], &stats["usage"]["pressure"]["n"]), (&13.into(), &(13 * 80).into()));
    for broken in ["[1]", "{\"summary\":", "{\"summary\":7}"] {
        let Some(ContextCall::Answer(refusal)) = answer(&log, &call("compact_context", broken)) else {
            panic!()
        };
        assert!(refusal.is_failed() && refusal.text().contains("expected"), "{broken}");
    }
    let wish = call("compact_context", "{\"summary\":\"Kettles were discussed.\"}");
    log.push(Message::assistant("").calls([wish.clone()]));
    let Some(ContextCall::Compact { answer, summary }) = answer(&log, &wish) else { panic!() };
    // Between the call and its answer nothing is compacted.
    let state = manager
        .compact_as_asked(&mut log, &[], RequestLimits::new(), summary.as_deref())
        .unwrap()
        .unwrap_err();
    assert_eq!(state, CompactionState::Waiting(Gate::OpenCall));
    log.push(answer);
    let record =
        manager.compact_as_asked(&mut log, &[], RequestLimits::new(), summary.as_deref()).unwrap().unwrap();
    assert_eq!(record.summary.as_deref(), Some("Kettles were discussed."));
    assert_eq!(ids(&log), ["#1", "m12", "m13", "m14"]);
}

#[test]
fn behaviour_43_an_overflow_is_answered_with_a_smaller_plan() {
    let manager = bytes(Config::default());
    let log = talk(41, 100);
    let request = PlanRequest::new(&log).limits(limits(4_100));
    let mut plan = manager.build_plan(&request).unwrap();
    let mut sizes = vec![plan.total.n];
    while plan.overflow.is_none() {
        plan = manager.plan_after_overflow(&request, &plan).unwrap();
        assert_eq!(plan.included.last().unwrap().id.as_str(), "m40", "the question is in");
        sizes.push(plan.total.n);
    }
    assert!(
        sizes.len() < 20 && sizes.windows(2).all(|pair| pair[1] <= pair[0] / 4 * 3 || pair[1] == 100),
        "{sizes:?}"
    );
    assert_eq!(StopReason::named("max_tokens"), StopReason::MaxTokens);
}

/// Rule E4: what a compaction changes in a plan comes from the compaction, as planning again shows.
#[test]
fn a_diff_names_compactions() {
    let manager = bytes(config(|config| config.compaction.retain.messages = Some(2)));
    let before = talk(12, 60);
    let mut after = before.clone();
    let job = manager.compaction_now(&after).unwrap().unwrap();
    manager.apply_compaction(&mut after, &job, "They talked.").unwrap();
    let (a, b) = (PlanRequest::new(&before), PlanRequest::new(&after));
    let diff = Diff::between((&manager, &a), (&manager, &b)).unwrap();
    assert!(!diff.changes.is_empty());
    for change in &diff.changes {
        assert_eq!((change.cause, change.shown), (Cause::Compaction, Shown::Alone), "{change:?}");
    }
    let ids: Vec<&str> = diff.changes.iter().map(|change| change.id.as_str()).collect();
    assert_eq!(ids[0], "summary:1");
    assert!(ids.contains(&"m0") && ids.contains(&"m9") && !ids.contains(&"m10"));
    // And back.
    let back = Diff::between((&manager, &b), (&manager, &a)).unwrap();
    assert!(back.changes.iter().all(|change| change.cause == Cause::Compaction));
    let explained = manager.explain(&b, "m4").unwrap();
    assert_eq!(explained.never.as_deref(), Some("archived by compaction #1"));
    let summary = manager.explain(&b, "summary:1").unwrap();
    assert!(summary.included && summary.leaves_at.is_none());
}

fn call(id: &str) -> Message {
    Message::assistant("").calls([ToolCall::new(id, "look", "{}")])
}

/// Found by a reader, each of these.
#[test]
fn a_sliding_window_parts_no_call_from_a_late_result() {
    let mut dropping = Config::preset("dropping").unwrap();
    dropping.compaction.messages = Some(20);
    let manager = bytes(dropping);
    let orphans = |log: &Conversation| {
        let plan = manager.build_plan(&PlanRequest::new(log).limits(limits(10_100))).unwrap();
        plan.excluded.iter().filter(|row| row.reason.name() == "policy").count()
    };
    // Each turn's result comes in the next turn.
    let mut log = Conversation::new();
    for turn in 0..12 {
        log.push(Message::user(format!("{turn} {}", "q".repeat(50))));
        if turn > 0 {
            log.push(Message::tool(format!("c{}", turn - 1), "r".repeat(50)));
        }
        log.push(call(&format!("c{turn}")));
        log.push(Message::assistant("working on it"));
    }
    let job = manager.compaction_due(PlanRequest::new(&log).limits(limits(10_100))).unwrap();
    if let Some(job) = job {
        drop(manager.fall_back(&mut log, &job));
    }
    assert_eq!(orphans(&log), 0);
    // Inside the live turn: one call is answered long after the others.
    for late in 3..20 {
        let mut log = Conversation::from([Message::user("Go."), call("late")]);
        for step in 0..30 {
            log.push(call(&format!("s{step}")));
            log.push(Message::tool(format!("s{step}"), "o".repeat(100)));
            if step == late {
                log.push(Message::tool("late", "here at last"));
            }
        }
        let job = manager.compaction_due(PlanRequest::new(&log).limits(limits(10_100))).unwrap().unwrap();
        drop(manager.fall_back(&mut log, &job));
        assert_eq!(orphans(&log), 0, "answered after {late} others");
    }
}

#[test]
fn what_is_asked_for_by_hand_waits_too() {
    let manager = bytes(Config::default());
    let mut log = talk(12, 60);
    log.push(Message::user("go"));
    log.push(
        Message::assistant("").calls([ToolCall::new("b", "look", "{}"), ToolCall::new("c", "look", "{}")]),
    );
    log.push(Message::tool("b", "done"));
    assert!(manager.compaction_of(&log, None, None).unwrap().is_none(), "a call waits");
    log.push(Message::tool("c", "done"));
    let job = manager.compaction_of(&log, None, Some(&"m3".into())).unwrap().unwrap();
    log.responding(true);
    let error = manager.apply_compaction(&mut log, &job, "They talked.").unwrap_err();
    assert!(error.to_string().contains("a reply is being received"), "{error}");
    log.responding(false);
    manager.apply_compaction(&mut log, &job, "They talked.").unwrap();
    // What leads the prompt is no part of any range.
    let mut log = Conversation::from([Message::system("Be brief.")]);
    log.extend((0..10).map(|at| said(at, 80)));
    let job = manager.compaction_of(&log, Some(&"m0".into()), Some(&"m4".into())).unwrap().unwrap();
    let texts: Vec<&str> = job.messages().iter().map(Message::text).collect();
    assert_eq!(texts.iter().filter(|text| **text == "Be brief.").count(), 1);
    assert_eq!(manager.apply_compaction(&mut log, &job, "s").unwrap().messages_archived, 4);
}

#[test]
fn a_compaction_that_helps_forgets_what_failed() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::from([Message::user("Go on for ever.")]);
    let mut helped = 0;
    for step in 0..400 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
        let request = PlanRequest::new(&log).limits(limits(10_100));
        if let Some(job) = manager.compaction_due(request).unwrap() {
            assert!(manager.apply_compaction(&mut log, &job, "").is_err());
            helped += usize::from(manager.fall_back(&mut log, &job).unwrap().progress);
        }
    }
    assert!(helped > 5, "{helped}");
}

#[test]
fn starting_fresh_by_strategy_keeps_what_waits() {
    let manager = bytes(config(|config| config.compaction.strategy = Strategy::Fresh));
    let mut log = talk(41, 100);
    let job = manager.compaction_now(PlanRequest::new(&log).limits(limits(4_100))).unwrap().unwrap();
    log.push(Message::user("and one more"));
    manager.fall_back(&mut log, &job).unwrap();
    assert_eq!(ids(&log), ["m40", "m41"]);
}

#[test]
fn an_earlier_summary_keeps_half_of_a_digest() {
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.digest.max_tokens) = (Some(2), 1_500);
    }));
    let mut log = talk(12, 200);
    let job = manager.compaction_now(&log).unwrap().unwrap();
    let summary = format!("The first half. {}", "What was agreed. ".repeat(40));
    manager.apply_compaction(&mut log, &job, &summary).unwrap();
    for step in 0..60 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), format!("result {step}")));
    }
    log.push(Message::assistant("Done."));
    let digest = manager.compaction_now(&log).unwrap().unwrap().digest().unwrap();
    assert!(digest.contains(summary.trim()) && digest.len() <= 1_500, "{digest}");
    // With room for it, nothing is clipped.
    let manager = bytes(config(|config| config.compaction.digest.max_tokens = 100_000));
    let mut log = Conversation::from([Message::user("w".repeat(3_000)), Message::assistant("x")]);
    log.extend((0..4).map(|at| said(at, 60)));
    let digest = manager.compaction_now(&log).unwrap().unwrap().digest().unwrap();
    assert!(digest.contains(&"w".repeat(3_000)));
}

#[test]
fn the_head_of_the_prompt_is_in_pressure_whenever_it_came() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let request = asking(|log| PlanRequest::new(log).limits(limits(20_100)));
    let mut log = talk(11, 100);
    let plan = manager.build_plan(&request(&log)).unwrap();
    log.push_reply(&plan, said(11, 100), Usage::openai(1_100, 0, 100));
    assert_eq!(manager.usage(request(&log)).unwrap().pressure.n, 1_200);
    log.pin(PinnedItem::new("long", "n".repeat(8_000)));
    log.push_system("rules", "r".repeat(8_000));
    let usage = manager.usage(request(&log)).unwrap();
    assert_eq!((usage.pressure.n, usage.level), (17_200, Level::Approaching));
    log.unpin("long");
    assert_eq!(manager.usage(request(&log)).unwrap().pressure.n, 9_200);
}

#[test]
fn a_request_is_in_the_order_of_the_prompt_and_tells_nobody_what_has_expired() {
    let manager = bytes(config(|config| config.tokens.calibrate = false));
    let mut log = Conversation::from([Message::system("Fix."), Message::user("Fix it.")]);
    let mut compactions = 0;
    for step in 0..120 {
        log.push(call(&format!("c{step}")));
        log.push(Message::tool(format!("c{step}"), "o".repeat(200)));
        if let Some(job) = manager.compaction_due(PlanRequest::new(&log).limits(limits(10_100))).unwrap() {
            let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
            let texts = |messages: &[Message]| {
                messages.iter().map(|message| message.text().to_owned()).collect::<Vec<_>>()
            };
            let (asked, sent) = (texts(job.messages()), texts(plan.messages()));
            assert_eq!(asked[..asked.len() - 1], sent[..asked.len() - 1], "compaction {compactions}");
            manager.apply_compaction(&mut log, &job, "Much was tried.").unwrap();
            compactions += 1;
        }
    }
    assert!(compactions > 1);
    let mut log = talk(12, 60);
    log.push(Message::user("The code of the door is 4711."));
    log.set_ttl("m12", Ttl::NoneRemaining).unwrap();
    log.extend((0..4).map(|at| said(at, 60)));
    let job = manager.compaction_now(&log).unwrap().unwrap();
    assert!(job.messages().iter().all(|message| !message.text().contains("4711")));
    assert!(!job.digest().unwrap().contains("4711"));
}

#[test]
fn records_of_a_file_that_make_no_sense_are_not_used() {
    let block = |fields: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"a"}},
            {{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"c","content":"r"}},{{"role":"assistant","content":"b"}},
            {{"role":"user","content":[{{"type":"context_compaction","summary":"s",{fields}}}]}},{{"role":"user","content":"d"}}]}}"#
        )
    };
    for fields in [
        r#""head":"m2""#,
        r#""head":"m1""#,
        r#""first_active":"m2""#,
        r#""from":"m3","first_active":"m1""#,
        r#""from":"m1","first_active":"m1""#,
        r#""from":"nobody""#,
    ] {
        let session = Session::from_json(&block(fields)).unwrap();
        assert_eq!((session.ignored().len(), session.log.compactions().count()), (1, 0), "{fields}");
    }
    let session =
        Session::from_json(&block(r#""compaction_number":4294967295,"first_active":"m3""#)).unwrap();
    assert_eq!(session.log.compactions().map(|record| record.number).collect::<Vec<_>>(), [1]);
    let session = Session::from_json(&block(r#""head":"m0""#)).unwrap();
    assert_eq!(ids(&session.log), ["m0", "#1", "m4"]);
}

#[test]
fn a_rewind_takes_the_call_of_a_result_with_it() {
    let mut log =
        Conversation::from([Message::user("a"), call("x"), Message::tool("x", "r"), Message::assistant("b")]);
    log.rewind_before("m2").unwrap();
    assert_eq!(ids(&log), ["m0"]);
    assert_eq!(log.open_calls().count(), 0);
    // What was answered in archived messages stays answered (rule H1).
    let manager = bytes(Config::default());
    let mut log = Conversation::from([Message::user("a"), call("x"), Message::tool("x", "first")]);
    log.extend((0..8).map(|at| said(at, 80)));
    let job = manager.compaction_of(&log, None, Some(&"m4".into())).unwrap().unwrap();
    manager.apply_compaction(&mut log, &job, "s").unwrap();
    log.push(Message::tool("x", "again"));
    log.push(call("x"));
    log.push(Message::tool("x", "second"));
    let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert!(plan.messages().iter().any(|message| message.text() == "second"));
    assert!(plan.excluded.iter().any(|row| row.reason.to_string() == "a second result for one call"));
}
