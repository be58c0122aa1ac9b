//! Turns with the offline answerer, and the stored conversation after them.

use crate::support::{Place, Run, environment};
use context_window::{ItemKind, PlanRequest, Role};
use context_window_store::SessionStore;

fn stored(place: &Place, id: &str) -> context_window::Conversation {
    let mut store =
        SessionStore::open(&format!("sqlite:{}", place.data.path().join("chats.db").display())).unwrap();
    store.load(id).unwrap().0
}

#[test]
fn question_is_answered_from_its_document_and_saved() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("How long does a refund take?");
    assert!(
        run.last().contains("A refund takes five days after the parcel came back to us."),
        "{}",
        run.last()
    );
    assert!(run.last().contains("came back to us.\" [1]"), "{}", run.last());
    assert!(run.has_said("Sources: [1] terms/refunds.md#1"), "{:?}", run.chat.remarks);
    assert!(run.chat.plan.included.iter().any(|item| item.id.as_str() == "terms/refunds.md#1"));
    assert_eq!(stored(&place, "chat"), run.chat.log);

    // The next run continues from there.
    let texts = run.texts();
    drop(run);
    let mut run = Run::offline(&place, &[]);
    assert_eq!(run.texts(), texts);
    assert!(run.has_said("continues: 1 question so far."), "{:?}", run.chat.remarks);
    run.enter("And when are you open?");
    assert!(run.last().contains("from nine to six"), "{}", run.last());
}

#[test]
fn stopped_reply_keeps_its_received_text() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.chat.ask("How long does a refund take?");
    run.until(
        "a few words",
        |chat| matches!(&chat.turn, rag_chat::chat::Turn::Answering(answering) if answering.text.len() > 10),
    );
    run.chat.enter("Another?");
    assert!(run.said().contains("A reply is pending"), "{}", run.said());
    run.chat.interrupt();
    run.settle();
    let kept = run.last().to_owned();
    assert!(kept.len() > 10 && kept.starts_with("\"A refund"), "{kept}");
    let whole = "A refund takes five days after the parcel came back to us.";
    assert!(!kept.contains(whole), "it was stopped");
    assert_eq!(stored(&place, "chat").messages().last().unwrap().text(), kept);
    // Late pieces of the stopped reply are ignored, and the next turn works.
    run.enter("How long does a refund take?");
    assert!(run.last().contains(whole));
    assert_eq!(run.texts().iter().filter(|text| **text == kept).count(), 1);
}

#[test]
fn a_question_without_a_reply_is_asked_again() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.chat.ask("How long does a refund take?");
    // Killed here: the question is on disk.
    drop(run);
    let mut run = Run::offline(&place, &[]);
    assert!(run.has_said("The last question has no reply; /retry asks again."), "{:?}", run.chat.remarks);
    run.enter("/retry");
    assert!(run.last().contains("A refund takes five days"));
    run.enter("/retry");
    assert!(run.said().contains("there is nothing to retry"));
    // An archived question does not wait for a reply.
    run.chat.ask("And postage?");
    run.chat.interrupt();
    run.enter("/fresh");
    drop(run);
    let run = Run::offline(&place, &[]);
    assert!(!run.has_said("has no reply"), "{:?}", run.chat.remarks);
}

#[test]
fn two_chats_on_one_session_lose_nothing() {
    let place = Place::shop();
    let (mut one, mut two) = (Run::offline(&place, &[]), Run::offline(&place, &[]));
    one.enter("How long does a refund take?");
    two.enter("When are you open?");
    assert!(two.has_said("Another chat wrote to session \"chat\""), "{:?}", two.chat.remarks);
    assert_eq!((one.chat.session(), two.chat.session()), ("chat", "chat-2"));
    one.enter("And what is postage?");
    two.enter("And on Saturdays?");
    assert_eq!(stored(&place, "chat"), one.chat.log);
    assert_eq!(stored(&place, "chat-2"), two.chat.log);
    let questions =
        |run: &Run| run.chat.log.messages().iter().filter(|message| message.role() == Role::User).count();
    assert_eq!((questions(&one), questions(&two)), (2, 2));
    // A pin does not conflict with a reply, so both are kept.
    let mut three = Run::offline(&place, &["--session", "chat-2"]);
    three.enter("/pin Be brief.");
    two.enter("Do you sell kettles?");
    assert_eq!(two.chat.session(), "chat-2");
    assert_eq!(stored(&place, "chat-2").notes().count(), 1);
}

#[test]
fn plan_equals_the_plan_of_the_stored_conversation() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    for question in ["How long does a refund take?", "When are you open?", "What is postage?"] {
        run.enter(question);
    }
    let manager = {
        let choice = rag_chat::models::choose(None, &environment(&[])).unwrap();
        let mut config = context_window::Config::default();
        config.ttl_policy = context_window::config::TtlPolicy::Ask;
        config.compaction.rules = context_window::config::RulePolicy::Ask;
        config.rag.labels = true;
        config.compaction.strategy = context_window::config::CompactionStrategy::Digest;
        context_window::ContextWindowManager::configured(choice.model, config).unwrap()
    };
    let log = stored(&place, "chat");
    let documents = run.chat.documents.clone();
    let plan = manager.build_plan(&PlanRequest::new(&log).with_retrieved(documents)).unwrap();
    assert_eq!(plan.fingerprint(), run.chat.plan.fingerprint());
}

#[test]
fn retrieval_returns_as_many_documents_as_fit() {
    let pages: Vec<(String, String)> = (0..40)
        .map(|n| {
            (
                format!("page{n}.md"),
                format!("Kettle number {n}. ") + &"A kettle boils water for the tea. ".repeat(30),
            )
        })
        .collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let place = Place::with(&pages);
    let mut small = Run::offline(&place, &["--model", "offline-2k", "--documents", "100"]);
    small.enter("Which kettle boils water?");
    // More would not fit, however short; the plan excludes those of them that do not fit.
    let few = small.chat.documents.len();
    assert!((10..=17).contains(&few), "{few}");
    assert!(small.chat.plan.excluded.iter().any(|item| item.kind == ItemKind::Document));
    let mut large = Run::offline(&place, &["--session", "large", "--documents", "100"]);
    large.enter("Which kettle boils water?");
    assert_eq!(large.chat.documents.len(), 40, "all of them");
    let mut one = Run::offline(&place, &["--session", "one", "--documents", "1"]);
    one.enter("Which kettle boils water?");
    assert_eq!(one.chat.documents.len(), 1);
}

#[test]
fn unsaved_question_is_not_sent_and_not_kept() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("How long does a refund take?");
    // Another program locks the file for longer than a save waits.
    let other = rusqlite::Connection::open(place.data.path().join("chats.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    run.enter("When are you open?");
    assert!(run.has_said("Not saved: "), "{:?}", run.chat.remarks);
    assert_eq!(run.last(), "When are you open?", "it is not sent");
    run.enter("/sessions other");
    assert!(run.said().contains("are not on disk"), "{}", run.said());
    other.execute_batch("ROLLBACK").unwrap();
    run.enter("/retry");
    assert!(run.last().contains("from nine to six"), "{:?}", run.chat.remarks);
    assert_eq!(stored(&place, "chat"), run.chat.log);
    run.chat.ask("And postage?");
    let messages = run.close();
    assert_eq!(stored(&place, "chat").messages().len(), messages, "the end saves what is there");
}

#[test]
fn a_question_that_waits_for_the_index_is_on_disk_and_alone() {
    let place = Place::shop();
    let mut run = Run::unsettled(place.folder.path(), place.data.path(), &[], &environment(&[])).unwrap();
    run.chat.enter("How long does a refund take?");
    assert_eq!(stored(&place, "chat").messages().len(), 2);
    run.chat.enter("When are you open?");
    assert!(run.said().contains("A reply is pending"), "{}", run.said());
    run.chat.enter("/sessions other");
    assert!(run.said().contains("a reply is pending"), "{}", run.said());
    run.settle();
    assert!(run.last().contains("A refund takes five days"), "{}", run.last());
    assert_eq!(run.texts().len(), 3);
}
