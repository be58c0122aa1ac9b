//! Entries are appended to a session whose state the writer knows, all or none. Commuting changes are merged.

use crate::places::{Place, both};
pub use crate::support::stores::{lived, manager};
use context_window::{events::LogEvent, usage::Level, *};
use context_window_store::SessionStore;
use context_window_store::{Error, ErrorKind};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn open(place: &Place) -> SessionStore {
    SessionStore::open(&place.address).unwrap()
}

fn kind(error: Result<impl Sized, Error>) -> ErrorKind {
    error.err().expect("an error").kind()
}

/// Returns everything that an application sees of a conversation.
pub fn seen(log: &Conversation) -> String {
    let plan = manager().build_plan(&PlanRequest::new(log)).unwrap();
    let usage = manager().usage(&PlanRequest::new(log)).unwrap();
    format!("{}\n{usage:?}\n{:?}\n{:?}", plan.to_json(), log.level(), log.billed())
}

#[test]
fn append_requires_the_known_revision() {
    for place in both() {
        let (mut one, mut two) = (open(&place), open(&place));
        let log = lived();
        let events: Vec<LogEvent> = log.events().collect();
        assert_eq!(one.append("s", 0, events[..5].iter().cloned()).unwrap(), 5);
        // The other writer does not know these entries.
        for (expected, found) in [(0, 5), (4, 5), (6, 5), (99, 5)] {
            let error = two.append("s", expected, events[5..7].iter().cloned()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            let conflict = error.conflict().unwrap();
            assert_eq!(
                (conflict.session.as_str(), conflict.expected, conflict.found),
                ("s", expected, found)
            );
            let said = error.to_string();
            assert!(
                said.contains("`s`") && said.contains('5') && said.contains("nothing was written"),
                "{said}"
            );
            assert_eq!(two.append("s", expected, []).unwrap_err().kind(), ErrorKind::Conflict);
        }
        let (new, revision) = two.load_since("s", 2).unwrap();
        assert_eq!((new.as_slice(), revision), (&events[2..5], 5));
        assert_eq!(two.append("s", 5, events[5..].iter().cloned()).unwrap(), events.len() as u64);
        assert_eq!(two.append("s", events.len() as u64, []).unwrap(), events.len() as u64);
        let error = one.append("s", 5, events[5..6].iter().cloned()).unwrap_err();
        assert!(error.to_string().contains(&format!("{} entries ahead", events.len() - 5)), "{error}");
        assert_eq!(one.load("s").unwrap(), (log.clone(), events.len() as u64));
        assert_eq!(seen(&one.load("s").unwrap().0), seen(&log));
        // A missing session is not created by an append that expects one.
        assert_eq!(kind(one.append("other", 3, events[..2].iter().cloned())), ErrorKind::Conflict);
        assert_eq!(kind(one.load("other")), ErrorKind::NotFound);
        assert_eq!(one.load_or_new("other").unwrap(), (Conversation::new(), 0));
        assert_eq!(kind(one.load_since("s", 10_000)), ErrorKind::Conflict);
    }
}

/// One entry that cannot be written prevents the whole batch.
#[test]
fn a_batch_is_in_whole_or_not_at_all() {
    for place in both() {
        let mut store = open(&place);
        let log = lived();
        let mut revision = store.import("s", &log).unwrap();
        // A conflicting row: the primary key rejects the entry although the counter allows it.
        let session = "(SELECT key FROM cw_session WHERE id = 's')";
        place.sql(&format!(
            "INSERT INTO cw_entry (session, n, kind, sum, entry) VALUES ({session}, {}, 'message', '0', '{{}}')",
            revision + 2
        ));
        let mut longer = log.clone();
        longer.extend(["a", "b", "c", "d"].map(Message::user));
        let error = store.save("s", &mut longer, revision).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        place.sql(&format!("DELETE FROM cw_entry WHERE session = {session} AND n >= {revision}"));
        assert_eq!(store.load("s").unwrap(), (log, revision));
        revision = store.save("s", &mut longer, revision).unwrap();
        assert_eq!(store.load("s").unwrap(), (longer, revision));
    }
}

#[test]
fn save_writes_new_entries_and_checks_its_conversation() {
    for place in both() {
        let mut store = open(&place);
        let mut log = Conversation::new();
        let (whole, mut revision) = (lived(), 0);
        // Saved as it grows, entry by entry.
        for event in whole.events() {
            log.apply_event(event).unwrap();
            revision = store.save("s", &mut log, revision).unwrap();
            assert_eq!(revision, log.event_count() as u64);
        }
        assert_eq!(store.load("s").unwrap(), (whole.clone(), revision));
        assert_eq!(seen(&store.load("s").unwrap().0), seen(&whole));
        let other = || {
            let mut other = whole.clone();
            other.push(Message::user("more"));
            other
        };
        // Another conversation of the same length, a shorter one, and one that is not in the store.
        let mut another = whole.as_of(10);
        while (another.event_count() as u64) < revision {
            another.push(Message::user("x"));
        }
        assert_eq!(kind(store.save("s", &mut another, revision)), ErrorKind::Input);
        assert_eq!(kind(store.save("s", &mut whole.as_of(3), revision)), ErrorKind::Input);
        assert_eq!(kind(store.save("nowhere", &mut other(), revision)), ErrorKind::Conflict);
        assert_eq!(store.load("s").unwrap(), (whole.clone(), revision));
        let mut longer = other();
        assert_eq!(store.save("s", &mut longer, revision).unwrap(), revision + 1);
    }
}

#[test]
fn commuting_changes_are_merged() {
    for place in both() {
        let (mut store, log) = (open(&place), lived());
        let revision = store.import("s", &log).unwrap();
        let manager = manager();
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        let (mut replies, mut pins) = (log.clone(), log.clone());
        replies.push_reply(&plan, Message::assistant("now"), Usage::openai(9, 0, 9));
        pins.pin(PinnedItem::new("new", "A note."));
        pins.set_ttl("q18", Ttl::Limited(2.try_into().unwrap())).unwrap();
        let after = store.save("s", &mut replies, revision).unwrap();
        assert_eq!(store.save("s", &mut pins, revision).unwrap(), after + 2);
        let (stored, _) = store.load("s").unwrap();
        assert_eq!(pins, stored, "the conversation took in what the other one wrote");
        assert_eq!(seen(&pins), seen(&stored));
        assert_eq!(stored.anchor(), replies.anchor(), "the newest prompt is the one that was sent");
        assert_eq!(stored.notes().filter(|note| note.id() == "new").count(), 1);
        // Both writers added a message, which is a conflict because only one can come first.
        let (mut ada, mut bob) = (stored.clone(), stored.clone());
        let revision = after + 2;
        ada.push(Message::user("from Ada"));
        bob.push(Message::user("from Bob"));
        bob.pin(PinnedItem::new("bob", "Bob."));
        store.save("s", &mut ada, revision).unwrap();
        let before = bob.clone();
        let error = store.save("s", &mut bob, revision).unwrap_err();
        assert_eq!(error.conflict().map(|conflict| conflict.found), Some(revision + 1), "{error}");
        assert_eq!(bob, before, "a conversation that was not saved is as it was");
        // Both changed one item, and both used one id.
        let (mut ada, mut bob) = (store.load("s").unwrap().0, store.load("s").unwrap().0);
        ada.pin(PinnedItem::new("tone", "Long answers."));
        bob.unpin("tone");
        let revision = store.save("s", &mut ada, revision + 1).unwrap();
        assert_eq!(kind(store.save("s", &mut bob, revision - 1)), ErrorKind::Conflict);
        let (mut ada, mut bob) = (ada.clone(), ada);
        ada.push(Message::user("x").with_id("taken"));
        bob.pin(PinnedItem::new("taken", "y"));
        let revision = store.save("s", &mut ada, revision).unwrap();
        assert_eq!(kind(store.save("s", &mut bob, revision - 1)), ErrorKind::Conflict);
        assert_eq!(store.load("s").unwrap(), (ada, revision));
    }
}

#[test]
fn update_retries_its_change_after_a_conflict() {
    for place in both() {
        let (mut store, mut other) = (open(&place), open(&place));
        let mut overtaken = 0;
        let (log, revision) = store
            .update("s", |log| {
                if overtaken < 3 {
                    overtaken += 1;
                    other.update("s", |log| {
                        log.push(Message::user(format!("{overtaken}")));
                        Ok(())
                    })?;
                }
                let said = format!("after {}", log.messages().len());
                log.push(Message::assistant(said));
                Ok(())
            })
            .unwrap();
        let said: Vec<&str> = log.messages().iter().map(Message::text).collect();
        assert_eq!((said, revision), (vec!["1", "2", "3", "after 3"], 4));
        assert_eq!(store.load("s").unwrap(), (log, 4));
        let refused = store.update("s", |log| {
            log.push(Message::user("never"));
            Err(log.rewind_before("nowhere").unwrap_err().into())
        });
        assert_eq!(refused.unwrap_err().core().unwrap().kind(), context_window::ErrorKind::NotFound);
        assert_eq!(store.load("s").unwrap().1, 4);
    }
}

/// A session recreated under the same id is a different one, and no entries of the two are mixed.
#[test]
fn recreated_session_is_a_different_session() {
    for place in both() {
        let (mut store, mut other) = (open(&place), open(&place));
        let said = |texts: &[&str]| texts.iter().copied().map(Message::user).collect::<Conversation>();
        for again in [&["x", "y", "z"][..], &["x", "y"], &["x"]] {
            store.import("s", &said(&["a", "b"])).unwrap();
            let mut begun = false;
            let (log, revision) = store
                .update("s", |log| {
                    if !std::mem::replace(&mut begun, true) {
                        other.delete("s").unwrap();
                        other.import("s", &said(again)).unwrap();
                    }
                    log.push(Message::user("mine"));
                    Ok(())
                })
                .unwrap();
            let expected = said(&[again, &["mine"]].concat());
            assert_eq!((&log, revision), (&expected, again.len() as u64 + 1));
            assert_eq!(store.load("s").unwrap(), (log, revision));
            store.delete("s").unwrap();
        }
    }
}

#[test]
fn edges_of_appending() {
    for place in both() {
        let mut store = open(&place);
        let one = || Conversation::from([Message::user("a")]);
        // An empty append creates no session, but an empty conversation can be imported as one.
        assert_eq!(store.append("s", 0, []).unwrap(), 0);
        assert_eq!(kind(store.load("s")), ErrorKind::NotFound);
        assert_eq!(store.import("s", &Conversation::new()).unwrap(), 0);
        assert_eq!(store.load("s").unwrap(), (Conversation::new(), 0));
        assert_eq!(store.load_active("s").unwrap(), (Conversation::new(), 0));
        assert_eq!(kind(store.import("s", &one())), ErrorKind::Input);
        assert_eq!(store.append("s", 0, one().events()).unwrap(), 1);
        for expected in [2, u64::MAX, u64::MAX - 1, i64::MAX as u64] {
            let error = store.append("s", expected, one().events()).unwrap_err();
            assert_eq!(
                error.conflict().map(|conflict| (conflict.expected, conflict.found)),
                Some((expected, 1))
            );
            assert_eq!(kind(store.load_since("s", expected)), ErrorKind::Conflict);
        }
        // Two messages with one id are stored unchanged; planning reports them.
        let twice = Conversation::from([Message::user("a").with_id("x"), Message::user("b").with_id("x")]);
        store.import("twice", &twice).unwrap();
        assert_eq!(store.load_active("twice").unwrap().0, twice);
        // A model name that no database column accepts.
        let manager =
            ContextWindowManager::new(Model::custom("a\0b"), TokenCounter::chars_per_4(), Config::default())
                .unwrap();
        let mut log = one();
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        log.push_reply(&plan, Message::assistant("b"), None);
        let revision = store.import("model", &log).unwrap();
        assert_eq!(store.load("model").unwrap(), (log, revision));
        assert_eq!(store.summary("model").unwrap().unwrap().model.as_deref(), Some("ab"));
        assert_eq!(store.check("model").unwrap().faults, Vec::<String>::new());
    }
}

/// A change by another writer.
#[derive(Debug, Clone)]
enum Step {
    Say(u8),
    Pin(u8),
    PinMessage(u8),
    Unpin(u8),
    Live(u8),
    Reply,
    Turn,
    Compact,
    Rewind,
    Level,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..3).prop_map(Step::Say),
        3 => (0u8..6).prop_map(Step::Pin),
        2 => (0u8..6).prop_map(Step::PinMessage),
        2 => (0u8..6).prop_map(Step::Unpin),
        2 => (0u8..6).prop_map(Step::Live),
        1 => Just(Step::Reply),
        1 => Just(Step::Turn),
        1 => Just(Step::Compact),
        1 => Just(Step::Rewind),
        1 => Just(Step::Level),
    ]
}

fn take(log: &mut Conversation, step: &Step) {
    let manager = manager();
    match step {
        Step::Say(0) => drop(log.push(Message::user("why?"))),
        Step::Say(1) => drop(log.push(Message::assistant("so"))),
        Step::Say(at) => drop(log.push(Message::user("named").with_id(format!("n{at}")))),
        Step::Pin(at) => log.pin(PinnedItem::new(format!("n{at}"), "a note")),
        Step::PinMessage(at) => drop(log.pin_message(format!("m{at}"), Priority::High)),
        Step::Unpin(at) => drop((log.unpin(format!("n{at}")), log.unpin(format!("m{at}")))),
        Step::Live(at) => drop(log.set_ttl(format!("m{at}"), Ttl::Limited(2.try_into().unwrap()))),
        Step::Reply | Step::Turn => {
            if let Ok(plan) = manager.build_plan(&PlanRequest::new(log)) {
                match step {
                    Step::Reply => {
                        drop(log.push_reply(&plan, Message::assistant("r"), Usage::openai(9, 0, 9)))
                    }
                    _ => log.complete_turn(&plan),
                }
            }
        }
        Step::Compact => log.start_fresh(),
        Step::Rewind => drop(log.rewind_before("m3")),
        Step::Level => {
            if let Ok(mut usage) = manager.usage(&PlanRequest::new(log)) {
                usage.level = if log.level() == Level::Normal { Level::Approaching } else { Level::Normal };
                log.observe_usage(usage);
            }
        }
    }
}

/// Returns the state that both orders have to agree on. The position of a note is not included, because it
/// depends on the order.
fn state(log: &Conversation) -> impl PartialEq + std::fmt::Debug {
    let messages: Vec<String> = log.messages().iter().map(|message| format!("{message:?}")).collect();
    let notes: BTreeMap<String, String> =
        log.notes().map(|note| (note.id().to_string(), format!("{note:?}"))).collect();
    let active: Vec<String> = log.active().map(|part| format!("{part:?}")).collect();
    let ttls: Vec<String> = log.ttls().map(|ttl| format!("{ttl:?}")).collect();
    let pins: Vec<String> = log.pins().map(|pin| format!("{pin:?}")).collect();
    (messages, notes, active, ttls, pins, log.level(), log.billed(), log.anchor().cloned())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("FULL").is_some() { 20_000 } else { 400 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two writers start from one conversation. If both are saved, the other order gives the same result.
    /// Otherwise the second one gets a conflict and changes nothing.
    #[test]
    fn merged_changes_give_the_same_log_in_either_order(
        before in prop::collection::vec(step(), 0..10),
        ours in prop::collection::vec(step(), 1..4),
        theirs in prop::collection::vec(step(), 1..4),
    ) {
        let folder = crate::places::Folder::new();
        let mut base = Conversation::from([Message::user("a"), Message::assistant("b"), Message::user("c"), Message::assistant("d")]);
        before.iter().for_each(|step| take(&mut base, step));
        let mut store = SessionStore::open(&folder.sqlite("law.db")).unwrap();
        let revision = store.import("one", &base).unwrap();
        store.import("two", &base).unwrap();
        let grown = |steps: &[Step]| {
            let mut log = base.clone();
            steps.iter().for_each(|step| take(&mut log, step));
            log
        };
        let saved = |store: &mut SessionStore, id: &str, first: &[Step], second: &[Step]| {
            store.save(id, &mut grown(first), revision).unwrap();
            let mut log = grown(second);
            let before = log.clone();
            match store.save(id, &mut log, revision) {
                Ok(_) => {
                    assert_eq!(store.load(id).unwrap().0, log);
                    Some(log)
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conflict);
                    assert_eq!(log, before);
                    None
                }
            }
        };
        let one = saved(&mut store, "one", &theirs, &ours);
        let two = saved(&mut store, "two", &ours, &theirs);
        prop_assert_eq!(one.as_ref().map(state), two.as_ref().map(state));
        if let Some(log) = one {
            // A merge never uses an id twice.
            let fine = |log: &Conversation| manager().build_plan(&PlanRequest::new(log)).is_ok();
            prop_assert!(fine(&log) || !fine(&grown(&ours)) || !fine(&grown(&theirs)));
        }
    }
}
