//! The form of a session file: named, lenient, refused; and tokenizer files, which a session may not name.

use super::{fails, file, inspect, out};

const TALK: &str = r#"[{"role":"user","content":"Which boats are free?","parts":[{"kind":"rope","words":{"type":"text","text":"Heron or Otter?"}}]}]"#;

#[test]
fn unknown_value_is_an_error_in_strict_mode_only() {
    let path = file("reading-talk.json", TALK.as_bytes());
    let path = path.to_str().unwrap();
    let error = fails(&[path]);
    assert!(
        error.contains("reading-talk.json:1: messages[0].parts: is unknown and contains text"),
        "{error}"
    );
    let lenient = inspect(&[path, "--lenient", "--format", "messages"]).assert().success();
    let note = String::from_utf8(lenient.get_output().stderr.clone()).unwrap();
    assert!(note.contains("note: left out: messages[0].parts is unknown"), "{note}");
    assert!(out(&[path, "--lenient", "--format", "messages"]).contains("Which boats are free?"));
}

#[test]
fn a_format_is_named_or_suggested() {
    let path = file(
        "reading-items.json",
        r#"[{"role":"user","content":[{"type":"text","text":"Is the Heron free?"}]}]"#.as_bytes(),
    );
    let path = path.to_str().unwrap();
    for format in ["session", "openai-agents"] {
        assert!(
            out(&[path, "--from", format, "--format", "messages"]).contains("Is the Heron free?"),
            "{format}"
        );
    }
    assert!(fails(&[path, "--from", "sessions"]).contains("session"));
    assert!(fails(&[path, "--from", "codex"]).contains("is not a transcript of Codex CLI"));
}

/// A list notes unreadable sessions instead of showing them as empty.
#[test]
fn a_list_notes_the_sessions_that_cannot_be_read() {
    let path = file(
        "reading-list.jsonl",
        b"{\"a\":1}\n{\"id\":\"b\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
    );
    let output = inspect(&[path.to_str().unwrap(), "--list"]).assert().success().get_output().clone();
    let (listed, noted) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert_eq!(noted, "plan-inspect: note: 1 of 2 sessions cannot be read; --id shows the error of one\n");
}

/// A received session must not decide which files are opened.
#[cfg(unix)]
#[test]
fn a_session_names_no_tokenizer_file() {
    // A pipe left by an earlier run would block a writer.
    let pipe = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("reading-pipe");
    drop(std::fs::remove_file(&pipe));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (name, own) in [
        ("tokenizer", format!(r#""tokenizer":{pipe:?},"options":{{}}"#)),
        (
            "options",
            format!(r#""tokenizer":"bytes","options":{{"model":{{"default":{{"tokenizer":{pipe:?}}}}}}}"#),
        ),
    ] {
        let text = format!(
            r#"{{"messages":[{{"role":"user","content":"hi"}}],"context_window":{{"version":1,"events":[],{own}}}}}"#
        );
        let path = file(&format!("reading-{name}.json"), text.as_bytes());
        let path = path.to_str().unwrap();
        let error = fails(&[path]);
        assert!(
            error.contains("is not a built-in tokenizer, and a session file must not specify a file"),
            "{error}"
        );
        assert!(
            error.trim_end().ends_with("--allow-tokenizer-file opens it, --tokenizer sets another"),
            "{error}"
        );
        assert!(out(&[path, "--tokenizer", "chars/4"]).contains("chars/4"));
    }
    // With the flag a file is opened, and a missing one is an error.
    let text = r#"{"messages":[{"role":"user","content":"hi"}],"context_window":{"version":1,"events":[],"tokenizer":"no/such.json","options":{}}}"#;
    let path = file("reading-none.json", text.as_bytes());
    let error = fails(&[path.to_str().unwrap(), "--allow-tokenizer-file"]);
    assert!(error.contains("no/such.json") && !error.contains("built-in tokenizer, and"), "{error}");
}
