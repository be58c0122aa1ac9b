//! Tests of the commands.

use crate::support::{Place, Run};
use context_window::{IncludedReason, plan::NoticeCode};
use context_window_ratatui::{BannerAction, NoticeAction};

#[test]
fn pins_stay_expire_and_ask() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("/pin The customer likes short answers.").enter("/ttl 1");
    assert!(run.said().contains("note-1"), "{}", run.said());
    let is_in = |run: &Run| run.chat.plan.included.iter().any(|item| item.id.as_str() == "note-1");
    run.enter("How long does a refund take?");
    assert!(is_in(&run), "it was in the prompt of its turn, and is asked about in the next");
    let asks = |run: &Run| {
        run.chat.plan.notices.iter().find(|notice| notice.code == NoticeCode::TtlQuestion).cloned()
    };
    let notice = asks(&run).expect("a question");
    let actions = NoticeAction::for_notice(&run.chat.plan, &notice, 3);
    run.chat.answer(&actions[1]);
    assert!(asks(&run).is_none() && is_in(&run), "kept for three turns more");
    run.enter("/unpin note-1");
    assert!(!is_in(&run));
    run.enter("/pin m1");
    assert!(run.chat.log.is_pinned("m1"));
    run.enter("/drop m1");
    assert!(!run.chat.log.is_pinned("m1"));
    for (line, error) in [
        ("/pin", "expected a text to pin"),
        ("/unpin nothing", "\"nothing\" is not pinned"),
        ("/ttl soon", "expected a number of turns"),
        ("/drop m1", "it is not a document of the prompt; /compact archives messages, /undo ID"),
        ("/undo nothing", "nothing"),
        ("/undo m0", "cannot be removed"),
        ("/undo", "no compaction or fresh start to revert; /undo ID"),
        ("/explain", "expected the id of an item"),
        ("/explain nothing", "nothing"),
        ("/save", "expected a file"),
        ("/save /no/such/folder/x.json", "/no/such/folder/x.json"),
        ("/model gpt-5.4-mini", "Set OPENAI_API_KEY"),
        ("/diff", "fewer than two prompts"),
        ("/nothing", "There is no command /nothing"),
    ] {
        let before = run.texts();
        run.enter(line);
        assert!(run.said().contains(error), "{line}: {}", run.said());
        assert!(run.chat.remarks.last().unwrap().is_error, "{line}");
        assert_eq!(run.texts(), before, "{line}");
    }
}

#[test]
fn items_are_pinned_and_excluded_by_their_rows() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("How long does a refund take?").enter("/pin Be brief.").enter("When are you open?");
    let is_in = |run: &Run, id: &str| run.chat.plan.included.iter().any(|item| item.id.as_str() == id);
    let document = run.chat.documents[0].id().clone();
    assert!(run.chat.toggle_pin(&document, true).ends_with("documents cannot be pinned"));
    assert!(run.chat.toggle_pin(&"m0".into(), false).contains("pinned"), "a system text is a message");
    assert!(run.chat.toggle_pin(&"m1".into(), false).contains("m1 and its exchange are pinned"));
    assert!(run.chat.log.is_pinned("m1"));
    assert_eq!(run.chat.toggle_pin(&"m1".into(), false), "m1 is unpinned");
    assert!(!run.chat.log.is_pinned("m1"));
    assert!(run.chat.toggle_pin(&"nothing".into(), false).contains("cannot be pinned"));

    let said = run.chat.exclude(&document, true);
    assert_eq!(said, format!("{document} is excluded from now on, /drop {document} restores it"));
    assert!(!is_in(&run, document.as_str()));
    run.enter(&format!("/drop {document}"));
    assert_eq!(run.said(), format!("{document} is no longer excluded."));
    assert!(is_in(&run, document.as_str()));
    let long = format!("{}page.md#1", "folder/".repeat(40));
    let said = run.chat.exclude(&long.as_str().into(), true);
    let hint = said.split_once("/drop ").and_then(|(_, hint)| hint.strip_suffix(" restores it")).unwrap();
    run.enter(&format!("/drop {hint}"));
    assert!(run.said().ends_with(" is no longer excluded."), "{said}: {}", run.said());
    let live = run.chat.plan.included.iter().find(|item| item.reason == IncludedReason::Required).unwrap();
    let live = live.id.clone();
    assert!(run.chat.exclude(&live, false).contains("it cannot be excluded"), "{live}");
    assert!(run.chat.exclude(&"m2".into(), false).contains("p restores it"));
    assert!(!is_in(&run, "m2"));
    assert!(run.chat.exclude(&"m2".into(), false).contains("is already excluded"));
    run.chat.toggle_pin(&"m2".into(), false);
    assert!(is_in(&run, "m2"), "a pin forgets that its life is over");
    assert!(run.chat.exclude(&"note-1".into(), false).contains("/ttl note-1 3 restores it"));
    assert!(!is_in(&run, "note-1"));
    run.enter("/ttl note-1 3");
    assert!(is_in(&run, "note-1"));
    assert_eq!(run.texts().len(), 5, "nothing is lost");
}

#[test]
fn a_document_that_was_dropped_is_not_sent_again() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("How long does a refund take?");
    let is_in =
        |run: &Run| run.chat.plan.included.iter().any(|item| item.id.as_str() == "terms/refunds.md#1");
    assert!(is_in(&run));
    run.enter("/drop terms/refunds.md#1");
    assert_eq!(run.said(), "terms/refunds.md#1 is excluded from now on.");
    assert!(!is_in(&run));
    run.enter("How long does a refund take?");
    assert!(!is_in(&run) && !run.last().contains("five days after"), "{}", run.last());
}

#[test]
fn compaction_is_previewed_applied_and_undone() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("/compact");
    assert!(run.said().starts_with("Nothing was compacted: "), "{}", run.said());
    for question in
        ["How long does a refund take?", "When are you open?", "What is postage?", "Do you sell kettles?"]
    {
        run.enter(question);
    }
    let (whole, plan) = (run.texts(), run.chat.plan.fingerprint());
    run.enter("/compact");
    assert!(
        run.said().contains("Compaction would archive 6 messages, m1 to m6. In their place: a digest"),
        "{}",
        run.said()
    );
    run.chat.decide(false);
    assert_eq!(run.chat.plan.fingerprint(), plan, "nothing changed");
    // A word is accepted as an answer to the preview, and not as a question.
    run.enter("/compact").enter("No");
    assert_eq!((run.said(), run.texts().len()), ("Nothing was compacted.", whole.len()));
    run.enter("/compact").enter(" yes ");
    assert!(run.said().contains("6 messages are archived"), "{}", run.said());
    assert_eq!(run.chat.log.compactions().count(), 1);
    assert_eq!(run.texts(), whole, "nothing is deleted");
    run.enter("/undo");
    assert_eq!(run.chat.log.active().count(), whole.len(), "all of it is sent again");
    run.enter("/fresh");
    assert!(run.chat.plan.included.len() <= 2, "{:?}", run.chat.plan.included);
    // A reply can be requested again: the question is the last active message.
    run.enter("/undo").enter("/undo m8").enter("/retry");
    assert_eq!(run.last(), whole.last().unwrap());
    assert_eq!(run.texts().len(), whole.len() + 1);
    let whole = run.texts();
    run.enter("/undo m5");
    assert!(run.said().contains("continues from before m5"), "{}", run.said());
    assert!(run.chat.plan.included.iter().all(|item| item.id.as_str() != "m5"));
    run.chat.make_room(BannerAction::CompactNow);
    run.settle();
    assert_eq!(run.texts(), whole);
}

#[test]
fn a_smaller_model_keeps_the_question_and_a_larger_one_has_all_again() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    for n in 0..6 {
        run.enter(&format!(
            "Question {n}: how long does a refund take, and when are you open? {}",
            "Please. ".repeat(60)
        ));
    }
    let count = |run: &Run| run.chat.plan.included.len();
    let before = count(&run);
    run.enter("/model offline-1k");
    assert!(run.has_said("Window 1,024"), "{:?}", run.chat.remarks);
    assert!(count(&run) < before, "{} {before} {:?}", count(&run), run.chat.remarks);
    assert!(
        run.chat.plan.estimated_tokens_total.tokens <= run.chat.plan.prompt_budget,
        "{:?} {:?}",
        run.chat.plan.overflow,
        run.chat.remarks
    );
    run.enter("/model offline-16k");
    run.enter("What is postage?");
    assert!(run.last().contains("four crowns"), "{}", run.last());
    assert_eq!(run.chat.plan.model, "offline-16k");
}

#[test]
fn explanations_differences_costs_and_copies() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("How long does a refund take?").enter("When are you open?");
    run.enter("/explain refunds.md#1");
    assert!(
        run.said().starts_with("rag:terms/refunds.md#1") || run.said().starts_with("terms/refunds.md#1"),
        "{}",
        run.said()
    );
    run.enter("/explain m3");
    assert!(run.said().contains("m3  in: required"), "{}", run.said());
    run.enter("/diff");
    assert!(run.said().contains("m3: not in session -> in: required (new item)"), "{}", run.said());
    assert!(run.said().contains("tokens are equal to those of the previous prompt."), "{}", run.said());
    run.enter("/cost");
    assert!(
        run.said().starts_with("Billed so far: 0 tokens in") && run.said().contains("offline has no price"),
        "{}",
        run.said()
    );
    let file = place.data.path().join("copy.json");
    run.enter(&format!("/save {}", file.display())).enter(&format!("/save {}", file.display()));
    assert!(run.said().contains("exists already"), "{}", run.said());
    let copy = std::fs::read_to_string(&file).unwrap();
    let session = context_window_formats::Session::from_json(&copy).unwrap();
    assert_eq!(session.log.messages().len(), run.chat.log.messages().len());
    assert_eq!(session.rag.len(), run.chat.documents.len());
    assert_eq!(session.limits.model_context_len, Some(8_192));
}

#[test]
fn sessions_are_listed_and_resume_at_their_last_turn() {
    let place = Place::shop();
    let mut run = Run::offline(&place, &[]);
    run.enter("How long does a refund take?");
    let texts = run.texts();
    run.enter("/sessions work").enter("When are you open?");
    assert_eq!((run.chat.session(), run.texts().len()), ("work", 3));
    run.enter("/sessions");
    assert!(run.said().contains("* work: ") && run.said().contains("\n  chat: "), "{}", run.said());
    run.enter("/sessions chat");
    assert_eq!(run.texts(), texts);
    assert!(!run.chat.enter("/quit"), "the chat ends");
}

#[test]
fn session_continues_with_its_model() {
    let place = Place::shop();
    let model = |run: &Run| run.chat.choice.model.name.clone();
    // Models set on the command line, by a command, and in another session started meanwhile.
    drop(Run::offline(&place, &["--model", "offline-4k"]));
    let mut run = Run::offline(&place, &[]);
    assert_eq!((model(&run).as_str(), run.chat.plan.limits.model_context_len), ("offline-4k", 4_096));
    run.enter("/model offline-2k").enter("/sessions work").enter("When are you open?");
    drop(run);
    let mut run = Run::offline(&place, &["--session", "work"]);
    assert_eq!(model(&run), "offline-2k");
    run.enter("/model offline-16k").enter("/sessions chat");
    assert_eq!((model(&run).as_str(), run.chat.plan.limits.model_context_len), ("offline-2k", 2_048));
    run.enter("/sessions work");
    assert_eq!(model(&run), "offline-16k");
    // A session without a requested model uses that of the environment, and so does a single question.
    assert_eq!(model(&Run::offline(&place, &["--session", "new"])), "offline");
    assert_eq!(model(&Run::offline(&place, &["--ask", "x"])), "offline");
    assert_eq!(model(&Run::offline(&place, &["--model", "offline-1k"])), "offline-1k");

    // A model that is no longer available, and a file that cannot be read.
    let file = place.data.path().join("models.json");
    std::fs::write(&file, r#"{"chat": "gpt-5.4-mini"}"#).unwrap();
    let run = Run::offline(&place, &[]);
    assert_eq!(model(&run), "offline");
    assert!(
        run.has_said("This session was used with gpt-5.4-mini; offline answers now"),
        "{:?}",
        run.chat.remarks
    );
    std::fs::write(&file, "{").unwrap();
    let mut run = Run::offline(&place, &[]);
    assert!(run.has_said("the model of this session is unknown"), "{:?}", run.chat.remarks);
    run.enter("/model offline-2k");
    assert!(run.has_said("The model is not saved"), "{:?}", run.chat.remarks);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{", "it is not written over");
}
