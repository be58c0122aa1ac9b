//! The index file: saving, damage, and forgetting.

use crate::talk::{Folder, apply, steps, talk};
use context_window::{Conversation, Message};
use context_window_recall::{Opened, RebuildReason, Recall, RecallIndex};
use proptest::prelude::*;
use std::fs;

fn built(log: &Conversation) -> RecallIndex {
    let mut index = RecallIndex::new();
    index.update(log);
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn saved_and_opened_equals(steps in steps(60), saves in prop::collection::vec(0u8..4, 60)) {
        let folder = Folder::new("saves");
        let path = folder.0.join("talk.recall");
        let (mut log, mut recall) = (Conversation::new(), Recall::open(folder.0.join("talk.recall"), &Conversation::new()).unwrap().0);
        for (step, save) in steps.iter().zip(saves) {
            apply(&mut log, step);
            match save {
                0 => {
                    recall.update(&log);
                    recall.save().unwrap();
                }
                1 => drop(recall.update(&log)),
                // A process that is killed between the log and the index.
                2 => recall = Recall::open(&path, &log).unwrap().0,
                _ => {}
            }
        }
        recall.update(&log);
        recall.save().unwrap();
        prop_assert_eq!(recall.index(), &built(&log));
        let (opened, outcome) = Recall::open(&path, &log).unwrap();
        prop_assert_eq!(outcome, Opened::Loaded);
        prop_assert_eq!(opened.index(), &built(&log));
    }

    #[test]
    fn damaged_file_opens_with_an_equal_index(
        steps in steps(40),
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 0..3),
        extra in prop::collection::vec(any::<u8>(), 0..40),
        truncates in any::<bool>(),
    ) {
        let folder = Folder::new("damage");
        let path = folder.0.join("talk.recall");
        let log = talk(&steps);
        let half = talk(&steps[..steps.len() / 2]);
        let mut recall = Recall::open(&path, &half).unwrap().0;
        recall.save().unwrap();
        recall.update(&log);
        recall.save().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        if truncates {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        for (at, bit) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
        }
        bytes.extend(extra);
        fs::write(&path, &bytes).unwrap();
        let (mut opened, _) = Recall::open(&path, &log).unwrap();
        prop_assert_eq!(opened.index(), &built(&log));
        opened.save().unwrap();
        let (again, outcome) = Recall::open(&path, &log).unwrap();
        prop_assert!(matches!(outcome, Opened::Loaded | Opened::CaughtUp { .. }), "{:?}", outcome);
        prop_assert_eq!(again.index(), &built(&log));
    }
}

#[test]
fn outcome_of_opening_has_its_reason() {
    let folder = Folder::new("outcome");
    let path = folder.0.join("talk.recall");
    let mut log = Conversation::from([Message::user("The key is in the pot."), Message::assistant("Noted.")]);
    let open = |log: &Conversation| Recall::open(&path, log).unwrap();
    let (mut recall, outcome) = open(&log);
    assert_eq!(outcome, Opened::Rebuilt(RebuildReason::Missing));
    recall.save().unwrap();
    assert_eq!(open(&log).1, Opened::Loaded);
    let other = Conversation::from([Message::user("The key is in the shed."), Message::assistant("Noted.")]);
    assert_eq!(open(&other).1, Opened::Rebuilt(RebuildReason::OtherConversation));
    assert_eq!(open(&Conversation::new()).1, Opened::Rebuilt(RebuildReason::OtherConversation));
    log.push(Message::user("Thanks."));
    assert_eq!(open(&log).1, Opened::CaughtUp { messages: 1 });

    let saved = fs::read(&path).unwrap();
    fs::write(&path, &saved[..saved.len() - 1]).unwrap();
    assert_eq!(open(&log).1, Opened::Rebuilt(RebuildReason::Damaged));
    fs::write(&path, "context-window-recall 9\n").unwrap();
    assert_eq!(open(&log).1, Opened::Rebuilt(RebuildReason::OtherVersion));
    fs::write(&path, "{}").unwrap();
    assert_eq!(open(&log).1, Opened::Rebuilt(RebuildReason::Damaged));
    let error = Recall::open(&folder.0, &log).unwrap_err().to_string();
    assert!(error.contains("cannot be read") && error.contains("check the folder"), "{error}");
}

#[test]
fn forgotten_words_are_not_in_the_file() {
    let folder = Folder::new("forget");
    let path = folder.0.join("talk.recall");
    let log = Conversation::from([
        Message::user("The spare key is under the flowerpot."),
        Message::user("My password is Xylophon77, keep it.").with_id("se\\cret\n1"),
        Message::assistant("The flowerpot, noted."),
    ]);
    let mut recall = Recall::open(&path, &log).unwrap().0;
    recall.save().unwrap();
    let has = |word: &str| fs::read(&path).unwrap().windows(word.len()).any(|bytes| bytes == word.as_bytes());
    assert!(has("xylophon77") && has("password") && has("flowerpot"));
    assert_eq!(recall.forget(&log, ["se\\cret\n1", "unknown"]), 1);
    recall.save().unwrap();
    assert!(!has("xylophon") && !has("password") && has("flowerpot"));
    assert!(fs::read_dir(&folder.0).unwrap().count() == 1, "no other file remains");
    assert_eq!(recall.search(&log, "password"), []);
    assert!(!recall.search(&log, "flowerpot")[0].text.contains("Xylophon77"));

    // They are not indexed again, also not by another process.
    let (mut opened, outcome) = Recall::open(&path, &log).unwrap();
    assert_eq!((outcome, opened.index() == recall.index()), (Opened::Loaded, true));
    let mut longer = log.clone();
    longer.push(Message::user("Which password?"));
    opened.update(&longer);
    opened.save().unwrap();
    assert_eq!(opened.search(&longer, "xylophon77"), []);
}
