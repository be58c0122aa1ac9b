//! A session without its archived texts gives the plans of the complete one.

use super::appending::{lived, manager, seen};
use crate::places::both;

use context_window::*;
use context_window_store::ErrorKind;
use context_window_store::{Journal, SessionStore};

#[test]
fn archived_messages_stay_in_the_store_until_requested() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let mut log = lived();
        let revision = store.import("s", &log).unwrap();
        let (mut active, at) = store.load_active("s").unwrap();
        assert_eq!(at, revision);
        let left = active.messages().iter().filter(|message| !message.is_loaded()).count();
        let archived = log.messages().len() - log.active().count();
        assert!(left > 30 && left <= archived, "{left} of {archived}");
        assert!(active.messages().iter().zip(log.messages()).all(|(left, whole)| {
            left == whole || !left.is_loaded() && left.text().is_empty() && left.role() == whole.role()
        }));
        assert_eq!(seen(&active), seen(&log));
        // It continues with replies, compactions and saves.
        for log in [&mut active, &mut log] {
            for at in 0..12 {
                let plan = manager().build_plan(&PlanRequest::new(log)).unwrap();
                log.push_reply(&plan, Message::assistant(format!("reply {at}")), None);
                log.push(Message::user(format!("next {at}")));
                manager().compactor().compact_if_due(log, &[], RequestLimits::new()).unwrap();
            }
        }
        assert_eq!(seen(&active), seen(&log));
        let revision = store.save("s", &mut active, revision).unwrap();
        assert_eq!(store.load("s").unwrap(), (log.clone(), revision));
        // An operation that needs an unloaded text is an error, and never uses an empty text instead.
        let request =
            |log: &Conversation| manager().build_plan(&PlanRequest::new(log)).map(|plan| plan.to_json());
        let mut undone = active.clone();
        while undone.undo_compaction().is_some() {}
        assert_eq!(request(&undone).unwrap_err().kind(), context_window::ErrorKind::NotLoaded);
        // A summary of unloaded messages is an error too.
        undone.push(Message::user("more"));
        undone.push(Message::assistant("and more"));
        let job = manager()
            .compactor()
            .now(&PlanRequest::new(&undone))
            .map(|job| job.map(|job| job.messages().len()));
        assert_eq!(job.unwrap_err().kind(), context_window::ErrorKind::NotLoaded);
        // The history marks unloaded texts.
        assert!(
            context_window_report::history(&active).to_string().contains("[text not loaded from the store]")
        );
        let mut pinned = active.clone();
        pinned.pin_message("q0", Priority::Normal).unwrap();
        let error = request(&pinned).unwrap_err();
        assert_eq!(error.kind(), context_window::ErrorKind::NotLoaded);
        assert!(error.to_string().contains("load_rest"), "{error}");
        let counted = PlanRequest::new(&active).with_excluded_counts();
        assert_eq!(manager().build_plan(&counted).unwrap_err().kind(), context_window::ErrorKind::NotLoaded);
        assert!(active.events().any(|event| serde_json::to_string(&event).is_err()));
        assert_eq!(store.import("copy", &active).unwrap_err().kind(), ErrorKind::NotLoaded);
        assert_eq!(store.append("copy", 0, active.events()).unwrap_err().kind(), ErrorKind::NotLoaded);
        assert_eq!(store.summary("copy").unwrap(), None);
        let path = std::env::temp_dir().join(format!("context-window-left-{}.log", std::process::id()));
        drop(std::fs::remove_file(&path));
        assert!(Journal::create(&path, &active).is_err());
        drop(std::fs::remove_file(&path));
        // Then the texts are loaded, also after appended entries.
        for (mut partial, whole) in [(active, log.clone()), (undone, undo_all(&log)), (pinned, pin(&log))] {
            store.load_rest("s", &mut partial).unwrap();
            assert!(partial.messages().iter().all(Message::is_loaded));
            assert_eq!(partial, whole);
            assert_eq!(seen(&partial), seen(&whole));
        }
    }
}

fn undo_all(log: &Conversation) -> Conversation {
    let mut log = log.clone();
    while log.undo_compaction().is_some() {}
    log.push(Message::user("more"));
    log.push(Message::assistant("and more"));
    log
}

fn pin(log: &Conversation) -> Conversation {
    let mut log = log.clone();
    log.pin_message("q0", Priority::Normal).unwrap();
    log
}

#[test]
fn remaining_messages_are_loaded_only_from_the_same_session() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let log = lived();
        store.import("s", &log).unwrap();
        let (active, _) = store.load_active("s").unwrap();
        store.delete("s").unwrap();
        let mut again = active.clone();
        assert_eq!(store.load_rest("s", &mut again).unwrap_err().kind(), ErrorKind::NotFound);
        // Another session under the same id: texts of the same sizes, or fewer entries.
        let events = log.events().map(|event| {
            let json = serde_json::to_string(&event).unwrap().replace("question", "QUESTION");
            serde_json::from_str::<context_window::events::LogEvent>(&json).unwrap()
        });
        store.import("s", &Conversation::from_events(events).unwrap()).unwrap();
        assert_eq!(store.load_rest("s", &mut again).unwrap_err().kind(), ErrorKind::Store);
        store.delete("s").unwrap();
        store.import("s", &Conversation::from([Message::user("a")])).unwrap();
        assert_eq!(store.load_rest("s", &mut again).unwrap_err().kind(), ErrorKind::Store);
        assert_eq!(again, active, "a conversation whose texts did not come is as it was");
    }
}
