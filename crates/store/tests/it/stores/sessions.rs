//! Whole sessions: lists, forks, archived and deleted ones, imported and exported journals, names and texts
//! of any kind.

use super::appending::{lived, seen};
use crate::places::{Folder, both};

use crate::support::texts::hostile;
use context_window::*;
use context_window_store::{Error, ErrorKind};
use context_window_store::{Journal, ListOptions, SessionStore};

fn said(error: Result<impl Sized, Error>) -> (ErrorKind, String) {
    let error = error.err().expect("an error");
    (error.kind(), error.to_string())
}

#[test]
fn a_list_is_the_newest_first_page_by_page() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        assert_eq!(store.list(&ListOptions::new()).unwrap(), []);
        let short = Conversation::from([Message::user("a"), Message::assistant("b")]);
        let mut written: Vec<String> = (0..23).map(|at| format!("s{at}")).collect();
        for id in &written {
            store.import(id, &short).unwrap();
        }
        // A session that is written again is the newest.
        std::thread::sleep(std::time::Duration::from_millis(5));
        let log = lived();
        store.delete("s7").unwrap();
        store.import("s7", &log).unwrap();
        written.remove(7);
        let pages = |archived: bool| {
            let mut store = SessionStore::open_read_only(&place.address).unwrap();
            let mut all: Vec<context_window_store::SessionSummary> = Vec::new();
            loop {
                let mut options = ListOptions::new().with_limit(5);
                options = if archived { options.archived() } else { options };
                options = match all.last() {
                    Some(last) => options.after(last),
                    None => options,
                };
                let page = store.list(&options).unwrap();
                if page.is_empty() {
                    return all;
                }
                assert!(page.len() <= 5);
                all.extend(page);
            }
        };
        let all = pages(false);
        assert_eq!(all.len(), 23);
        let first = &all[0];
        assert_eq!((first.id.as_str(), first.model.as_deref(), first.archived), ("s7", Some("test"), false));
        assert_eq!(first.messages, log.messages().len() as u64);
        assert_eq!(first.revision, log.event_count() as u64);
        assert!(first.tokens.is_some_and(|tokens| tokens > 100));
        assert!(all.windows(2).all(|two| (&two[0].updated, &two[0].id) > (&two[1].updated, &two[1].id)));
        assert!(first.updated.starts_with("20") && first.updated.ends_with('Z'), "{}", first.updated);
        let mut rest: Vec<&str> = all[1..].iter().map(|one| one.id.as_str()).collect();
        rest.sort_unstable();
        written.sort();
        assert_eq!(rest, written);
        assert_eq!((all[1].messages, all[1].tokens, all[1].model.as_deref()), (2, None, None));
        assert_eq!(store.summary("s7").unwrap().as_ref(), Some(first));
        assert_eq!(store.summary("none").unwrap(), None);
        // Archived sessions have a separate list, and all other operations work on them.
        store.archive("s3").unwrap();
        assert_eq!(pages(false).len(), 22);
        assert_eq!(
            pages(true).iter().map(|one| (one.id.as_str(), one.archived)).collect::<Vec<_>>(),
            [("s3", true)]
        );
        assert_eq!(store.load("s3").unwrap().0, short);
        store.unarchive("s3").unwrap();
        assert_eq!(pages(true), []);
        for error in [said(store.archive("none")), said(store.unarchive("none")), said(store.delete("none"))]
        {
            assert_eq!(error.0, ErrorKind::NotFound);
            assert!(error.1.contains("has no session `none`"), "{}", error.1);
        }
    }
}

#[test]
fn fork_continues_independently() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let log = lived();
        let revision = store.import("s", &log).unwrap();
        store.fork("s", revision, "whole").unwrap();
        assert_eq!(store.load("whole").unwrap(), (log.clone(), revision));
        assert_eq!(seen(&store.load("whole").unwrap().0), seen(&log));
        let events: Vec<context_window::events::LogEvent> = log.events().collect();
        for at in [0, 1, 7, revision / 2, revision - 1] {
            let id = format!("at {at}");
            store.fork("s", at, &id).unwrap();
            let past = Conversation::from_events(events[..at as usize].iter().cloned()).unwrap();
            assert_eq!(store.load(&id).unwrap(), (past.clone(), at));
            assert_eq!(seen(&store.load_active(&id).unwrap().0), seen(&past));
            assert_eq!(store.check(&id).unwrap().faults, Vec::<String>::new());
            let summary = store.summary(&id).unwrap().unwrap();
            assert_eq!(summary.messages, past.messages().len() as u64);
            assert_eq!(summary.model.is_some(), past.anchor().is_some());
        }
        // Both continue independently.
        let say = |log: &mut Conversation| {
            log.push(Message::user("only here"));
            Ok(())
        };
        store.update("whole", say).unwrap();
        assert_eq!(store.load("s").unwrap(), (log.clone(), revision));
        store.delete("s").unwrap();
        assert_eq!(store.load("whole").unwrap().1, revision + 1);
        assert_eq!(said(store.fork("s", 0, "x")).0, ErrorKind::NotFound);
        let (kind, words) = said(store.fork("whole", revision + 2, "x"));
        assert_eq!(kind, ErrorKind::Input);
        assert!(
            words.contains(&format!("has {} entries; expected at least {}", revision + 1, revision + 2)),
            "{words}"
        );
        assert_eq!(said(store.fork("whole", 3, "at 0")).0, ErrorKind::Input);
        assert_eq!(store.summary("x").unwrap(), None);
    }
}

#[test]
fn journal_is_imported_and_exported_unchanged() {
    for place in both() {
        let folder = Folder::new();
        let mut store = SessionStore::open(&place.address).unwrap();
        let log = lived();
        let (before, after) = (folder.path("before.log"), folder.path("after.log"));
        Journal::create(&before, &log).unwrap();
        let revision = store.import_journal("s", &before).unwrap();
        assert_eq!(store.load("s").unwrap(), (log.clone(), revision));
        store.export_journal("s", &after).unwrap();
        assert_eq!(std::fs::read(&before).unwrap(), std::fs::read(&after).unwrap());
        let (kind, words) = said(store.import_journal("s", &before));
        assert!(kind == ErrorKind::Input && words.contains("session `s`: exists already"), "{words}");
        assert_eq!(said(store.export_journal("s", &after)).0, ErrorKind::Journal);
        assert_eq!(said(store.export_journal("none", folder.path("no.log"))).0, ErrorKind::NotFound);
        assert!(!folder.path("no.log").exists());
        let no_log = folder.path("no-log.json");
        std::fs::write(&no_log, "{}").unwrap();
        assert_eq!(said(store.import_journal("t", &no_log)).0, ErrorKind::Journal);
        assert_eq!(said(store.import_journal("t", folder.path("missing.log"))).0, ErrorKind::Journal);
        assert_eq!(store.summary("t").unwrap(), None);
    }
}

/// SQL, NUL characters and all kinds of Unicode are stored as data only.
#[test]
fn hostile_texts_round_trip() {
    let ids = [
        "'; DROP TABLE cw_entry; --",
        "$1",
        "%s \\ \u{7}\n",
        "\u{202e}水壶 🫖",
        "a",
        "A",
        " a",
        &"x".repeat(1_000),
    ];
    let mut texts: Vec<String> = vec![
        "\0 \\u0000 \u{0}".into(),
        "'); DELETE FROM cw_session; --".into(),
        "\u{feff}\u{ffff}\u{10ffff}\r\n\t\u{1}\u{7f}".into(),
        "{\"version\":1,\"entry\":{\"message\":{}}}".into(),
        "x".repeat(1 << 18),
    ];
    texts.extend(hostile().into_iter().map(|(_, text)| text));
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let mut log = Conversation::new();
        for (at, text) in texts.iter().enumerate() {
            log.push(
                Message::user(text.clone())
                    .with_id(format!("{at}:{}", &text.chars().take(5).collect::<String>())),
            );
            log.push(Message::assistant(text.clone()).with_name(text.clone()).with_reasoning(text.clone()));
            log.pin(PinnedItem::new(text.chars().rev().take(9).collect::<String>(), text.clone()));
        }
        for id in ids {
            let revision = store.import(id, &log).unwrap();
            assert_eq!(store.load(id).unwrap(), (log.clone(), revision), "{id:?}");
            assert_eq!(store.check(id).unwrap().faults, Vec::<String>::new());
        }
        let listed = store.list(&ListOptions::new()).unwrap();
        assert_eq!(listed.len(), ids.len());
        for id in ids {
            store.fork(id, 3, &format!("f{}", id.chars().take(300).collect::<String>())).unwrap();
            store.delete(id).unwrap();
        }
        assert_eq!(store.list(&ListOptions::new()).unwrap().len(), ids.len());
        let said_of = |id: &str| {
            let mut store = SessionStore::open(&place.address).unwrap();
            said(store.append(id, 0, Conversation::from([Message::user("a")]).events()))
        };
        for (id, words) in [("", "is empty"), ("a\0b", "NUL"), (&*"é".repeat(501), "1,000 bytes")] {
            let (kind, text) = said_of(id);
            assert!(kind == ErrorKind::Input && text.contains(words), "{text}");
            // Reading such an id finds no session, without another error.
            assert_eq!(said(store.load(id)).0, ErrorKind::NotFound);
            assert_eq!(said(store.delete(id)).0, ErrorKind::NotFound);
            assert_eq!(said(store.fork(id, 0, "new")).0, ErrorKind::NotFound);
            assert_eq!(store.summary(id).unwrap(), None);
        }
    }
}

/// The view for programs in other languages: one row per message, and JSON with its version.
#[test]
fn messages_are_rows_of_a_view() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let log = Conversation::from([
            Message::user("How long?").with_id("q"),
            Message::assistant("").with_tool_calls([ToolCall::new("c", "look", "{}")]),
            Message::tool("c", "5 \"days\""),
            Message::user("NUL \0"),
        ]);
        store.import("s", &log).unwrap();
        let pin = |log: &mut Conversation| {
            log.pin(PinnedItem::new("n", "no message"));
            Ok(())
        };
        store.update("s", pin).unwrap();
        let rows = place.query("SELECT session, n, role, text, id, answers FROM cw_messages ORDER BY n");
        let row = |n: &str, role: &str, text: Option<&str>, id: Option<&str>, answers: Option<&str>| {
            [Some("s"), Some(n), Some(role), text, id, answers].map(|text| text.map(str::to_owned)).to_vec()
        };
        assert_eq!(rows[0], row("0", "user", Some("How long?"), Some("q"), None));
        assert_eq!(rows[1], row("1", "assistant", None, None, None));
        assert_eq!(rows[2], row("2", "tool", Some("5 \"days\""), None, Some("c")));
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[3][3].is_none(), !place.is_sqlite(), "PostgreSQL has no text with a NUL");
        let entries = place.query("SELECT entry FROM cw_entry ORDER BY n");
        assert_eq!(
            entries[0][0].as_deref(),
            Some(r#"{"version":1,"entry":{"message":{"role":"user","id":"q","text":"How long?"}}}"#)
        );
        assert_eq!(entries.len(), 5);
    }
}

/// With `FULL=1` the session has a million entries.
#[test]
fn long_session_is_imported_and_exported_unchanged() {
    let entries: u64 = if std::env::var_os("FULL").is_some() { 1_000_000 } else { 30_000 };
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        let message = |at: u64| Message::user(format!("message {at} of many, with some words to it"));
        let log: Conversation = (0..entries).map(message).collect();
        assert_eq!(store.import("long", &log).unwrap(), entries);
        let (loaded, revision) = store.load("long").unwrap();
        assert_eq!((loaded.messages().len() as u64, revision), (entries, entries));
        assert!(loaded == log);
        let mut longer = loaded;
        longer.push(Message::user("one more"));
        assert_eq!(store.save("long", &mut longer, revision).unwrap(), entries + 1);
        assert_eq!(store.load_since("long", entries).unwrap().0.len(), 1);
        assert_eq!(store.check("long").unwrap().faults, Vec::<String>::new());
    }
}
