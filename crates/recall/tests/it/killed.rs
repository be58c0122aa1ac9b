//! A process that is killed between the log and the index file.

use crate::talk::Folder;
use context_window::{Conversation, Message, TokenCounter, ToolCall};
use context_window_recall::{Opened, RebuildReason, Recall, RecallIndex};
use context_window_store::Journal;
use context_window_testing::killed::{Moments, confirmations};
use std::{
    io::Write,
    path::{Path, PathBuf},
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
    let mut moments = Moments::new();
    let (mut confirmed, mut behind, mut damaged) = (0, 0, 0);
    for kill in 0..kills {
        let numbers = confirmations(NAME, "RECALL_TEST_FOLDER", &folder.0, &mut moments);
        confirmed = numbers.last().and_then(|numbers| numbers.first().copied()).unwrap_or(confirmed);
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
