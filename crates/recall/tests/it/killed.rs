//! A process that is killed between the log and the index file.

use crate::talk::Folder;
use context_window::{Conversation, Message, TokenCounter, ToolCall};
use context_window_recall::{Opened, RebuildReason, Recall, RecallIndex};
use context_window_store::Journal;
use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

const NAME: &str = "killed::nothing_confirmed_is_lost_if_the_process_is_killed";

/// Adds messages, saves log and index, and confirms the number of messages, until it is killed.
fn write_for_ever(folder: &Path) -> ! {
    let (mut journal, mut log) = Journal::open(folder.join("log")).unwrap();
    let (mut recall, _) = Recall::open(folder.join("log.recall"), &log).unwrap();
    let mut out = std::io::stdout();
    loop {
        let at = log.messages().len();
        log.push(Message::user(format!("question {at} about the harbour")));
        log.push(Message::assistant("").with_tool_calls([ToolCall::new(format!("c{at}"), "read", "{}")]));
        log.push(Message::tool(format!("c{at}"), format!("number {at}\n").repeat(1 + at % 300)));
        journal.save(&log).unwrap();
        recall.update(&log);
        recall.save().unwrap();
        writeln!(out, "confirmed {}", log.messages().len()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn nothing_confirmed_is_lost_if_the_process_is_killed() {
    // The test starts itself as the process to be killed.
    if let Some(folder) = std::env::var_os("RECALL_TEST_FOLDER") {
        write_for_ever(&PathBuf::from(folder));
    }
    let folder = Folder::new("kill");
    let kills = if std::env::var_os("FULL").is_some() { 1_000 } else { 60 };
    let (mut seed, mut confirmed, mut behind, mut damaged) = (0x2545_F491_4F6C_DD1Du64, 0, 0, 0);
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env("RECALL_TEST_FOLDER", &folder.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.by_ref().find(|line| line.as_ref().is_ok_and(|line| line.contains("confirmed")));
        std::thread::sleep(Duration::from_micros(seed % 9_000));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in first.into_iter().chain(lines).map_while(Result::ok) {
            let number = line.rsplit(' ').next().and_then(|number| number.parse::<usize>().ok());
            confirmed = number.filter(|_| line.contains("confirmed")).unwrap_or(confirmed);
        }
        let (journal, log) = Journal::open(folder.0.join("log")).unwrap();
        drop(journal);
        assert!(log.messages().len() >= confirmed, "kill {kill}: {} of {confirmed}", log.messages().len());
        let (recall, opened) = Recall::open(folder.0.join("log.recall"), &log).unwrap();
        match opened {
            Opened::Loaded => {}
            Opened::CaughtUp { .. } => behind += 1,
            // A frame that was half written is cut off, or the index is built again; the log has it all.
            Opened::Rebuilt(RebuildReason::Damaged) => damaged += 1,
            Opened::Rebuilt(reason) => panic!("kill {kill}: {reason:?}"),
            _ => panic!("kill {kill}: an unknown outcome"),
        }
        check_all_is_found(recall, &log);
        confirmed = log.messages().len();
        if confirmed > 1_500 {
            drop(std::fs::remove_dir_all(&folder.0));
            std::fs::create_dir_all(&folder.0).unwrap();
            confirmed = 0;
        }
    }
    eprintln!("{kills} kills, the index was behind {behind} times and damaged {damaged} times");
}

/// Checks that the index is that of the log, and that the handles lead to the texts.
fn check_all_is_found(mut recall: Recall, log: &Conversation) {
    let mut built = RecallIndex::new();
    built.update(log);
    assert_eq!(recall.index(), &built);
    let results = (0..).zip(log.messages()).filter(|(_, message)| message.answers().is_some());
    for (at, message) in results.skip(log.messages().len() / 3 - 1) {
        let call = ToolCall::new("r", "recall", format!("{{\"handle\": \"m{at}\", \"max_tokens\": 100000}}"));
        let read = recall.answer(log, &call, &TokenCounter::chars_per_4(), u64::MAX).unwrap();
        assert!(read.text().ends_with(message.text()), "{}", read.text());
    }
}
