//! The tool with stores: every command that accepts a session file, and `store`.

use super::{EXAMPLE, LINES, fails, file, inspect, out};
use crate::support::stores::places::{self, Folder, Place};
use context_window_store::SessionStore;
use serde_json::Value;

/// Creates a store of each kind, with a shipped session and a compacted one.
fn stores() -> Vec<Place> {
    let places = if cfg!(feature = "postgres") { places::both() } else { vec![places::sqlite()] };
    for place in &places {
        assert_eq!(out(&["store", "import", &place.address, EXAMPLE]), "1 session imported, 10 entries\n");
        SessionStore::open(&place.address)
            .unwrap()
            .import("lived", &crate::support::stores::lived())
            .unwrap();
    }
    places
}

/// A session in a store gives the same output as the same session in a log file.
#[test]
fn session_in_a_store_gives_the_output_of_its_log() {
    for place in stores() {
        let folder = Folder::new();
        // The file has the name of the session, which the screen shows.
        let log = folder.path("lived");
        let log = log.to_str().unwrap();
        inspect(&["store", "export", &place.address, log, "--id", "lived"]).assert().success();
        for args in [
            vec!["plan", "SESSION", "--budget", "300", "--format", "json"],
            vec!["explain", "SESSION", "m3"],
            vec!["history", "SESSION", "--expand"],
            vec!["retrieval", "SESSION"],
            vec!["replay", "SESSION", "--format", "json"],
            vec!["compact", "SESSION"],
            vec!["tui", "SESSION", "--print", "100x30", "--keys", "5"],
        ] {
            let with = |session: &str, more: &[&str]| {
                let args: Vec<&str> =
                    args.iter().map(|arg| if *arg == "SESSION" { session } else { arg }).collect();
                let args = [args.as_slice(), more, &["--model", "gpt-4o"]].concat();
                let args = if args[0] == "history" { &args[..args.len() - 2] } else { &args };
                out(args)
            };
            assert_eq!(with(&place.address, &["--id", "lived"]), with(log, &[]), "{args:?}");
        }
        let diff = ["diff", &place.address, log, "--id", "lived", "--model", "gpt-4o"];
        assert!(out(&diff).contains("no differences"), "{}", out(&diff));
        // A compaction written to a new file leaves the store unchanged.
        let compacted = folder.path("compacted.log");
        let compacted = compacted.to_str().unwrap();
        inspect(&["store", "import", &place.address, "examples/long-talk.json"]).assert().success();
        let args = ["compact", &place.address, "--id", "long-talk", "--apply", compacted];
        inspect(&args).assert().success();
        assert!(
            out(&["history", compacted]).contains("Context compacted"),
            "{}",
            out(&["history", compacted])
        );
        assert_eq!(
            SessionStore::open(&place.address).unwrap().load("lived").unwrap().0,
            crate::support::stores::lived()
        );
        inspect(&["store", "export", &place.address, log, "--id", "lived"]).assert().code(2);
    }
}

#[test]
fn the_sessions_of_a_store_are_listed_played_and_checked() {
    for place in stores() {
        let address = place.address.as_str();
        let lines = file("store-lines.jsonl", LINES.as_bytes());
        assert_eq!(
            out(&["store", "import", address, lines.to_str().unwrap()]),
            "3 sessions imported, 3 entries\n"
        );
        SessionStore::open(address).unwrap().archive("first").unwrap();
        let list = out(&[address, "--list"]);
        let row =
            |id: &str| list.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("{list}"));
        assert!(list.starts_with("id "), "{list}");
        assert!(row("lived ").contains("test") && row("lived ").contains(" 81 "), "{list}");
        assert!(list.lines().last().unwrap().contains("first") && list.contains(", archived"), "{list}");
        assert!(row("store-lines:2").contains(" 1 ") && row("third").contains("20"), "{list}");
        let json: Value = serde_json::from_str(&out(&[address, "--list", "--format", "json"])).unwrap();
        assert_eq!(json.as_array().unwrap().len(), 5);
        assert!(json[0]["updated"].as_str().unwrap().ends_with('Z'));
        assert!(
            fails(&[address]).contains("contains 5 sessions; choose one with --id: "),
            "{}",
            fails(&[address])
        );
        let said = fails(&[address, "--id", "nobody"]);
        assert!(said.contains("has no session `nobody`") && said.contains("--list"), "{said}");
        // All sessions, in the order of the list.
        let played = out(&["replay", address]);
        assert!(played.contains("prompts of 5 sessions"), "{played}");
        assert!(played.find("third").unwrap() < played.find("lived").unwrap(), "{played}");
        assert!(out(&["replay", address, "--id", "lived"]).contains("of 1 session"), "one of them");
        let checked = out(&["store", "check", address]);
        assert!(checked.contains("5 sessions intact"), "{checked}");
        let json: Value =
            serde_json::from_str(&out(&["store", "check", address, "--id", "lived", "--format", "json"]))
                .unwrap();
        assert_eq!(json[0]["faults"], serde_json::json!([]));
        let repeated = json[0]["repeated"].as_array().unwrap();
        assert!(repeated[1].as_u64().unwrap() > 3, "{json}");
        place.sql("UPDATE cw_entry SET sum = 'x' WHERE n = 100");
        let output = inspect(&["store", "check", address]).assert().code(1).get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        assert!(
            text.contains("1 of 5 sessions damaged")
                && text.contains("entry 100: does not match its checksum"),
            "{text}"
        );
        assert!(fails(&["history", address, "--id", "lived"]).contains("entry 100"));
    }
}

#[test]
fn import_errors_are_reported_before_anything_is_written() {
    for place in stores() {
        let address = place.address.as_str();
        let lines = file("store-again.jsonl", LINES.as_bytes());
        let lines = lines.to_str().unwrap();
        for (args, words) in [
            (
                vec!["store", "import", address, "examples/long-talk.json", "--id", "support-chat"],
                "another session `support-chat` exists in the store; nothing was written",
            ),
            (
                vec!["store", "import", address, lines, "--id", "x"],
                "--id sets the id of one session, but there are 3",
            ),
            (
                vec!["store", "import", address, lines, lines],
                "two sessions of these files have the id `first`",
            ),
            (vec!["store", "import", address, "nowhere.json"], "nowhere.json cannot be read"),
            (
                vec!["store", "import", "nowhere.db", EXAMPLE],
                "nowhere.db is not a store; expected sqlite:FILE or postgres://",
            ),
            (vec!["store", "import", address, EXAMPLE, "--id", ""], "a session's id has 1 to 1,000 bytes"),
            (
                vec!["store", "export", address, address, "--id", "lived"],
                "only `plan-inspect store import` writes to",
            ),
            (vec!["plan", EXAMPLE, "--output", address], "only `plan-inspect store import` writes to"),
            (
                vec!["compact", "examples/long-talk.json", "--apply", address],
                "only `plan-inspect store import` writes to",
            ),
            (
                vec!["store", "export", address, "target/nowhere.log"],
                "contains 2 sessions; choose one with --id",
            ),
            (vec!["store", "check", address, "--id", "nobody"], "has no session `nobody`"),
        ] {
            let said = fails(&args);
            assert!(said.contains(words), "{args:?}: {said}");
        }
        assert_eq!(
            SessionStore::open(address)
                .unwrap()
                .list(&context_window_store::ListOptions::new())
                .unwrap()
                .len(),
            2
        );
        assert_eq!(
            out(&["store", "import", address, EXAMPLE, "--id", "again"]),
            "1 session imported, 10 entries\n"
        );
        // An import continues after an interruption, and a store can be copied to another one.
        let both = out(&["store", "import", address, EXAMPLE, lines]);
        assert_eq!(both, "3 sessions imported, 3 entries; 1 session existed already\n");
        let other = places::sqlite();
        let copied = out(&["store", "import", &other.address, address]);
        assert!(copied.starts_with("6 sessions imported, "), "{copied}");
        let of = |address: &str| SessionStore::open(address).unwrap().load("lived").unwrap();
        assert_eq!(of(&other.address), of(address));
    }
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_reading() {
    let folder = Folder::new();
    let missing = folder.sqlite("missing.db");
    for args in [
        vec![missing.as_str()],
        vec!["replay", &missing],
        vec!["store", "check", &missing],
        vec!["history", &missing],
    ] {
        let said = fails(&args);
        assert!(said.contains("missing.db: does not exist; expected the file of a store"), "{said}");
    }
    assert!(!folder.path("missing.db").exists());
    let said = fails(&["history", "postgres://ada:s3cr3t@%2Fnowhere/talks"]);
    let expected = if cfg!(feature = "postgres") {
        "cannot be connected to"
    } else {
        "build it with the feature `postgres`"
    };
    assert!(said.contains(expected) && !said.contains("s3cr3t"), "{said}");
    // Input is never overwritten.
    let place = places::sqlite();
    inspect(&["store", "import", &place.address, EXAMPLE]).assert().success();
    let path = place.file().to_str().unwrap();
    let said = fails(&[&place.address, "--output", path]);
    assert!(said.contains("is an SQLite file, and may contain a store"), "{said}");
    for end in ["-wal", "-shm", "-journal"] {
        let said = fails(&[&place.address, "--output", &format!("{path}{end}")]);
        assert!(said.contains("inputs are never changed"), "{said}");
    }
    for args in [
        vec!["store", "export", &place.address, path],
        vec![EXAMPLE, "--output", path],
        vec![EXAMPLE, "--save-anchor", path],
    ] {
        let said = fails(&args);
        assert!(said.contains("is an SQLite file, and may contain a store"), "{said}");
    }
    assert!(fails(&[path]).contains(&format!("expected the address of a store: sqlite:{path}")));
    assert!(out(&["store", "check", &place.address]).contains("1 session intact"));
    // No quoted address contains its password.
    for args in [
        vec!["store", "postgres://ada:s3cr3t@host/talks"],
        vec!["history", "a", "postgres:/ada:s3cr3t@host/talks"],
        vec!["plan", "postgres//ada:s3cr3t@host/talks"],
        vec![EXAMPLE, "--id", "postgres://ada:s3cr3t@host/talks"],
        vec![EXAMPLE, "--config", "postgres://ada:s3cr3t@host/talks"],
        vec![EXAMPLE, "--output", "postgres://ada:s3cr3t@host/talks"],
    ] {
        let said = fails(&args);
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}
