//! The log on disk: confirmed entries are in it, none is repeated, and it has only one writer.

use context_window::{
    conversation::{Entry, Event},
    message::Reasoning,
    *,
};
use context_window_formats::SessionFile;
use context_window_store::ErrorKind;
use context_window_store::{Journal, save_whole};
use context_window_testing::killed::{Moments, confirmations};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("context-window-{}-{name}.log", std::process::id()));
    drop(fs::remove_file(&path));
    path
}

fn manager() -> ContextWindowManager {
    let mut config = Config::default();
    config.compaction.messages = Some(30);
    config.compaction.digest_max_tokens = 60;
    ContextWindowManager::new(Model::custom("test"), TokenCounter::chars_per_4(), config).unwrap()
}

/// Messages of earlier versions can be read: they name the wire format `framing`.
#[test]
fn messages_of_earlier_versions_are_read() {
    let part = Part::Opaque { wire_format: WireFormat::Anthropic, json: "{}".into() };
    let message = Message::assistant("a").with_parts([part]).with_reasoning(Reasoning::signed(
        WireFormat::Anthropic,
        "hm",
        "c2VhbA==",
    ));
    let json = serde_json::to_string(&message).unwrap();
    let before = json.replace("\"wire_format\"", "\"framing\"");
    assert_ne!(before, json);
    assert_eq!(serde_json::from_str::<Message>(&before).unwrap(), message);
}

/// Runs as the process to be killed: continues at the end of the log, and prints the confirmed entries.
fn writes_for_ever(path: &Path) -> ! {
    let (mut journal, mut log) = Journal::open(path).unwrap();
    let manager = manager();
    let mut out = std::io::stdout().lock();
    loop {
        for _ in 0..1 + log.messages().len() % 3 {
            let n = log.messages().len();
            let text = format!("message {n} {}", "words ".repeat(n % 7));
            log.push(if n.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) });
        }
        if let Some(record) = manager.compactor().compact_if_due(&mut log, &[], RequestLimits::new()).unwrap()
        {
            assert_eq!(record.number as usize, log.compactions().count());
        }
        journal.save(&log).unwrap();
        writeln!(out, "confirmed {} {}", log.messages().len(), log.compactions().count()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn killed_at_any_moment_nothing_confirmed_is_lost_and_nothing_is_twice() {
    // The test starts itself as the process to be killed.
    if let Some(path) = std::env::var_os("JOURNAL_TEST_PATH") {
        writes_for_ever(Path::new(&path));
    }
    let kills = if std::env::var_os("FULL").is_some() { 2_000 } else { 250 };
    let path = fresh("kill");
    let mut moments = Moments::new();
    let (mut torn, mut confirmed) = (0, 0u64);
    let (mut messages, mut compactions) = (0, 0);
    for kill in 0..kills {
        let name = "journal::killed_at_any_moment_nothing_confirmed_is_lost_and_nothing_is_twice";
        for numbers in confirmations(name, "JOURNAL_TEST_PATH", &path, &mut moments) {
            if let [of_messages, of_compactions] = numbers[..] {
                (messages, compactions) = (of_messages, of_compactions);
                confirmed += 1;
            }
        }
        let (journal, log) = Journal::open(&path).unwrap();
        torn += usize::from(journal.truncated_tail().is_some());
        drop(journal);
        let found = log.messages().len();
        assert!(found >= messages && found <= messages + 3, "kill {kill}: {found} of {messages}");
        for (n, message) in log.messages().iter().enumerate() {
            assert!(message.text().starts_with(&format!("message {n} ")), "kill {kill}: {}", message.text());
        }
        let numbers: Vec<u32> = log.compactions().map(|record| record.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>(), "kill {kill}");
        assert!(numbers.len() >= compactions && numbers.len() <= compactions + 1, "kill {kill}");
        (messages, compactions) = (found, numbers.len());
        // Longer logs only make the test slower.
        if messages > 1_500 {
            fs::remove_file(&path).unwrap();
            (messages, compactions) = (0, 0);
        }
    }
    eprintln!("{kills} kills, {confirmed} confirmations, {torn} unfinished ends");
    drop(fs::remove_file(path));
}

/// Creates a log with many kinds of entries.
fn log() -> Conversation {
    let mut log = Conversation::new();
    log.push_system("s0", "Be brief.");
    log.pin(PinnedItem::new("tone", "Short answers.").with_ttl(Ttl::Limited(3.try_into().unwrap())));
    for at in 0..40 {
        log.push(if at % 2 == 0 {
            Message::user(format!("q{at}"))
        } else {
            Message::assistant(format!("a{at}"))
        });
    }
    let plan = manager().build_plan(&PlanRequest::new(&log)).unwrap();
    log.push_reply(&plan, Message::assistant("reply"), Usage::anthropic(10, 20, 30, 40));
    log.complete_turn(&plan);
    log.pin_message("m3", Priority::High).unwrap();
    manager().compactor().compact_if_due(&mut log, &[], RequestLimits::new()).unwrap().unwrap();
    let usage = manager().usage(&PlanRequest::like_last(&log)).unwrap();
    log.observe_usage(usage);
    log.push(Message::user("more"));
    log
}

#[test]
fn resumed_log_gives_the_same_conversation() {
    let path = fresh("resume");
    let log = log();
    drop(Journal::create(&path, &log).unwrap());
    let (journal, again) = Journal::open(&path).unwrap();
    assert_eq!(journal.truncated_tail(), None);
    let all = |log: &Conversation| format!("{:?}", log.entries().collect::<Vec<_>>());
    assert_eq!(all(&again), all(&log));
    let plan = |log: &Conversation| manager().build_plan(&PlanRequest::new(log)).unwrap().to_json();
    assert_eq!(plan(&again), plan(&log));
    assert_eq!(again.anchor(), log.anchor(), "the window starts where it did");
    assert_eq!((again.level(), again.billed()), (log.level(), log.billed()));
    assert_eq!(
        manager().stats(&PlanRequest::like_last(&again)).unwrap(),
        manager().stats(&PlanRequest::like_last(&log)).unwrap()
    );
    // A session file's reader accepts a log too.
    let bytes = fs::read(&path).unwrap();
    assert!(Journal::is_log(&bytes));
    let session = SessionFile::new("talk.log", bytes).unwrap().session(None).unwrap();
    assert_eq!(all(&session.log), all(&log));
}

#[test]
fn an_unfinished_end_is_dropped_and_the_next_append_is_not_swallowed() {
    let path = fresh("torn");
    drop(Journal::create(&path, &log()).unwrap());
    let whole = fs::read(&path).unwrap();
    let lines = whole.iter().filter(|byte| **byte == b'\n').count();
    // Cut at every byte of the last two records.
    let last_two = whole.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').nth(2).unwrap().0 + 1;
    for end in last_two..=whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let kept = whole[..end].iter().filter(|byte| **byte == b'\n').count();
        let (mut journal, mut log) = Journal::open(&path).unwrap();
        let unfinished = end - whole[..end].iter().rposition(|byte| *byte == b'\n').unwrap() - 1;
        let missing_break = whole[end..].first() == Some(&b'\n');
        match journal.truncated_tail() {
            Some(torn) => assert_eq!((torn.line, torn.bytes), (kept + 1, unfinished as u64)),
            None => assert!(unfinished == 0 || missing_break, "cut at {end}"),
        }
        log.push(Message::user("appended"));
        journal.save(&log).unwrap();
        drop(journal);
        let (journal, again) = Journal::open(&path).unwrap();
        assert_eq!(
            (journal.truncated_tail(), again.messages().last().unwrap().text()),
            (None, "appended"),
            "cut at {end}"
        );
        let entries = again.entries().count();
        assert!(entries >= lines - 2 && entries <= lines, "{entries} of {lines}");
    }
}

#[test]
fn a_log_has_one_writer() {
    let path = fresh("lock");
    let (_journal, _) = Journal::open(&path).unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Journal);
    assert!(error.to_string().contains("is open for writing in another process"), "{error}");
    assert!(Journal::create(&path, &Conversation::new()).is_err(), "it is there");
}

fn error_of(text: &[u8]) -> String {
    let path = fresh("broken");
    fs::write(&path, text).unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Journal);
    assert_eq!(fs::read(&path).unwrap(), text, "the file is left as it is");
    error.to_string().replace(&path.display().to_string(), "talk.log")
}

#[test]
fn damaged_log_is_reported_with_its_line() {
    let path = fresh("whole");
    drop(Journal::create(&path, &log()).unwrap());
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        change(&mut lines);
        error_of((lines.join("\n") + "\n").as_bytes())
    };
    let mut errors = String::new();
    for (what, error) in [
        ("a word changed", with(&|lines| lines[5] = lines[5].replace("q2", "q3"))),
        ("a line gone", with(&|lines| drop(lines.remove(5)))),
        ("a line twice", with(&|lines| lines.insert(5, lines[4].clone()))),
        ("no JSON in the middle", with(&|lines| lines[5] = "{".into())),
        (
            "another version",
            with(&|lines| {
                let text = lines[0].replace("_log\":1", "_log\":2");
                lines[0] = text;
            }),
        ),
        ("a session", error_of(b"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n")),
        ("a session on one line", error_of(b"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}")),
        ("the last line but one is gone", with(&|lines| drop(lines.remove(lines.len() - 2)))),
        (
            "a byte of the last line",
            with(&|lines| {
                let last = lines.pop().unwrap().replace("more", "mode");
                lines.push(last);
            }),
        ),
        ("a picture", error_of(b"\x89PNG\r\n\x1a\n\0\0\n")),
    ] {
        errors += &format!("--- {what}\n{error}\n");
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn a_conversation_of_another_file_is_refused() {
    let path = fresh("other");
    let mut journal = Journal::create(&path, &log()).unwrap();
    let mut longer = log();
    longer.extend((0..50).map(|at| Message::user(format!("other {at}"))));
    let others: Conversation =
        (0..90).map(|at| Message::user(format!("other {at}"))).collect::<Vec<_>>().into();
    for other in [Conversation::new(), others] {
        let error = journal.save(&other).unwrap_err();
        assert!(
            error.to_string().contains("contains another conversation, or more entries of this one"),
            "{error}"
        );
    }
    journal.save(&longer).unwrap();
}

/// A prompt is written as its difference to the one before.
#[test]
fn journal_grows_only_by_new_content() {
    let path = fresh("growth");
    let (mut journal, mut log) = Journal::open(&path).unwrap();
    let mut sizes = Vec::new();
    for turn in 0..300 {
        log.push(Message::user(format!("question {turn}")));
        let plan = manager().build_plan(&PlanRequest::new(&log)).unwrap();
        log.push_reply(&plan, Message::assistant("answer"), None);
        journal.save(&log).unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    assert!(sizes[299] - sizes[149] < (sizes[149] - sizes[0]) * 5 / 4, "{} {}", sizes[149], sizes[299]);
    drop(journal);
    let (_, again) = Journal::open(&path).unwrap();
    assert_eq!(again.anchor(), log.anchor(), "the last prompt is whole again");
}

#[test]
fn whole_files_are_saved_completely() {
    // A separate folder, because other tests save files at the same time.
    let folder = std::env::temp_dir().join(format!("context-window-{}-saved", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("saved");
    save_whole(&path, b"one").unwrap();
    save_whole(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert!(save_whole(Path::new("/nowhere/at/all"), b"x").is_err());
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["saved"], "nothing is left beside it");
    fs::remove_dir_all(&folder).unwrap();
}

/// Creates a conversation with every kind of entry.
fn every_kind_of_entry() -> Conversation {
    let manager =
        ContextWindowManager::new(Model::custom("m"), TokenCounter::bytes(), Config::default()).unwrap();
    let mut log = Conversation::new();
    log.push_system("rules", "Be short.");
    log.pin(PinnedItem::new("tone", "Formal.").with_ttl(Ttl::turns(3)).with_priority(Priority::High));
    log.push(Message::user("How long do refunds take? ".repeat(30)).with_id("ask"));
    log.pin_message("ask", Priority::Normal).unwrap();
    log.set_ttl("tone", Ttl::turns(2)).unwrap();
    let documents = [RagItem::new("refunds", 0.9, "Refunds take 5 days.")];
    let limits = RequestLimits::new().with_model_context_len(4_000).with_max_completion_tokens(400);
    let plan = manager.build_plan(&PlanRequest::new(&log).with_rag(documents).with_limits(limits)).unwrap();
    let call = ToolCall::new("c1", "refund_policy", "{\"country\":\"NL\"}");
    log.push_reply(&plan, Message::assistant("").with_tool_calls([call]), Some(Usage::openai(60, 20, 9)));
    log.push(Message::tool("c1", "5 days").with_name("refund_policy"));
    log.push(Message::assistant("5 days."));
    log.complete_turn(&plan);
    log.observe_usage(manager.usage(&PlanRequest::like_last(&log)).unwrap());
    log.unpin("ask");
    log.push(Message::user("Thanks!"));
    log.push(Message::assistant("You are welcome."));
    let job = manager
        .compactor()
        .now(&PlanRequest::like_last(&log))
        .unwrap()
        .unwrap()
        .with_state("plan", "1. refund");
    manager.compactor().apply_summary(&mut log, &job, "Refunds take 5 days.").unwrap();
    log.push(Message::user("Bye"));
    log.push(Message::assistant("Bye."));
    log.rewind_before("m6").unwrap();
    log.start_fresh();
    log
}

/// A file of version 1 gives its original conversation, and writing that gives the same file. It has every
/// kind of entry, so that a renamed type or a field without a default is detected.
#[test]
fn log_of_version_1_is_read_and_written_unchanged() {
    let path = "tests/logs/version-1.log";
    let file = fs::read(path).unwrap();
    let (log, truncated) = Journal::read(path, &file).unwrap();
    assert_eq!(truncated, None);
    let written = fresh("version-1");
    drop(Journal::create(&written, &log).unwrap());
    assert_eq!(String::from_utf8(fs::read(&written).unwrap()), String::from_utf8(file));
    fs::remove_file(&written).unwrap();
    // The data visible to an application.
    let made = every_kind_of_entry();
    let is_old = |entry: &Entry| !matches!(entry, Entry::Event(Event::PromptSettings { .. }));
    let entries = |log: &Conversation| {
        format!("{:#?}", log.entries().filter(|entry| is_old(entry)).collect::<Vec<_>>())
    };
    // Logs of that version have no prompt settings and no limit of a compaction.
    assert_eq!(entries(&log), entries(&made).replace("limit: 3600,", "limit: 0,"));
    assert_eq!(log.history().count(), made.history().count());
}
