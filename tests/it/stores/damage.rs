//! What was changed behind the store's back is found, and named.

use super::{appending::lived, places::both};
use context_window::{store::SessionStore, *};

#[test]
fn damage_is_found_and_named() {
    let log = lived();
    let revision = log.event_count() as u64;
    let message = log.events().position(|event| event.kind() == "message").unwrap();
    let late = revision - 1;
    let damages = [
        (format!("DELETE FROM cw_entry WHERE n = {message}"), format!("entry {message}: is missing"), true),
        (
            format!("DELETE FROM cw_entry WHERE n >= {late}"),
            format!("entry {late}: is missing; expected {revision} entries"),
            true,
        ),
        ("DELETE FROM cw_entry".into(), "entry 0: is missing".into(), true),
        (
            format!("UPDATE cw_entry SET n = n + 1 WHERE n = {late}"),
            format!("entry {late}: is missing"),
            true,
        ),
        (
            format!("UPDATE cw_entry SET entry = replace(entry, 'role', 'r0le') WHERE n = {message}"),
            format!("entry {message}: does not match its checksum"),
            true,
        ),
        (
            format!("UPDATE cw_entry SET sum = 'x' WHERE n = {late}"),
            format!("entry {late}: does not match its checksum"),
            true,
        ),
        (
            format!("UPDATE cw_entry SET outline = replace(outline, 'bytes', 'bites') WHERE n = {message}"),
            format!("entry {message}: its outline does not match its checksum"),
            false,
        ),
        (
            format!("UPDATE cw_entry SET outline = NULL WHERE n = {message}"),
            format!("entry {message}: its outline is not that of its message"),
            false,
        ),
        // Two whole entries in each other's place.
        (
            format!(
                "UPDATE cw_entry SET n = -1 WHERE n = {late}; UPDATE cw_entry SET n = {late} WHERE n = {message}; UPDATE cw_entry SET n = {message} WHERE n = -1"
            ),
            format!("entry {message}: does not match its checksum"),
            true,
        ),
        ("UPDATE cw_session SET messages = messages + 1".into(), "messages; expected".into(), false),
        ("UPDATE cw_session SET next = next - 1".into(), "is missing; expected".into(), true),
        ("UPDATE cw_prompt SET items = '[1'".into(), "the items of its prompt cannot be read".into(), true),
        ("UPDATE cw_prompt SET n = n - 1".into(), "is not the newest prompt".into(), false),
    ];
    for (sql, words, is_no_load) in damages {
        for place in both() {
            let mut store = SessionStore::open(&place.address).unwrap();
            store.import("s", &log).unwrap();
            let check = store.check("s").unwrap();
            assert_eq!(
                (check.faults.len(), check.entries, check.messages),
                (0, revision, log.messages().len() as u64)
            );
            place.sql(&sql);
            let check = store.check("s").unwrap();
            assert!(check.faults[0].contains(&words), "{sql}: {:?}", check.faults);
            match store.load("s") {
                Err(error) => {
                    assert!(is_no_load, "{sql}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Store);
                    let said = error.to_string();
                    assert!(said.contains(&words) && said.contains("session `s`"), "{sql}: {said}");
                    // Nor by the other way, nor is anything added to it unseen.
                    assert!(
                        store.load_active("s").is_err() || sql.contains("entry = ") || sql.contains("sum = "),
                        "{sql}"
                    );
                }
                Ok(_) => assert!(!is_no_load, "{sql}"),
            }
        }
    }
}

/// An entry of a later version, whole and with its checksum, is not read as anything else.
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
