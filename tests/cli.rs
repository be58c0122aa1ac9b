//! The binary as a user calls it: forms of input, formats, exit codes, errors.
#![cfg(all(feature = "inspect", feature = "openai"))]
#![allow(clippy::pedantic, clippy::unwrap_used, missing_docs, reason = "a test")]

use assert_cmd::Command;
use serde_json::Value;
use std::{io::Write as _, path::PathBuf};

const EXAMPLE: &str = "examples/support-chat.json";

fn inspect(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("plan-inspect").unwrap();
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args).env_remove("RUST_LOG");
    command
}

fn out(args: &[&str]) -> String {
    let output = inspect(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// Exit code 2, nothing on standard output, one message on standard error.
fn fails(args: &[&str]) -> String {
    let assert = inspect(args).assert().code(2);
    assert!(assert.get_output().stdout.is_empty());
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

const LINES: &str = "{\"id\":\"first\",\"messages\":[{\"role\":\"user\",\"content\":\"one\"}]}\n\
                     [{\"role\":\"user\",\"content\":\"two\"}]\n\
                     {\"id\":\"third\",\"query\":\"three?\",\"passages\":[{\"id\":\"p\",\"text\":\"3\",\"score\":1}]}\n";

#[test]
fn the_subcommand_may_be_left_out() {
    assert_eq!(out(&[EXAMPLE]), out(&["plan", EXAMPLE]));
    assert_eq!(out(&["--budget", "300", EXAMPLE]), out(&["plan", EXAMPLE, "--budget=300"]));
}

#[test]
fn the_example_of_the_readme_looks_as_it_is_shown_there() {
    let readme = std::fs::read_to_string("README.md").unwrap();
    assert!(readme.contains(&out(&[EXAMPLE, "--budget", "400"])), "the README shows another report");
}

#[test]
fn every_form_of_a_file_is_read() {
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
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
    insta::assert_snapshot!(fails(&[path]).replace(path, "lines.jsonl"), @"plan-inspect: lines.jsonl: holds 3 sessions; choose one by its id: first, 2, third");
    insta::assert_snapshot!(fails(&[path, "--id", "fourth"]).replace(path, "lines.jsonl"), @"plan-inspect: lines.jsonl: has no session `fourth`; its ids are: first, 2, third");
}

#[test]
fn json_and_messages_are_json() {
    let plan: Value = serde_json::from_str(&out(&[EXAMPLE, "--format", "json"])).unwrap();
    assert_eq!(plan["version"], 1);
    assert_eq!(plan["sections"]["conversation"]["share"], 550);
    assert_eq!(plan["fingerprint"].as_str().unwrap().len(), 64);
    let rows = plan["included"].as_array().unwrap().iter().map(|row| row["token_estimate"].as_i64().unwrap());
    let lines = plan["overhead"].as_array().unwrap().iter().map(|line| line["tokens"].as_i64().unwrap());
    assert_eq!(rows.chain(lines).sum::<i64>(), plan["estimated_tokens_total"]);
    let body: Value = serde_json::from_str(&out(&[EXAMPLE, "--format", "messages"])).unwrap();
    assert_eq!(body["messages"][0]["role"], "system");
}

#[test]
fn limits_and_target_are_flags() {
    let plan = |args: &[&str]| -> Value {
        let args: Vec<&str> = [EXAMPLE, "--format", "json"].iter().chain(args).copied().collect();
        serde_json::from_str(&out(&args)).unwrap()
    };
    let flags = plan(&["--context-len", "9000", "--max-completion", "1000", "--safety-buffer", "500"]);
    assert_eq!((&flags["prompt_budget"], &flags["limits_source"]), (&7500.into(), &"request".into()));
    let model = plan(&["--model", "gpt-5"]);
    assert_eq!((&model["prompt_budget"], &model["budget_source"]), (&270_976.into(), &"max_input".into()));
    assert_eq!(plan(&["--tokenizer", "chars/4"])["certainty"], "estimate");
    assert_eq!(plan(&["--provider", "openai"])["target"]["provider"], "openai");
    let config = file("config.toml", b"[rag]\nmax_items = 1\n");
    let capped = plan(&["--config", config.to_str().unwrap()]);
    assert_eq!(capped["sections"]["rag"]["included"], 1);
}

#[test]
fn strict_turns_an_overflow_into_exit_code_1() {
    inspect(&[EXAMPLE, "--budget", "20"]).assert().code(0);
    let strict = inspect(&[EXAMPLE, "--budget", "20", "--strict"]).assert().code(1);
    assert!(!strict.get_output().stdout.is_empty(), "the plan is shown all the same");
    inspect(&[EXAMPLE, "--strict"]).assert().code(0);
}

#[test]
fn bad_input_is_exit_code_2_and_one_message() {
    insta::assert_snapshot!(fails(&["nowhere.json"]), @"plan-inspect: nowhere.json cannot be read: No such file or directory (os error 2)");
    let broken = file("broken.gz", &[0x1f, 0x8b, 8, 0, 1]);
    assert!(fails(&[broken.to_str().unwrap()]).contains("is no whole gzip file"));
    let binary = file("binary.json", b"{\"messages\":\n[\xff]}");
    insta::assert_snapshot!(fails(&[binary.to_str().unwrap()]).replace(binary.to_str().unwrap(), "binary.json"), @"plan-inspect: binary.json:2: byte 14 is not UTF-8; expected JSON in UTF-8");
    let empty = file("empty.json", b"");
    insta::assert_snapshot!(fails(&[empty.to_str().unwrap()]).replace(empty.to_str().unwrap(), "empty.json"), @"plan-inspect: empty.json: is empty; expected a session (a JSON object or an array of messages)");
    let deep = file("deep.json", format!("{{\"messages\":{}", "[".repeat(100_000)).as_bytes());
    assert!(fails(&[deep.to_str().unwrap()]).contains("not JSON"));
    insta::assert_snapshot!(fails(&[EXAMPLE, "--budget", "0"]), @"plan-inspect: no room for a prompt: the budget asked for is 0; ask for 1 token or more");
    assert!(
        fails(&[EXAMPLE, "--budget", "-3"]).contains("invalid value")
            || fails(&[EXAMPLE, "--budget", "-3"]).contains("unexpected argument")
    );
    assert!(fails(&[EXAMPLE, "--tokenizer", "gpt2"]).contains("o200k_base"));
    assert!(fails(&[EXAMPLE, "--config", "Cargo.toml"]).contains("unknown field"));
}

#[test]
fn hostile_text_never_reaches_the_screen_as_it_is() {
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

/// Behaviour 67: one record a plan, with numbers and without a word of the prompt.
#[test]
fn one_event_a_plan_with_target_tokens() {
    let mut command = inspect(&[EXAMPLE, "--budget", "400"]);
    let log = command
        .env("RUST_LOG", "tokens=info")
        .env("NO_COLOR", "1")
        .assert()
        .success()
        .get_output()
        .stderr
        .clone();
    let log = String::from_utf8(log).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    for field in [
        "INFO tokens: plan",
        "prompt_budget=400",
        "conversation_used=",
        "rag_limit=",
        "excluded_budget=",
        "estimated_tokens_total=",
    ] {
        assert!(log.contains(field), "{field} is not in {log}");
    }
    assert!(!log.contains("kettle"), "the log holds text of the prompt: {log}");
}

#[test]
fn help_names_everything() {
    insta::assert_snapshot!(out(&["plan", "--help"]));
}
