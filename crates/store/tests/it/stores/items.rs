//! Sessions as lists of items: read and removed from the end.

use crate::places::both;
use context_window::{
    conversation::{CompactionKind, Event},
    *,
};
use context_window_store::{ErrorKind, SessionStore};

fn texts(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|n| format!("{{\"item\": \"{n} \u{1f980}\"}}")).collect()
}

#[test]
fn newest_items_are_those_of_a_list() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        assert_eq!(store.newest_items("s", "item", None).unwrap(), [""; 0]);
        assert_eq!(store.pop_item("s", "item").unwrap(), None);
        // A list in memory is the model. The steps reach every branch: long runs of removals, and items after
        // them.
        let mut model: Vec<String> = Vec::new();
        let mut chance: u64 = 7;
        for step in 0..400 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let roll = usize::try_from(chance >> 60).unwrap();
            match roll {
                0..6 => {
                    let new = texts(step * 10..step * 10 + roll);
                    store.push_items("s", "item", &new).unwrap();
                    model.extend(new);
                }
                6..14 => assert_eq!(store.pop_item("s", "item").unwrap(), model.pop(), "step {step}"),
                _ => {
                    let start = model.len().saturating_sub(roll);
                    assert_eq!(store.newest_items("s", "item", Some(roll)).unwrap(), model[start..]);
                }
            }
        }
        assert_eq!(store.newest_items("s", "item", None).unwrap(), model);
        // The whole session is a valid conversation, in which removed items are archived.
        let (log, _) = store.load("s").unwrap();
        assert!(log.messages().len() > model.len());
        assert_eq!(store.check("s").unwrap().faults, [""; 0].map(str::to_owned));
    }
}

#[test]
fn items_are_found_after_another_writer_rewound() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        // Items of an earlier version have no ids of their own: they are rewound by position.
        let part = |n: usize| Part::Opaque {
            wire_format: WireFormat::OpenAiResponses,
            json: format!("{{\"type\":\"item\",\"json\":\"{n}\"}}"),
        };
        let message = |n: usize| Message::new(Role::Assistant, "").with_parts([part(n)]);
        let mut log = Conversation::from((0..30).map(message).collect::<Vec<_>>());
        log.rewind_before("m25").unwrap();
        log.pin(PinnedItem::new("tone", "Short answers."));
        let revision = store.save("s", &mut log, 0).unwrap();
        assert_eq!(store.newest_items("s", "item", Some(2)).unwrap(), ["23", "24"]);
        assert_eq!(store.pop_item("s", "item").unwrap().as_deref(), Some("24"));
        store.push_items("s", "item", &["\"new\"".into()]).unwrap();
        assert_eq!(store.newest_items("s", "item", Some(2)).unwrap(), ["23", "\"new\""]);
        assert_eq!(store.newest_items("s", "other", None).unwrap(), [""; 0]);
        // A compaction archives everything before it.
        let (mut log, latest) = store.load("s").unwrap();
        assert!(latest > revision);
        log.start_fresh();
        store.save("s", &mut log, latest).unwrap();
        assert_eq!(store.newest_items("s", "item", None).unwrap(), [""; 0]);
        store.push_items("s", "item", &["\"last\"".into()]).unwrap();
        assert_eq!(store.newest_items("s", "item", None).unwrap(), ["\"last\""]);
    }
}

#[test]
fn items_are_the_messages_that_are_not_archived() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        store.push_items("s", "item", &texts(0..6)).unwrap();
        // A compaction may keep the newest messages.
        let (mut log, revision) = store.load("s").unwrap();
        let record = log.compaction_record(CompactionKind::SlidingWindow, None, None, Some(4));
        log.record(Event::Compacted(Box::new(record)));
        let revision = store.save("s", &mut log, revision).unwrap();
        for limit in [None, Some(4)] {
            assert_eq!(store.newest_items("s", "item", limit).unwrap(), texts(4..6));
        }
        assert_eq!(log.undo_compaction(), Some(1));
        let revision = store.save("s", &mut log, revision).unwrap();
        assert_eq!(store.newest_items("s", "item", Some(3)).unwrap(), texts(3..6));
        // A rewind to before a compaction undoes it.
        log.start_fresh();
        log.rewind_before("entry-2").unwrap();
        store.save("s", &mut log, revision).unwrap();
        for limit in [None, Some(2)] {
            assert_eq!(store.newest_items("s", "item", limit).unwrap(), texts(0..2));
        }
        assert_eq!(store.pop_item("s", "item").unwrap(), texts(1..2).pop());
    }
}

#[test]
fn part_with_further_keys_is_no_item() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let json = r#"{"type":"item","item":1,"more":2}"#.into();
        let part = Part::Opaque { wire_format: WireFormat::OpenAiResponses, json };
        let message = Message::new(Role::Assistant, "").with_parts([part]).with_id("other");
        store.save("s", &mut Conversation::from(vec![message]), 0).unwrap();
        assert_eq!(store.newest_items("s", "item", None).unwrap(), [""; 0]);
        store.push_items("s", "item", &["3".into()]).unwrap();
        assert_eq!(store.newest_items("s", "item", None).unwrap(), ["3"]);
    }
}

#[test]
fn concurrent_writers_of_items_lose_none() {
    for place in both() {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let address = place.address.clone();
                std::thread::spawn(move || {
                    let mut store = SessionStore::open(&address).unwrap();
                    for n in 0..15 {
                        let two = [format!("[{writer},{n}]"), format!("[{writer},{n}]")];
                        store.push_items("s", "item", &two).unwrap();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let mut store = SessionStore::open(&place.address).unwrap();
        let all = store.newest_items("s", "item", None).unwrap();
        assert_eq!(all.len(), 90);
        // Each append is all or nothing, in the order of its writer.
        assert!(all.chunks(2).all(|two| two[0] == two[1]));
        let of_first: Vec<_> = all.iter().filter(|item| item.starts_with("[0,")).step_by(2).collect();
        assert_eq!(
            of_first,
            (0..15).map(|n| format!("[0,{n}]")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
        let error = store.push_items("", "item", &["1".into()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }
}
