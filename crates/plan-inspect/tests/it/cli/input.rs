//! Input: files in every form, retrievers' answers, anchors, and the errors of unreadable ones.

use super::{EXAMPLE, LINES, fails, file, inspect, out, packed};
use serde_json::Value;
use std::{io::Write as _, path::PathBuf};

#[test]
fn saved_anchor_continues_in_the_next_run() {
    let anchor = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("anchor.json");
    let anchor = anchor.to_str().unwrap();
    let _ = std::fs::remove_file(anchor);
    let plan = |args: &[&str]| -> Value {
        let args =
            [&["examples/agent-parallel-tools.json", "--format", "json", "--budget", "900"], args].concat();
        serde_json::from_str(&out(&args)).unwrap()
    };
    let first = plan(&["--save-anchor", anchor]);
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(anchor).unwrap()).unwrap();
    assert_eq!(saved["window_start"], first["window_start"]);
    assert_eq!(saved["limits"]["prompt_budget"], 900);
    assert_eq!(saved["live"], "m4");
    let second = plan(&["--previous", anchor]);
    assert_eq!(second["window_start"], first["window_start"]);
    assert_eq!(second["included"], first["included"]);
    assert!(!PathBuf::from(format!("{anchor}.part")).exists());
    let broken = file("broken-anchor.json", b"{\"window_start\": 3}");
    let error = fails(&[EXAMPLE, "--previous", broken.to_str().unwrap()]);
    assert!(error.contains("not an anchor") && error.contains("--save-anchor"), "{error}");
    // If planning fails, the file stays unchanged.
    fails(&["nowhere.json", "--save-anchor", anchor]);
    assert_eq!(serde_json::from_str::<Value>(&std::fs::read_to_string(anchor).unwrap()).unwrap(), saved);
    assert!(fails(&[EXAMPLE, "--save-anchor", "no/such/folder/a.json"]).contains("cannot be written"));
}

/// A file written by the screen can be read again. Changes that are impossible for this session give an error
/// with file, place and key.
#[test]
fn trial_file_is_checked_against_the_session() {
    let with = |pinned: &str, prompt: u64, budget: &str| {
        let text = format!(
            "{{\"file\": \"f\", \"session\": \"s\", \"prompt\": {prompt}, \"prompt_budget\": {budget},\n\
             \"pinned\": {{{pinned}}}, \"expired\": {{}}}}"
        );
        file("what-if.json", text.as_bytes()).to_str().unwrap().to_owned()
    };
    let print = |path: &str| out(&["tui", EXAMPLE, "--what-if", path, "--print", "80x24"]);
    let shown = print(&with("\"m0\": true, \"customer\": false", 4, "500"));
    assert!(shown.contains("ctx tokens: ") && shown.contains("500") && shown.contains("^ m0"), "{shown}");
    assert!(!shown.contains("customer"), "{shown}");
    assert!(print(&with("", 2, "null")).contains("prompt 2/4"));
    for (pinned, prompt, budget, expected) in [
        (
            "\"m99\": true",
            4,
            "null",
            "what-if.json: pinned.m99: support-chat.json has no message with that id",
        ),
        ("\"customer\": true", 4, "null", "pinned.customer: support-chat.json has no message with that id"),
        (
            "\"m0\": 1",
            4,
            "null",
            "what-if.json:2:18: invalid type: integer `1`, expected a boolean; expected a file",
        ),
        ("", 5, "null", "prompt: support-chat.json has prompts 1 to 4, not 5"),
        ("", 0, "null", "prompts 1 to 4, not 0"),
        ("", 4, "0", "prompt_budget: expected 1 token or more, or null"),
        ("", 4, "-3", "what-if.json:1:"),
        ("", 4, "null, \"budget\": 3", "unknown field `budget`"),
    ] {
        let path = with(pinned, prompt, budget);
        let error = fails(&["tui", EXAMPLE, "--what-if", &path, "--print", "80x24"]);
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let missing = fails(&["tui", EXAMPLE, "--what-if", "nowhere.json", "--print", "80x24"]);
    assert!(missing.contains("nowhere.json cannot be read"), "{missing}");
}

/// An input file is never overwritten under any of its names.
#[test]
fn no_session_is_written_over() {
    let session = std::fs::read(crate::support::root().join(EXAMPLE)).unwrap();
    let path = file("never-changed.json", &session);
    let link = path.with_file_name("a-link.json");
    let _ = std::fs::remove_file(&link);
    #[cfg(unix)]
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let hits = file("never-changed-hits.json", br#"[{"id": "d", "text": "t", "score": 1}]"#);
    let before = std::fs::read(&hits).unwrap();
    let (path, link, hits) = (path.to_str().unwrap(), link.to_str().unwrap(), hits.to_str().unwrap());
    let dotted = format!("{}/../tmp/never-changed.json", env!("CARGO_TARGET_TMPDIR"));
    for args in [
        &[path, "--format", "html", "-o", path][..],
        &[path, "--format", "json", "-o", &dotted],
        &[path, "--save-anchor", path],
        &["replay", path, "--format", "html", "-o", path],
        &["replay", EXAMPLE, path, "-o", path],
        &["compact", path, "--apply", path],
        &[path, "--rag", hits, "-o", hits],
        &["models", "import", hits, "-o", hits],
        #[cfg(unix)]
        &[path, "-o", link],
        #[cfg(unix)]
        &[link, "-o", path],
    ] {
        let error = fails(args);
        let refused = if args[0] == "compact" { "exists" } else { "inputs are never changed" };
        assert!(error.contains(refused), "{args:?}: {error}");
        assert_eq!(std::fs::read(path).unwrap(), session, "{args:?}");
    }
    assert_eq!(std::fs::read(hits).unwrap(), before);
    // Another file is written, and overwritten the next time.
    let other = format!("{}/another.json", env!("CARGO_TARGET_TMPDIR"));
    for _ in 0..2 {
        assert_eq!(out(&[path, "--format", "json", "-o", &other]), "");
    }
    out(&[path, "--save-anchor", &other]);
    out(&[path, "--previous", &other, "--save-anchor", &other]);
}

#[test]
fn misspelt_keys_are_reported_with_a_suggestion() {
    let note = |text: &str| {
        let path = file("unread.json", text.as_bytes());
        let assert = inspect(&[path.to_str().unwrap()]).assert().success();
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let hi = r#""messages":[{"role":"user","content":"hi"}]"#;
    assert_eq!(
        note(&format!("{{{hi},\"documents\":[],\"modle\":\"gpt-5\",\"meta\":{{}},\"answer\":1}}")),
        "plan-inspect: note: the session's key `documents` is not read; did you mean `rag`?\n\
         plan-inspect: note: the session's key `modle` is not read; did you mean `model`?\n"
    );
    assert_eq!(note(&format!("{{{hi},\"source\":\"x\",\"meta\":{{}}}}")), "");
    let path = file("misspelt.json", br#"{"mesages":[]}"#);
    assert!(
        fails(&[path.to_str().unwrap()]).contains("its key `mesages` is not read, did you mean `messages`?")
    );
}

#[test]
fn unusable_anchor_is_reported() {
    let plan = |anchor: &str, args: &[&str]| {
        let path = file("other-anchor.json", anchor.as_bytes());
        let session = "examples/agent-parallel-tools.json";
        out(&[&[session, "--width", "200", "--previous", path.to_str().unwrap()], args].concat())
    };
    assert!(
        plan(r#"{"window_start":"nowhere"}"#, &[]).contains("its first message is not in this conversation")
    );
    let other = r#"{"window_start":"m0","target":{"model":"gpt-4","provider":"openai"}}"#;
    assert!(plan(other, &[]).contains("it was made for another model or wire format"));
    assert!(
        plan(r#"{"window_start":"m0","limits":{"prompt_budget":5}}"#, &["--budget", "900"])
            .contains("other limits")
    );
    assert!(!plan(r#"{"window_start":null}"#, &[]).contains("not continued"));
    for none in ["{}", "[]", r#"{"foo":1}"#, "3"] {
        let path = file("no-anchor.json", none.as_bytes());
        assert!(fails(&[EXAMPLE, "--previous", path.to_str().unwrap()]).contains("not an anchor"));
    }
}

#[test]
fn every_form_of_a_file_is_read() {
    let text = std::fs::read_to_string(crate::support::root().join(EXAMPLE)).unwrap();
    let plain = out(&[EXAMPLE]);
    let gz = file("session.json.gz", &packed(&text));
    assert_eq!(out(&[gz.to_str().unwrap()]), plain);
    let piped = inspect(&["-"]).write_stdin(text).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(piped).unwrap(), plain);
}

#[test]
fn a_line_of_many_is_chosen_by_its_id_or_number() {
    let path = file("lines.jsonl", LINES.as_bytes());
    let path = path.to_str().unwrap();
    assert!(out(&[path, "--id", "first"]).contains("m0"));
    assert!(out(&[path, "--id", "2"]).contains("m0"));
    assert!(out(&[path, "--id", "third"]).contains("query"));
    let gz = file("lines.jsonl.gz", &packed(LINES));
    assert_eq!(out(&[gz.to_str().unwrap(), "--id", "third"]), out(&[path, "--id", "third"]));
    insta::assert_snapshot!(fails(&[path]).replace(path, "lines.jsonl"), @"plan-inspect: lines.jsonl: contains 3 sessions; choose one by its id: first, 2, third");
    insta::assert_snapshot!(fails(&[path, "--id", "fourth"]).replace(path, "lines.jsonl"), @"plan-inspect: lines.jsonl: has no session `fourth`; its ids are: first, 2, third");
}

#[test]
fn bad_input_is_exit_code_2_and_one_message() {
    insta::assert_snapshot!(fails(&["nowhere.json"]), @"plan-inspect: nowhere.json cannot be read: No such file or directory (os error 2)");
    let broken = file("broken.gz", &[0x1f, 0x8b, 8, 0, 1]);
    assert!(fails(&[broken.to_str().unwrap()]).contains("cannot be read: incomplete gzip file"));
    let binary = file("binary.json", b"{\"messages\":\n[\xff]}");
    insta::assert_snapshot!(fails(&[binary.to_str().unwrap()]).replace(binary.to_str().unwrap(), "binary.json"), @"plan-inspect: binary.json:2: byte 14 is not UTF-8; expected JSON in UTF-8");
    let empty = file("empty.json", b"");
    insta::assert_snapshot!(fails(&[empty.to_str().unwrap()]).replace(empty.to_str().unwrap(), "empty.json"), @"plan-inspect: empty.json: is empty; expected a session (a JSON object or an array of messages)");
    let deep = file("deep.json", format!("{{\"messages\":{}", "[".repeat(100_000)).as_bytes());
    assert!(fails(&[deep.to_str().unwrap()]).contains("not JSON"));
    insta::assert_snapshot!(fails(&[EXAMPLE, "--budget", "0"]), @"plan-inspect: no tokens left for a prompt: the budget is 0; expected 1 token or more");
    assert!(
        fails(&[EXAMPLE, "--budget", "-3"]).contains("invalid value")
            || fails(&[EXAMPLE, "--budget", "-3"]).contains("unexpected argument")
    );
    assert!(fails(&[EXAMPLE, "--tokenizer", "gpt2"]).contains("o200k_base"));
    assert!(fails(&[EXAMPLE, "--config", "Cargo.toml"]).contains("unknown field"));
}

#[test]
fn hostile_text_is_escaped_on_the_screen() {
    let role = file("role.json", "[{\"role\":\"\\u001b[2J\"}]".as_bytes());
    let error = fails(&[role.to_str().unwrap()]);
    assert!(error.contains("?[2J") && !error.contains('\u{1b}'), "{error:?}");
    let path = file(
        "hostile.json",
        "[{\"role\":\"user\",\"id\":\"\\u001b[2J\\u202e\",\"content\":\"x\"}]".as_bytes(),
    );
    let text = out(&[path.to_str().unwrap()]);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
}

/// A retriever's answer replaces the session's documents. An unreadable one gives an error with place and
/// reason.
#[test]
fn retriever_json_replaces_the_documents() {
    let hits = r#"{"result":{"points":[{"id":7,"score":0.9,"payload":{"text":"Seven."}},{"id":8,"score":0.1,"payload":{"text":"Eight."}}]}}"#;
    let hits = file("hits.json", hits.as_bytes()).display().to_string();
    let rows = |more: &[&str]| {
        let args = [&[EXAMPLE, "--format", "json", "--rag", &hits, "--rag-from", "qdrant"], more].concat();
        let plan: serde_json::Value = serde_json::from_str(&out(&args)).unwrap();
        let rows = plan["included"].as_array().unwrap().iter().filter(|row| row["source"] == "rag");
        rows.map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[]), ["7", "8"]);
    assert_eq!(rows(&["--rag-distances"]), ["8", "7"]);
    let error = fails(&[EXAMPLE, "--rag", &hits]);
    assert!(
        error.contains("hits.json: no array of hits; looked for an array, found an object with result"),
        "{error}"
    );
}

/// A small file that unpacks to hundreds of millions of values, and one with an unrealistic number of tiny
/// messages.
#[test]
fn oversized_input_is_an_error_before_it_is_read() {
    let many = |head: &str, one: &str, tail: &str| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(head.as_bytes()).unwrap();
        let part = one.repeat(100_000);
        for _ in 0..110 {
            packer.write_all(part.as_bytes()).unwrap();
        }
        packer.write_all(tail.as_bytes()).unwrap();
        packer.finish().unwrap()
    };
    let part = r#"[{"role":"user","content":[{"type":"x","x":[[]"#;
    for (name, bytes, place) in [
        ("values.json.gz", many(part, ",[]", "]}]}]"), ":1"),
        (
            "messages.json.gz",
            many("[\n", r#"{"role":"user","content":"a"},"#, r#"{"role":"user","content":"a"}]"#),
            ":2",
        ),
        ("sessions.jsonl.gz", many("", "1 ", ""), ":1"),
    ] {
        assert!(bytes.len() < 2_500_000, "{name}: {}", bytes.len());
        let path = file(name, &bytes);
        let error = fails(&[path.to_str().unwrap()]);
        let expected = format!("{name}{place}: the session contains more than 10,000,000 JSON values");
        assert!(error.contains(&expected), "{error}");
    }
    // A part, arguments or a schema above the size that is inspected, which is below the limit of a session.
    let list = format!("[{}1]", "1,".repeat(1_000_000));
    let arguments = serde_json::json!({"role": "assistant", "content": null, "tool_calls":
        [{"id": "c", "type": "function", "function": {"name": "f", "arguments": format!("{{\"a\":{list}}}")}}]});
    for (name, text, expected) in [
        (
            "part.json",
            format!(r#"[{{"role":"user","content":[{{"type":"x","x":{list}}}]}}]"#),
            "message 0: a part of an unknown type: it contains",
        ),
        ("arguments.json", format!("[{arguments}]"), "message 0: the arguments of a call: it contains"),
        (
            "schema.json",
            format!(r#"{{"query":"q","tools":[{{"name":"f","parameters":{{"enum":{list}}}}}]}}"#),
            "tools[0]: its JSON: it contains",
        ),
    ] {
        let error = fails(&[file(name, text.as_bytes()).to_str().unwrap()]);
        assert!(error.contains(expected) && error.contains("more than 1,000,000 JSON values"), "{error}");
    }
}

/// Logs that were cut inside a character are read with a note.
#[test]
fn half_a_character_is_read_with_a_note() {
    let text = r#"[{"role":"user","id":"a","content":"a \ud800 b \ud83d\ude00"},{"role":"user","content":"\\ud800 \udc00"}]"#;
    let path = file("halves.json", text.as_bytes());
    let assert = inspect(&[path.to_str().unwrap(), "--format", "messages"]).assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("2 unpaired surrogates"), "{said}");
    let body = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(
        body.contains("a \u{fffd} b \u{1f600}")
            && body.contains(r"\\ud800 \u{fffd}".replace("\\u{fffd}", "\u{fffd}").as_str()),
        "{body}"
    );
}

#[test]
fn empty_required_value_is_an_error() {
    let session = |text: &str| fails(&[file("empty-id.json", text.as_bytes()).to_str().unwrap()]);
    for text in [
        r#"[{"role":"user","id":"","content":"x"}]"#,
        r#"{"id":"","query":"x"}"#,
        r#"{"query":"x","pinned":[{"id":"","text":"n"}]}"#,
        r#"{"query":"x","rag":[{"id":"","text":"n","score":1}]}"#,
        r#"{"query":"x","state":[{"id":"","text":"n"}]}"#,
    ] {
        let error = session(text);
        assert!(error.contains("expected an id that is not empty"), "{text}: {error}");
    }
    for args in [
        &[EXAMPLE, "--model", ""][..],
        &["diff", EXAMPLE, EXAMPLE, "--then-model", ""],
        &[EXAMPLE, "--tokenizer", ""],
    ] {
        assert!(fails(args).contains("a value is required"), "{args:?}: {}", fails(args));
    }
    assert!(
        fails(&[EXAMPLE, "--set", "compaction.summary.instruction="])
            .contains("compaction.summary.instruction")
    );
    assert!(fails(&["replay", EXAMPLE, "--newest", "0"]).contains("expected a number of 1 or more"));
    // An unknown tokenizer is reported with its key and the place that set it.
    let options = file("wrong-tokenizer.toml", b"[model.default]\ntokenizer = \"gpt2\"\n");
    let session = file("no-model.json", br#"{"query":"x"}"#);
    let error = fails(&[session.to_str().unwrap(), "--config", options.to_str().unwrap()]);
    assert!(
        error.contains("wrong-tokenizer.toml:2: model.default.tokenizer: tokenizer `gpt2` is unknown"),
        "{error}"
    );
}

/// As in a conversation, a note that is pinned again replaces the first (rule O5).
#[test]
fn a_note_that_is_pinned_twice_is_the_last_one() {
    let text = r#"{"query":"x","pinned":[{"id":"n","text":"one"},{"id":"o","text":"two"},{"id":"n","text":"three"}]}"#;
    let path = file("twice.json", text.as_bytes());
    let assert = inspect(&[path.to_str().unwrap(), "--format", "messages"]).assert().success();
    let output = assert.get_output();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("note `n` is pinned twice: the last one is used")
    );
    let body = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(body.contains("three") && !body.contains("one"), "{body}");
}

/// Ids of calls and names of tools may be a megabyte long, but the messages about them stay short.
#[test]
fn long_names_are_cut_in_messages() {
    let long = "c".repeat(1 << 20);
    let call =
        serde_json::json!({"id": long, "type": "function", "function": {"name": long, "arguments": "{}"}});
    let text = serde_json::json!({"tools": [{"name": long}, {"type": long, "name": long}], "messages": [
        {"role": "user", "content": "go"}, {"role": "assistant", "content": null, "tool_calls": [call, call]},
    ]});
    let path = file("long-names.json", text.to_string().as_bytes());
    let path = path.to_str().unwrap();
    for provider in ["openai", "openai-responses", "anthropic", "gemini"] {
        for args in [&[path, "--wire-format", provider][..], &["explain", path, "--wire-format", provider]] {
            let assert = inspect(args).assert().success();
            let output = assert.get_output();
            assert!(output.stdout.len() + output.stderr.len() < 20_000, "{args:?}: {}", output.stdout.len());
        }
        let assert = inspect(&[path, "--wire-format", provider, "--format", "messages"]).assert().success();
        assert!(assert.get_output().stderr.len() < 5_000, "{provider}");
    }
    let error = fails(&[path, "--set", "conversation.repair=reject"]);
    assert!(error.len() < 1_000, "{}", error.len());
}

/// Empty reasoning gives no notice about an omission.
#[test]
fn empty_reasoning_gets_no_notice() {
    let text = r#"[{"role":"user","content":"?"},{"role":"assistant","reasoning_content":"","content":"!"},{"role":"user","content":"?"}]"#;
    let path = file("no-reasoning.json", text.as_bytes());
    for model in ["gpt-4o", "claude-sonnet-5", "deepseek-chat"] {
        let plan: serde_json::Value =
            serde_json::from_str(&out(&[path.to_str().unwrap(), "--model", model, "--format", "json"]))
                .unwrap();
        let said = plan["notices"].to_string();
        assert!(!said.contains("reasoning"), "{model}: {said}");
    }
}

#[test]
fn help_takes_the_flags_of_the_screen() {
    let widest = |args: &[&str]| out(args).lines().map(|line| line.chars().count()).max().unwrap();
    for args in [
        &["help", "plan", "--width", "60"][..],
        &["help", "--width=60", "plan"],
        &["--width", "60", "help", "plan"],
    ] {
        assert!(widest(args) <= 60, "{args:?}: {}", widest(args));
        assert!(out(args).contains("--budget"));
    }
    assert!(out(&["help", "plan", "--color", "always"]).contains('\u{1b}'));
}
