//! Laws of the index and of requests.

use crate::talk::{apply, steps, talk};
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, PlanRequest, RagItem, RequestLimits,
    TokenCounter,
};
use context_window_recall::{MessageRanking, Recall, RecallIndex, RecallOptions};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns the recalled documents of a request for the conversation.
fn recalled(recall: &mut Recall, log: &Conversation) -> Vec<RagItem> {
    recall.for_request(PlanRequest::new(log)).retrieved().iter().cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn updates_in_batches_equal_one_update(steps in steps(60), batches in prop::collection::vec(any::<bool>(), 60)) {
        let (mut log, mut index) = (Conversation::new(), RecallIndex::new());
        for (step, updates) in steps.iter().zip(batches) {
            apply(&mut log, step);
            if updates {
                index.update(&log);
            }
        }
        index.update(&log);
        let mut whole = RecallIndex::new();
        prop_assert_eq!(whole.update(&log), log.messages().len());
        prop_assert_eq!(&index, &whole);
        prop_assert_eq!(index.update(&log), 0);
    }

    #[test]
    fn forgetting_equals_an_index_that_never_had_the_messages(steps in steps(40), seed in any::<u64>()) {
        let log = talk(&steps);
        let ids: Vec<String> =
            (0..log.messages().len()).filter(|at| seed >> (at % 64) & 1 == 1).map(|at| format!("m{at}")).collect();
        let mut index = RecallIndex::new();
        index.update(&log);
        index.forget(&log, ids.iter().map(|id| id.as_str().into()));
        // They are forgotten before they are first seen.
        let mut never = RecallIndex::new();
        never.forget(&Conversation::new(), ids.iter().map(|id| id.as_str().into()));
        never.update(&log);
        prop_assert_eq!(index, never);
    }

    #[test]
    fn hits_have_the_texts_of_their_messages(steps in steps(60)) {
        let mut log = talk(&steps);
        log.push(Message::user("Is my blue key in the pot, Ida?").with_id("live"));
        let live = log.messages().len() - 1;
        let items = recalled(&mut Recall::new(), &log);
        for item in &items {
            let messages = item.messages.clone().unwrap();
            prop_assert!(messages.start < messages.end && (messages.end as usize) <= live, "{item:?}");
            prop_assert!(!item.text().contains("Is my blue key in the pot, Ida?"));
            for line in item.text().lines() {
                let line = line.split_once(": ").map_or(line, |(_, text)| text);
                let texts = &log.messages()[messages.start as usize..messages.end as usize];
                prop_assert!(texts.iter().any(|message| message.text().contains(line)), "{line}");
            }
        }
        let spans: Vec<_> = items.iter().filter_map(|item| item.span.clone()).collect();
        for (at, span) in spans.iter().enumerate() {
            for other in &spans[at + 1..] {
                prop_assert!(span.end <= other.start || other.end <= span.start, "{span:?} {other:?}");
            }
        }
        let ids: std::collections::BTreeSet<_> = items.iter().map(|item| item.id().clone()).collect();
        prop_assert_eq!(ids.len(), items.len());
        let scores: Vec<f64> = items.iter().map(RagItem::score).collect();
        prop_assert!(scores.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn requests_are_planned(steps in steps(60), budget in 50u64..2_000) {
        let mut log = talk(&steps);
        log.push(Message::user("Where is my blue key?").with_id("live"));
        let manager =
            ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default()).unwrap();
        let request = PlanRequest::new(&log).with_limits(RequestLimits::prompt_budget(budget));
        manager.build_plan(&Recall::new().for_request(request)).unwrap();
    }
}

/// A talk about ten subjects, each in two messages.
fn subjects() -> Conversation {
    let subjects = [
        ("my dog Max is a golden retriever", "He must love the water then"),
        ("the router in the attic blinks red", "Unplug it for ten seconds and see"),
        ("my sister Ida moved to Trondheim", "That is far up in the north of Norway"),
        ("I paid 45 euros for the concert", "Good seats cost twice as much"),
        ("the tomatoes on the balcony have spots", "It may be blight, remove the leaves"),
        ("Thursday is our anniversary", "Congratulations to both of you"),
        ("I speak Portuguese at home", "Then Galician is easy for you to read"),
        ("my flight leaves at six from gate 12", "Be there at five at the latest"),
        ("the dentist wants to pull a tooth", "Ask for a second opinion before it"),
        ("I finished the novel about Iceland", "The author wrote two more of them"),
    ];
    let long = " and there is nothing else to say about it".repeat(14);
    Conversation::from_iter(subjects.into_iter().flat_map(|(user, assistant)| {
        [Message::user(format!("{user}{long}.")), Message::assistant(format!("{assistant}{long}."))]
    }))
}

#[test]
fn question_brings_its_subject_back() {
    let (mut log, mut recall) = (subjects(), Recall::new());
    for (question, id) in [
        ("What breed is my dog?", "recall:m0"),
        ("In which city does my sister live now?", "recall:m4"),
        ("What did the concert cost in euros?", "recall:m6"),
        ("Which gate does my flight leave from?", "recall:m14"),
    ] {
        let mut asked = log.clone();
        asked.push(Message::user(question));
        let items = recalled(&mut recall, &asked);
        assert_eq!(items[0].id().as_str(), id, "{question}");
    }
    // Most passages have each word of it.
    log.push(Message::user("And there is nothing else to say about it?"));
    log.push(Message::user("And nothing else?"));
    assert_eq!(recalled(&mut recall, &log), []);
}

#[test]
fn short_conversation_is_searched() {
    let long = "It is a long reply about something else. ".repeat(20);
    let log = Conversation::from([
        Message::user("My cat is called Fig."),
        Message::assistant(long),
        Message::user("Who is my cat?"),
    ]);
    let items = recalled(&mut Recall::new(), &log);
    assert_eq!(items[0].id(), "recall:m0");
}

#[test]
fn question_without_rare_words_refers_to_the_one_before() {
    let mut log = subjects();
    log.push(Message::user("Which novel about Iceland was it?"));
    log.push(Message::assistant("You did not name it."));
    log.push(Message::user("And what else is there to say about it?"));
    let items = recalled(&mut Recall::new(), &log);
    assert!(items.iter().any(|item| item.id() == "recall:m18"), "{items:?}");
}

/// Messages that the user left behind do not come back, until the fresh start is undone.
#[test]
fn messages_before_a_fresh_start_do_not_come_back() {
    let mut log = subjects();
    log.start_fresh();
    log.push(Message::user("My aunt moved to Bergen."));
    log.push(Message::assistant("Noted."));
    log.push(Message::user("In which city does my sister Ida live?"));
    let ids = |log: &Conversation| {
        let items = recalled(&mut Recall::new(), log);
        items.iter().map(|item| item.id().to_string()).collect::<Vec<_>>()
    };
    assert!(!ids(&log).contains(&"recall:m4".to_owned()), "{:?}", ids(&log));
    let mut undone = log.clone();
    undone.undo_compaction();
    assert_eq!(ids(&undone)[0], "recall:m4");
    // A rewind to before it undoes it too.
    log.rewind_before("m10").unwrap();
    log.push(Message::user("In which city does my sister Ida live?"));
    assert!(log.active().count() > 1);
    assert_eq!(ids(&log)[0], "recall:m4");
}

/// The answer comes before the talk around it, which may not fit.
#[test]
fn best_message_of_a_passage_comes_first() {
    let mut log = Conversation::from([
        Message::user("Good morning."),
        Message::assistant("Good morning to you."),
        Message::user("The spare key hangs behind the kitchen door."),
        Message::assistant("I see."),
        Message::user("Tell me about the weather."),
        Message::assistant("It rains. ".repeat(120)),
    ]);
    log.push(Message::user("Where does the spare key hang?"));
    let items = recalled(&mut Recall::new(), &log);
    let ids: Vec<&str> = items.iter().map(|item| item.id().as_str()).take(4).collect();
    assert_eq!(ids, ["recall:m2", "recall:m0", "recall:m1", "recall:m3"]);
    assert!(items.is_sorted_by(|a, b| a.score() > b.score()));
}

/// Weak hits stay away: a passage needs a share of what all words of the question weigh.
#[test]
fn weak_hits_stay_away() {
    let mut log = subjects();
    log.push(Message::user("Does Ida play chess, tennis, hockey or the violin?"));
    let found = |min_score: u16| {
        let options = RecallOptions::new().with_min_score(min_score);
        recalled(&mut Recall::new().with_options(options), &log).len()
    };
    let found = [1, 100, 400, 1_000, 3_000].map(found);
    assert!(found.is_sorted_by(|a, b| a >= b) && found[0] > found[3], "{found:?}");
    assert_eq!(found[4], 0);
}

/// A part of a long message never has the id of another message.
#[test]
fn parts_have_ids_of_their_own() {
    let long = "The spare key hangs behind the kitchen door. ".repeat(200);
    let log = Conversation::from([
        Message::user(long).with_id("a"),
        Message::user("The spare key is mine.").with_id("a.2"),
        Message::user("Where is the spare key?"),
    ]);
    let items = recalled(&mut Recall::new(), &log);
    let ids: BTreeSet<String> = items.iter().map(|item| item.id().to_string()).collect();
    assert_eq!(ids.len(), items.len());
    assert!(ids.contains("recall:a#2") && ids.contains("recall:a.2"), "{ids:?}");
}

#[test]
fn rewound_messages_do_not_come_back() {
    let mut log = subjects();
    log.rewind_before("m4").unwrap();
    log.push(Message::user("In which city does my sister Ida live?"));
    let items = recalled(&mut Recall::new(), &log);
    assert!(items.iter().all(|item| item.messages.clone().unwrap().end <= 4), "{items:?}");
}

#[test]
fn rankings_of_the_application_are_fused() {
    let mut log = subjects();
    log.push(Message::user("Which city does my sister live in, and may the tooth stay?"));
    let mut recall = Recall::new();
    let with = |recall: &mut Recall, rankings: &[MessageRanking]| -> Vec<String> {
        let request = recall.for_request_with(PlanRequest::new(&log), rankings);
        request.rag.iter().map(|item| item.id().to_string()).collect()
    };
    assert_eq!(with(&mut recall, &[])[0], "recall:m4");
    let ranking = MessageRanking::new(["m8", "m16", "unknown", "m8"]).with_weight(3);
    let fused = with(&mut recall, &[ranking]);
    // First in one ranking and second in the other beats first in the heavier one alone only at equal
    // weights.
    assert_eq!(fused[..2], ["recall:m16", "recall:m8"]);
}

#[test]
fn dates_are_written_before_messages() {
    let mut log = subjects();
    log.push(Message::user("In which city does my sister live?"));
    let options = RecallOptions::new().with_dates([("m4", 1_702_193_100)]).with_max_hits(1);
    let mut recall = Recall::new().with_options(options);
    let items = recalled(&mut recall, &log);
    assert!(items[0].text().starts_with("user, 2023-12-10: my sister Ida moved"), "{items:?}");
    assert_eq!((items[0].date, items.len()), (Some(1_702_193_100), 1));
}

#[test]
fn another_conversation_is_indexed_from_its_beginning() {
    let mut recall = Recall::new();
    assert_eq!(recall.update(&subjects()), 20);
    let other = Conversation::from([Message::user("The parrot is green."), Message::assistant("Noted.")]);
    assert_eq!(recall.search(&other, "parrot"), []);
    assert_eq!(recall.update(&other), 2);
    assert_eq!(recall.search(&other, "parrots").len(), 1);
    let mut fresh = RecallIndex::new();
    fresh.update(&other);
    assert_eq!(recall.index(), &fresh);
}
