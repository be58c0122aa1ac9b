//! Earlier turns that left the window, and that a question needs again.

use crate::support::{Place, Run};
use context_window::{IncludedReason, plan::PlannedItem};
use std::{fs, path::PathBuf};

const FACT: &str = "My sister Ida moved to Trondheim last spring.";
const QUESTION: &str = "In which city does my sister live?";

/// Says a fact, and then so much that the fact leaves a small window.
fn talk<'a>(place: &'a Place, arguments: &[&'a str]) -> Run {
    let mut run = Run::offline(place, &[&["--model", "offline-2k"], arguments].concat());
    run.enter(FACT);
    for day in 0..30 {
        run.enter(&format!("Postage on day {day}? {}", "Parcels and crowns, please. ".repeat(4)));
    }
    run
}

fn recalled(run: &Run) -> Vec<&PlannedItem> {
    let rows = run.chat.plan.included.iter();
    rows.filter(|item| item.reason == IncludedReason::Recalled).collect()
}

/// Returns the ids of the turns that were found for the live question, in the prompt or not.
fn found(run: &Run) -> Vec<&str> {
    run.chat
        .documents
        .iter()
        .map(|document| document.id().as_str())
        .filter(|id| id.starts_with("recall:"))
        .collect()
}

/// Returns the index files of a place.
fn files(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.data.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "recall")).collect();
    files.sort();
    files
}

/// Sends a question, and returns the prompt before its reply.
fn ask(run: &mut Run, question: &str) {
    run.chat.ask(question);
    run.until("a prompt", |chat| matches!(chat.turn, rag_chat::chat::Turn::Answering(_)));
}

#[test]
fn a_turn_that_left_the_window_comes_back_for_its_question() {
    let place = Place::shop();
    let mut run = talk(&place, &[]);
    ask(&mut run, QUESTION);
    let rows = recalled(&run);
    assert_eq!(rows.first().map(|row| row.id.as_str()), Some("recall:m1"), "{:?}", found(&run));
    assert_eq!(rows[0].quoted_messages().unwrap()[0], "m1");
    let shown = context_window_report::text(&run.chat.plan).to_string();
    assert!(shown.contains("recalled: m1"), "{shown}");
    run.settle();
    assert!(run.last().contains("Trondheim"), "{}", run.last());
    // The index was saved, and the next run opens it without a remark.
    assert_eq!(files(&place).len(), 1);
    run.close();
    let mut run = Run::offline(&place, &["--model", "offline-2k"]);
    assert!(!run.has_said("index of earlier turns"), "{:?}", run.chat.remarks);
    run.enter("Postage again, and parcels above two kilograms?");
    ask(&mut run, "What is the name of my sister?");
    assert!(found(&run).contains(&"recall:m1"), "{:?}", found(&run));
    run.settle();
}

#[test]
fn without_recall_nothing_comes_back_and_nothing_is_written() {
    let place = Place::shop();
    let mut run = talk(&place, &["--no-recall"]);
    ask(&mut run, QUESTION);
    assert!(found(&run).is_empty() && recalled(&run).is_empty());
    run.settle();
    assert!(!run.last().contains("Trondheim"), "{}", run.last());
    assert!(files(&place).is_empty());
}

#[test]
fn a_damaged_or_missing_index_is_built_with_one_remark() {
    let place = Place::shop();
    talk(&place, &[]).close();
    let path = files(&place).pop().unwrap();
    for (bytes, remark) in [(Some("no index"), "was damaged"), (None, "did not exist")] {
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let mut run = Run::offline(&place, &["--model", "offline-2k"]);
        let said = run.chat.remarks.iter().filter(|said| said.text.contains("index of earlier turns"));
        let said: Vec<_> = said.map(|said| said.text.clone()).collect();
        assert!(said.len() == 1 && said[0].contains(remark), "{said:?}");
        ask(&mut run, QUESTION);
        assert!(found(&run).contains(&"recall:m1"), "{:?}", found(&run));
        run.settle();
        run.close();
        let run = Run::offline(&place, &["--model", "offline-2k"]);
        assert!(!run.has_said("index of earlier turns"), "{:?}", run.chat.remarks);
    }
    // A new session has no index yet, which is nothing to remark on.
    let run = Run::offline(&place, &["--session", "new/one"]);
    assert!(!run.has_said("index of earlier turns"), "{:?}", run.chat.remarks);
}

#[test]
fn an_index_that_cannot_be_saved_is_an_error_once() {
    let place = Place::shop();
    let mut run = talk(&place, &[]);
    let path = files(&place).pop().unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    run.enter("Postage?").enter("Parcels?");
    let said =
        run.chat.remarks.iter().filter(|said| said.text.contains("index of earlier turns is not saved"));
    assert_eq!(said.count(), 1, "{:?}", run.chat.remarks);
    run.close();
    let mut run = Run::offline(&place, &["--model", "offline-2k"]);
    assert!(run.has_said("Earlier turns are found, but not indexed on disk"), "{:?}", run.chat.remarks);
    ask(&mut run, QUESTION);
    assert!(found(&run).contains(&"recall:m1"), "{:?}", found(&run));
    run.settle();
}

#[test]
fn turns_before_a_fresh_start_come_back_only_if_it_is_undone() {
    let place = Place::shop();
    let mut run = talk(&place, &[]);
    run.enter("/fresh");
    ask(&mut run, QUESTION);
    assert!(found(&run).is_empty(), "{:?}", found(&run));
    run.settle();
    run.enter("/undo");
    ask(&mut run, QUESTION);
    assert!(found(&run).contains(&"recall:m1"), "{:?}", found(&run));
    run.settle();
}

#[test]
fn a_recalled_turn_is_excluded_like_a_document() {
    let place = Place::shop();
    let mut run = talk(&place, &[]);
    ask(&mut run, QUESTION);
    run.settle();
    assert!(run.chat.plan.included.iter().any(|row| row.id == "recall:m1"), "{:?}", found(&run));
    run.enter("/drop recall:m1");
    assert!(run.has_said("recall:m1 is excluded from now on"), "{:?}", run.chat.remarks);
    assert!(run.chat.plan.find("recall:m1").is_none());
    run.enter("/drop recall:m1");
    assert!(run.chat.plan.find("recall:m1").is_some());
}

#[test]
fn each_session_has_an_index_of_its_own() {
    let place = Place::shop();
    let (mut one, mut two) = (Run::offline(&place, &[]), Run::offline(&place, &[]));
    one.enter(FACT);
    two.enter("When are you open?");
    assert_eq!((one.chat.session(), two.chat.session()), ("chat", "chat-2"));
    assert!(!two.has_said("index of earlier turns"), "{:?}", two.chat.remarks);
    one.enter("/sessions ../other");
    one.enter("Postage?");
    one.close();
    two.close();
    assert_eq!(files(&place).len(), 3);
    for session in ["chat", "chat-2", "../other"] {
        let run = Run::offline(&place, &["--session", session]);
        assert!(!run.has_said("index of earlier turns"), "{session}: {:?}", run.chat.remarks);
    }
}
