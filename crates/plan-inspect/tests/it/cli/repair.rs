//! `repair`: a damaged log is described, and truncated on request, with a copy.

use super::{EXAMPLE, fails, inspect, out};
use context_window::{Conversation, Message};
use context_window_store::Journal;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Creates a log of eight messages in a separate folder, and returns its path and bytes.
fn log(name: &str) -> (PathBuf, Vec<u8>) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("talk.log");
    let log: Vec<Message> = (0..8).map(|at| Message::user(format!("message {at}\u{1b}[31m"))).collect();
    drop(Journal::create(&path, &Conversation::from(log)).unwrap());
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

/// Runs `repair`. Returns the exit code, and standard output with the file's name only; standard error has to
/// be empty.
fn repair(path: &Path, args: &[&str]) -> (Option<i32>, String) {
    let name = path.to_str().unwrap();
    let output = inspect(&[&["repair", name], args].concat()).output().unwrap();
    let folder = format!("{}/", path.parent().unwrap().display());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).unwrap().replace(&folder, ""))
}

#[test]
fn damaged_line_is_named_and_cut_on_request_with_a_copy() {
    let (path, whole) = log("repair");
    assert_eq!(repair(&path, &[]), (Some(0), "talk.log is intact: 8 messages and 0 events\n".into()));
    let mut damaged = whole.clone();
    let at = whole.windows(9).position(|text| text == b"message 6").unwrap();
    damaged[at + 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let refused = fails(&["history", path.to_str().unwrap()]);
    assert!(
        refused.contains("talk.log:8: does not match its checksum")
            && refused.contains("plan-inspect repair"),
        "{refused}"
    );

    let (code, shown) = repair(&path, &[]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(shown);
    let (code, json) = repair(&path, &["--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["damage"]["line"], &json["messages"]), (Some(1), &8.into(), &6.into()));
    assert_eq!(
        (&json["damage"]["lost"][0]["record"], &json["damage"]["lost"][1]["record"]),
        (&Value::Null, &8.into())
    );
    assert_eq!(fs::read(&path).unwrap(), damaged, "nothing is changed without --cut");

    let (code, shown) = repair(&path, &["--cut"]);
    assert_eq!(code, Some(0));
    assert!(
        shown.ends_with("Cut off before line 8. talk.log.from-line-8.cut contains the removed lines.\n"),
        "{shown}"
    );
    let copy = path.with_file_name("talk.log.from-line-8.cut");
    assert_eq!([fs::read(&path).unwrap(), fs::read(copy).unwrap()].concat(), damaged);
    assert_eq!(repair(&path, &[]), (Some(0), "talk.log is intact: 6 messages and 0 events\n".into()));
    assert_eq!(Journal::open(&path).unwrap().1.messages().len(), 6);
}

/// A crash leaves the beginning of a record, which is not damage.
#[test]
fn unfinished_end_is_no_damage() {
    let (path, whole) = log("repair-unfinished");
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let (code, shown) = repair(&path, &[]);
    assert_eq!(code, Some(0));
    assert!(shown.starts_with("talk.log:9: is incomplete, as after a crash"), "{shown}");
    assert!(shown.contains("incomplete  {\"message\"") && !shown.contains("damaged"), "{shown}");
    assert!(out(&["history", path.to_str().unwrap()]).contains("message 6"));
}

/// A flipped bit in the first line and one in a later line: the log stays damaged until both are repaired.
#[test]
fn second_damaged_line_is_reported() {
    let (path, whole) = log("repair-twice");
    let mut damaged = whole.clone();
    let at = whole.windows(9).position(|text| text == b"message 6").unwrap();
    damaged[20] ^= 1;
    damaged[at] ^= 1;
    fs::write(&path, &damaged).unwrap();
    for command in [&["history"][..], &["plan"], &["plan", "--list"]] {
        let refused = fails(&[command, &[path.to_str().unwrap()]].concat());
        assert!(
            refused.contains("talk.log:1: does not match its checksum, and record 1 follows it")
                && refused.contains("`plan-inspect repair FILE --cut`"),
            "{refused}"
        );
    }
    let second = "\ntalk.log:8: does not match its checksum, and record 8 follows it";
    let (code, shown) = repair(&path, &[]);
    assert!(
        code == Some(1) && shown.contains("its repair loses no data") && shown.contains(second),
        "{shown}"
    );
    let (code, shown) = repair(&path, &["--cut"]);
    assert!(code == Some(1) && shown.contains("Line 1 was restored") && shown.contains(second), "{shown}");
    let (code, shown) = repair(&path, &["--cut", "--format", "json"]);
    let json: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &json["damage"]["line"], &json["damage"]["second"]),
        (Some(0), &8.into(), &Value::Null)
    );
    assert_eq!(repair(&path, &[]), (Some(0), "talk.log is intact: 6 messages and 0 events\n".into()));
}

#[test]
fn other_files_are_refused_and_unchanged() {
    for (file, words) in [
        (EXAMPLE, "is not a log"),
        ("nowhere.log", "cannot be opened"),
        ("-", "is not a log on disk"),
        ("sqlite:talks.db", "is not a log on disk"),
        ("examples", "it is a folder, not a regular file"),
    ] {
        let before = fs::read(crate::support::root().join(EXAMPLE)).unwrap();
        let said = fails(&["repair", file, "--cut"]);
        assert!(said.contains(words), "{file}: {said}");
        assert_eq!(fs::read(crate::support::root().join(EXAMPLE)).unwrap(), before);
    }
}
