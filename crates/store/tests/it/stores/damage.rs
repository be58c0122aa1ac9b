//! Changes made without the store's knowledge are found and named.

use super::appending::lived;
use crate::places::both;

use context_window::*;
use context_window_store::ErrorKind;
use context_window_store::SessionStore;

/// The operation that finds a damage.
#[derive(Clone, Copy, PartialEq)]
enum Found {
    /// Every way of loading.
    Loading,
    /// Loading the whole session, and loading the remaining texts, because one of those is damaged.
    Texts,
    /// Loading without texts; a complete load does not use the damaged data.
    Outlines,
    /// Only `check`.
    Check,
}
use Found::{Check, Loading, Outlines, Texts};

#[test]
fn damage_is_found_and_named() {
    let log = lived();
    let revision = log.event_count() as u64;
    // The first message is archived, and the last entry is an active one.
    let message = log.events().position(|event| event.kind() == "message").unwrap();
    let late = revision - 1;
    let sent = log
        .events()
        .map(|event| event.kind())
        .collect::<Vec<_>>()
        .iter()
        .rposition(|kind| *kind == "sent")
        .unwrap();
    let no_checksum = |n: u64| format!("entry {n}: does not match its checksum");
    let damages = [
        (
            format!("DELETE FROM cw_entry WHERE n = {message}"),
            format!("entry {message}: is missing"),
            Loading,
        ),
        (
            format!("DELETE FROM cw_entry WHERE n >= {late}"),
            format!("entry {late}: is missing; expected {revision} entries"),
            Loading,
        ),
        ("DELETE FROM cw_entry".into(), "entry 0: is missing".into(), Loading),
        (
            format!("UPDATE cw_entry SET n = n + 1 WHERE n = {late}"),
            format!("entry {late}: is missing"),
            Loading,
        ),
        (
            "UPDATE cw_session SET next = next - 1".into(),
            format!("entry {late}: comes after the last of {late} entries"),
            Loading,
        ),
        (
            format!("UPDATE cw_entry SET entry = replace(entry, 'role', 'r0le') WHERE n = {message}"),
            no_checksum(message as u64),
            Texts,
        ),
        (
            format!("UPDATE cw_entry SET entry = replace(entry, 'role', 'r0le') WHERE n = {late}"),
            no_checksum(late),
            Loading,
        ),
        (format!("UPDATE cw_entry SET sum = 'x' WHERE n = {late}"), no_checksum(late), Loading),
        (format!("UPDATE cw_entry SET sum = 'x' WHERE n = {message}"), no_checksum(message as u64), Loading),
        (
            format!("UPDATE cw_entry SET kind = 'pinned' WHERE n = {message}"),
            "is not of the kind `pinned` in its column `kind`".into(),
            Loading,
        ),
        // Two valid entries, exchanged.
        (
            format!(
                "UPDATE cw_entry SET n = -1 WHERE n = {late}; UPDATE cw_entry SET n = {late} WHERE n = {message}; UPDATE cw_entry SET n = {message} WHERE n = -1"
            ),
            no_checksum(message as u64),
            Loading,
        ),
        (
            format!("UPDATE cw_entry SET outline = replace(outline, 'bytes', 'bites') WHERE n = {message}"),
            format!("entry {message}: its outline does not match its checksum"),
            Outlines,
        ),
        (
            format!("UPDATE cw_entry SET outline = NULL WHERE n = {message}"),
            format!("entry {message}: its outline does not match its message"),
            Outlines,
        ),
        (
            "DELETE FROM cw_prompt".into(),
            format!("entry {sent}: the items of its prompt are missing"),
            Loading,
        ),
        (
            "UPDATE cw_prompt SET items = replace(items, 'm', 'q')".into(),
            format!("entry {sent}: the items of its prompt do not match their checksum"),
            Loading,
        ),
        (
            "UPDATE cw_session SET sent = sent - 1".into(),
            format!("entry {}: is not the newest prompt", sent - 1),
            Loading,
        ),
        ("UPDATE cw_session SET messages = messages + 1".into(), "message count".into(), Check),
        (
            "UPDATE cw_session SET tokens = tokens + 1".into(),
            "has another model or token count".into(),
            Check,
        ),
    ];
    for (sql, words, found) in damages {
        for place in both() {
            let mut store = SessionStore::open(&place.address).unwrap();
            store.import("s", &log).unwrap();
            let check = store.check("s").unwrap();
            assert_eq!(
                (check.faults, check.entries, check.messages),
                (vec![], revision, log.messages().len() as u64)
            );
            place.sql(&sql);
            let check = store.check("s").unwrap();
            assert!(check.faults[0].contains(&words), "{sql}: {:?}", check.faults);
            let whole = store.load("s").map(|(loaded, _)| loaded);
            assert_eq!(whole.is_err(), matches!(found, Loading | Texts), "{sql}");
            if let Err(error) = whole {
                let said = error.to_string();
                assert!(
                    error.kind() == ErrorKind::Store && said.contains(&words) && said.contains("session `s`"),
                    "{sql}: {said}"
                );
            }
            let active = store.load_active("s");
            assert_eq!(active.is_err(), matches!(found, Loading | Outlines), "{sql}: {active:?}");
            if let Ok((mut active, _)) = active {
                assert_eq!(store.load_rest("s", &mut active).is_err(), found == Texts, "{sql}");
            }
        }
    }
}

/// PostgreSQL cannot store such a text.
#[test]
fn text_that_is_not_utf_8_is_damage() {
    let place = crate::places::sqlite();
    let mut store = SessionStore::open(&place.address).unwrap();
    store.import("s", &lived()).unwrap();
    let words = "entry 2: does not match its checksum";
    place.sql("UPDATE cw_entry SET entry = CAST(x'7bff7d' AS TEXT) WHERE n = 2");
    assert!(store.load("s").unwrap_err().to_string().contains(words));
    assert!(store.check("s").unwrap().faults[0].contains(words));
}

/// A valid entry of a later version with its checksum is refused.
#[test]
fn entries_of_later_versions_are_refused() {
    for place in both() {
        let mut store = SessionStore::open(&place.address).unwrap();
        store.import("s", &Conversation::from([Message::user("a")])).unwrap();
        let entry = r#"{"version":2,"entry":{"message":{"role":"user","text":"a"}}}"#;
        let mut hash = blake3::Hasher::new();
        hash.update(&0u64.to_le_bytes()).update(entry.as_bytes());
        let sum = hash.finalize().to_hex()[..16].to_owned();
        place.sql(&format!("UPDATE cw_entry SET entry = '{entry}', sum = '{sum}'"));
        let error = store.load("s").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store);
        assert!(error.to_string().contains("version 2; expected version 1"), "{error}");
    }
}
