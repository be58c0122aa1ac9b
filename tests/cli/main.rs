//! The binary as a user calls it: forms of input, formats, exit codes, errors.
#![cfg(all(feature = "inspect", feature = "openai"))]
#![allow(clippy::pedantic, clippy::unwrap_used, missing_docs, reason = "a test")]

mod compaction;

use assert_cmd::Command;
use serde_json::Value;
use std::{collections::BTreeSet, io::Write as _, path::PathBuf};

const EXAMPLE: &str = "examples/support-chat.json";

fn inspect(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("plan-inspect").unwrap();
    for name in ["RUST_LOG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CONTEXT_WINDOW_CONFIG"] {
        command.env_remove(name);
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
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

/// Every command of docs/examples.md prints what stands under it there.
#[test]
fn the_examples_look_as_they_are_shown() {
    let run = |page: &str| -> BTreeSet<String> {
        let page = std::fs::read_to_string(page).unwrap();
        let one = |part: &str| {
            let (command, rest) = part.split_once("\n```\n\n```text\n").unwrap();
            let (expected, _) = rest.split_once("```").unwrap();
            let args: Vec<&str> = command.split(' ').collect();
            assert_eq!(out(&args), expected, "{command}");
            args[0].to_owned()
        };
        page.split("```sh\nplan-inspect ").skip(1).map(one).collect()
    };
    assert_eq!(run("docs/explaining.md"), BTreeSet::from(["diff".into(), "explain".into()]));
    assert_eq!(run("docs/compaction.md"), BTreeSet::from(["compact".into(), "history".into()]));
    let shown = run("docs/examples.md");
    let files = std::fs::read_dir("examples").unwrap().map(|file| file.unwrap().path().display().to_string());
    let sessions: BTreeSet<String> =
        files.filter(|name| name.ends_with(".json") && !name.ends_with("anchor.json")).collect();
    assert_eq!(shown, sessions, "every example is shown, and nothing else");
}

#[test]
fn the_error_of_the_readme_looks_as_it_is_shown_there() {
    let path = file("mine.toml", b"[rag]\nmax_itmes = 5\n");
    let error =
        fails(&[EXAMPLE, "--config", path.to_str().unwrap()]).replace(path.to_str().unwrap(), "mine.toml");
    let readme = std::fs::read_to_string("README.md").unwrap();
    assert!(readme.contains(&format!("```text\n{}\n```", error.trim_end())), "{error}");
    assert!(readme.contains(&format!("know {} models", out(&["models", "list"]).lines().count() - 3)));
}

#[test]
fn options_come_from_file_environment_and_flags() {
    let path = file("layers.toml", b"preset = \"rag\"\n[rag]\nmax_items = 3\n[ttl]\npolicy = \"ask\"\n");
    let path = path.to_str().unwrap();
    let show = |args: &[&str]| {
        let mut command = inspect(&[&["config", "show", "--origin"], args].concat());
        let output = command
            .env("CONTEXT_WINDOW_CONFIG", path)
            .env("CONTEXT_WINDOW_TTL__POLICY", "unlimited")
            .assert();
        String::from_utf8(output.success().get_output().stdout.clone()).unwrap().replace(path, "layers.toml")
    };
    insta::assert_snapshot!(show(&["--set", "rag.max_items=7"]));
    let json: Value = serde_json::from_str(&show(&["--format", "json"])).unwrap();
    let setting = json["settings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|setting| setting["key"] == "rag.max_items")
        .unwrap();
    assert_eq!((&setting["value"], &setting["origin"]), (&3.into(), &"layers.toml:3".into()));
    // What it prints is a file that can be loaded again.
    let again = file("again.toml", out(&["config", "show", "--config", path]).as_bytes());
    assert_eq!(out(&[EXAMPLE, "--config", again.to_str().unwrap()]), out(&[EXAMPLE, "--config", path]));
    let mut command = inspect(&[EXAMPLE]);
    let error =
        command.env("CONTEXT_WINDOW_RAG__MAX_ITEMS", "many").assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(error).unwrap().contains("environment CONTEXT_WINDOW_RAG__MAX_ITEMS"));
    assert!(fails(&[EXAMPLE, "--set", "rag.max_items"]).contains("KEY=VALUE"));
    assert!(fails(&[EXAMPLE, "--preset", "agnet"]).contains("agent"));
}

#[test]
fn what_one_run_saves_the_next_one_continues() {
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
    assert!(error.contains("no anchor") && error.contains("--save-anchor"), "{error}");
    // A plan that fails leaves the file as it was.
    fails(&["nowhere.json", "--save-anchor", anchor]);
    assert_eq!(serde_json::from_str::<Value>(&std::fs::read_to_string(anchor).unwrap()).unwrap(), saved);
    assert!(fails(&[EXAMPLE, "--save-anchor", "no/such/folder/a.json"]).contains("cannot be written"));
}

#[test]
fn models_are_listed_shown_and_imported() {
    assert!(out(&["models", "list", "claude", "haiku"]).contains("claude-haiku-4-5"));
    insta::assert_snapshot!(out(&["models", "show", "gpt-5-2025-08-07"]));
    insta::assert_snapshot!(fails(&["models", "show", "gpt-5-minni"]), @r"
    plan-inspect: model `gpt-5-minni` is not in the registry; did you mean `gpt-5-mini`?
    `plan-inspect models list` shows all of them
    ");
    let json: Value = serde_json::from_str(&out(&["models", "list", "kimi-k3", "--format", "json"])).unwrap();
    assert_eq!(json["models"][0]["provider"], "moonshot");
    let catalogue = file(
        "catalogue.json",
        br#"{"acme": {"models": {"wren-2": {"limit": {"context": 5000, "output": 900}, "cost": {"input": 1, "output": 2}}}}}"#,
    );
    let own = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("own-models.toml");
    let own = own.to_str().unwrap();
    let said = out(&["models", "import", catalogue.to_str().unwrap(), "--date", "2026-11-22", "-o", own]);
    assert!(said.starts_with("1 models of "), "{said}");
    assert!(out(&["models", "show", "wren-2", "--models", own]).contains("5,000 tokens"));
    let plan: Value =
        serde_json::from_str(&out(&[EXAMPLE, "--model", "acme/wren-2", "--models", own, "--format", "json"]))
            .unwrap();
    assert_eq!((&plan["model_context_len"], &plan["max_completion_tokens"]), (&5000.into(), &900.into()));
    assert_eq!(plan["certainty"], "estimate");
    assert!(fails(&["models", "list", "zzzz"]).contains("zzzz"));
}

#[test]
fn colour_is_for_terminals_and_says_nothing_of_its_own() {
    let plain = out(&[EXAMPLE]);
    assert!(!plain.contains('\u{1b}'), "piped");
    let coloured = out(&[EXAMPLE, "--color", "always"]);
    assert!(coloured.contains("\u{1b}[1m"));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(stripped + rest, plain);
    let forced = |name: &str| {
        let output = inspect(&[EXAMPLE]).env(name, "1").assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    assert_eq!(forced("CLICOLOR_FORCE"), coloured);
    assert_eq!(forced("NO_COLOR"), plain);
}

#[test]
fn reports_fit_their_width_whatever_the_script() {
    let wide = file(
        "wide.json",
        serde_json::json!({
            "model": "模型".repeat(60),
            "pinned": [{"id": "メモ".repeat(20), "text": "x"}, {"id": "🦀".repeat(50), "text": "y", "ttl": "none_remaining"}],
            "messages": [{"role": "user", "id": "質問".repeat(30), "content": "日本語".repeat(90)}],
            "rag": [{"id": "e\u{301}".repeat(80), "text": "z".repeat(400), "score": 1}],
        })
        .to_string()
        .as_bytes(),
    );
    for session in
        [wide.to_str().unwrap(), EXAMPLE, "examples/overflow.json", "examples/agent-parallel-tools.json"]
    {
        for width in ["60", "80", "133", "200"] {
            for budget in ["60", "400", "4000000000"] {
                let text = out(&[session, "--width", width, "--budget", budget]);
                for line in text.lines() {
                    let columns = unicode_width::UnicodeWidthStr::width(line);
                    assert!(columns <= width.parse().unwrap(), "{columns} columns of {width}: {line}");
                    assert_eq!(line, line.trim_end());
                }
            }
        }
    }
}

/// The session and the model file of docs/session.md do what the page says.
#[test]
fn the_session_page_is_true() {
    let page = std::fs::read_to_string("docs/session.md").unwrap();
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let session = file("page.json", block("json").as_bytes());
    let session = session.to_str().unwrap();
    let plan: Value = serde_json::from_str(&out(&[session, "--format", "json"])).unwrap();
    let ids: Vec<&str> =
        plan["included"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["s0", "tone", "m0", "a1", "refunds", "m2", "clock"]);
    let models = file("page.toml", block("toml").as_bytes());
    let args =
        [session, "--models", models.to_str().unwrap(), "--model", "llama-at-home", "--format", "json"];
    let plan: Value = serde_json::from_str(&out(&args)).unwrap();
    assert_eq!((&plan["limits_source"], &plan["certainty"]), (&"request".into(), &"estimate".into()));
}

#[test]
fn keys_that_are_not_read_are_told_where_another_was_meant() {
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
fn the_command_line_is_forgiving() {
    assert_eq!(out(&[EXAMPLE, "--budget", "8k"]), out(&[EXAMPLE, "--budget", "8,000"]));
    assert_eq!(out(&[EXAMPLE, "--budget", "8_000"]), out(&[EXAMPLE, "--budget", "8000"]));
    for wrong in ["-5", "8x", "99999999999999999999", "k", ""] {
        let error = fails(&[EXAMPLE, "--budget", wrong]);
        assert!(error.contains("expected tokens") || error.contains("value is required"), "{wrong}: {error}");
    }
    assert!(fails(&["plam", EXAMPLE]).contains("plan"));
    assert!(fails(&["cofnig"]).contains("config"));
    let text = std::fs::read_to_string(EXAMPLE).unwrap();
    let piped = inspect(&[]).write_stdin(text).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(piped).unwrap(), out(&[EXAMPLE]));
    let lines = file("list.jsonl", LINES.as_bytes());
    assert_eq!(out(&[lines.to_str().unwrap(), "--list"]), "first\n2\nthird\n");
    assert!(fails(&[EXAMPLE, "--save-anchor", "-"]).contains("expected a file"));
    assert!(fails(&[EXAMPLE, "--set", "max_items=5"]).contains("did you mean `rag.max_items`?"));
    let mut command = inspect(&[EXAMPLE]);
    let error = command.env("CONTEXT_WINDOW_RAG_MAX_ITEMS", "5").assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(error).unwrap().contains("did you mean `CONTEXT_WINDOW_RAG__MAX_ITEMS`?"));
    // A body cannot say that it is over the budget; standard error does.
    let body = inspect(&[EXAMPLE, "--format", "messages", "--budget", "20"]).assert().success();
    let beside = String::from_utf8(body.get_output().stderr.clone()).unwrap();
    assert!(beside.contains("over budget by"), "{beside}");
}

#[test]
fn an_anchor_that_does_not_hold_says_so() {
    let plan = |anchor: &str, args: &[&str]| {
        let path = file("other-anchor.json", anchor.as_bytes());
        let session = "examples/agent-parallel-tools.json";
        out(&[&[session, "--width", "200", "--previous", path.to_str().unwrap()], args].concat())
    };
    assert!(plan(r#"{"window_start":"nowhere"}"#, &[]).contains("its start is not in this conversation"));
    let other = r#"{"window_start":"m0","target":{"model":"gpt-4","provider":"openai"}}"#;
    assert!(plan(other, &[]).contains("it was made for another model or wire form"));
    assert!(
        plan(r#"{"window_start":"m0","limits":{"prompt_budget":5}}"#, &["--budget", "900"])
            .contains("other limits")
    );
    assert!(!plan(r#"{"window_start":null}"#, &[]).contains("not continued"));
    for none in ["{}", "[]", r#"{"foo":1}"#, "3"] {
        let path = file("no-anchor.json", none.as_bytes());
        assert!(fails(&[EXAMPLE, "--previous", path.to_str().unwrap()]).contains("no anchor"));
    }
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
fn a_chat_template_is_counted_and_printed_as_it_is_sent() {
    let folder = "tests/tokenizers/small";
    let args = [EXAMPLE, "--budget", "700", "--tokenizer", folder, "--provider", "chat-template"];
    let plan: Value = serde_json::from_str(&out(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(plan["certainty"], "exact");
    assert!(plan["tokenizer"].as_str().unwrap().starts_with("small@"));
    let sent = out(&[&args[..], &["--format", "messages"]].concat());
    assert!(
        sent.starts_with("<|endoftext|><|im_start|>system") && sent.ends_with("<|im_start|>assistant\n"),
        "{sent}"
    );
    assert!(out(&args).contains("joins"), "{}", out(&args));
    let of_the_readme = format!("plan-inspect {EXAMPLE} --tokenizer {folder} --provider chat-template");
    assert!(std::fs::read_to_string("README.md").unwrap().contains(&of_the_readme));
    insta::assert_snapshot!(fails(&[EXAMPLE, "--provider", "chat-template"]), @"plan-inspect: --provider chat-template: no template is known; expected --tokenizer with the model's folder, which holds tokenizer.json and chat_template.jinja or tokenizer_config.json");
    let none = fails(&[EXAMPLE, "--provider", "chat-template", "--tokenizer", "examples"]);
    assert!(
        none.starts_with("plan-inspect: chat template examples/tokenizer_config.json: no chat template"),
        "{none}"
    );
    let broken = fails(&[EXAMPLE, "--tokenizer", "examples/support-chat.json"]);
    assert!(
        broken.contains("examples/support-chat.json") && broken.contains("expected a tokenizer.json"),
        "{broken}"
    );
}

#[test]
fn what_is_out_is_counted_when_asked() {
    let rows = |args: &[&str]| -> Vec<Value> {
        let args = [&[EXAMPLE, "--budget", "400", "--format", "json"], args].concat();
        serde_json::from_str::<Value>(&out(&args)).unwrap()["excluded"].as_array().unwrap().clone()
    };
    let certainties = |rows: &[Value]| rows.iter().map(|row| row["certainty"].clone()).collect::<Vec<_>>();
    assert_eq!(certainties(&rows(&[])), ["at_least", "at_least"]);
    assert_eq!(certainties(&rows(&["--certainty", "exact"])), ["exact", "exact"]);
    assert!(
        rows(&["--certainty", "exact"])[0]["token_estimate"].as_u64()
            > rows(&[])[0]["token_estimate"].as_u64()
    );
}

#[test]
fn a_margin_that_is_set_is_shown() {
    let text = out(&[EXAMPLE, "--tokenizer", "chars/4", "--set", "tokens.margin=1250", "--budget", "800"]);
    assert!(text.contains("(estimate, x 1.250 as set)") && text.contains("margin "), "{text}");
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

/// Every provider's body from the command line, and where marks are asked for, whether there are any.
#[test]
fn every_provider_has_a_body() {
    let first = |args: &[&str]| {
        let body: serde_json::Value = serde_json::from_str(&out(args)).unwrap();
        body.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    for (provider, keys) in [
        ("openai", "messages tools"),
        ("openai-responses", "input tools"),
        ("anthropic", "system messages tools"),
        ("gemini", "systemInstruction contents tools"),
    ] {
        assert_eq!(first(&[EXAMPLE, "--provider", provider, "--format", "messages"]), keys, "{provider}");
    }
    let args = [EXAMPLE, "--model", "gpt-4o", "--format", "messages", "--breakpoints"];
    let said = String::from_utf8(inspect(&args).assert().success().get_output().stderr.clone()).unwrap();
    assert!(said.contains("breakpoints: none"), "{said}");
}

/// What a retriever answered takes the place of the session's documents; what cannot be read says where and why.
#[test]
fn documents_come_from_a_retrievers_json() {
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
        error.contains("hits.json: no list of hits; looked for a list, found an object with result"),
        "{error}"
    );
}

/// The shipped test vectors, at least 200 of them, hold; a wrong one is found and named.
#[test]
fn the_vectors_hold() {
    let said = out(&["vectors", "tests/vectors"]);
    let count: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(count >= 200 && said.starts_with(&format!("{count} vectors, 0 failed\n")), "{said}");
    let sound = std::fs::read_to_string("tests/vectors/s8_not_monotone_16.json").unwrap();
    let wrong = file("wrong-vector.json", sound.replace("\"total\": 16", "\"total\": 17").as_bytes());
    let assert = inspect(&["vectors", wrong.to_str().unwrap()]).assert().code(1);
    let said = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(
        said.contains("total: expected 17\n  total: planned  16") && said.contains("1 vector, 1 failed"),
        "{said}"
    );
    let none = file("no-vector.json", b"{\"rules\": [], \"budget\": -1}");
    assert!(fails(&["vectors", none.to_str().unwrap()]).contains("no vector"));
}

#[test]
fn an_explanation_says_why_and_how_back() {
    let args = ["explain", EXAMPLE, "hours", "--budget", "400"];
    insta::assert_snapshot!(out(&args), @r"
    hours  out: larger than the 30 left
      prompt budget  400, it costs 33
      its place has  postage
      comes in       at 403, 3 more
      in at          403 to 456, 490 and more
      stays          from 490 on
    ");
    let readme = std::fs::read_to_string("README.md").unwrap();
    assert!(readme.contains(&out(&args)), "the README shows another explanation");
    let json: Value = serde_json::from_str(&out(&[&args[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!((&json["enters_at"], &json["stays_from"]), (&403.into(), &490.into()));
    // What it says holds.
    for (budget, is_in) in
        [("402", false), ("403", true), ("456", true), ("457", false), ("489", false), ("490", true)]
    {
        let plan: Value =
            serde_json::from_str(&out(&[EXAMPLE, "--budget", budget, "--format", "json"])).unwrap();
        let ids = plan["included"].as_array().unwrap().iter().map(|row| &row["id"]);
        assert_eq!(ids.filter(|id| *id == "hours").count() == 1, is_in, "{budget}");
    }
    let all = out(&["explain", EXAMPLE, "--budget", "400"]);
    assert!(all.contains("hours     out      33       403         490"), "{all}");
    assert!(
        fails(&["explain", EXAMPLE, "huors"])
            .contains("nothing in this request is called `huors`; expected the id of a message, note, document or system text; did you mean `hours`?")
    );
}

#[test]
fn a_diff_names_one_cause_a_change() {
    let said = out(&["diff", EXAMPLE, EXAMPLE, "--budget", "400", "--then-budget", "300"]);
    insta::assert_snapshot!(said, @r"
    item         before        after         cause   shown by planning with
    rag:hours    out: budget   in: relevant  budget  only that changed
    voucher      in: pinned    out: budget   budget  only that changed
    rag:faults   in: relevant  out: budget   budget  only that changed
    rag:postage  in: relevant  out: budget   budget  only that changed

    4 changes
    ");
    assert_eq!(out(&["diff", EXAMPLE, EXAMPLE]), "no difference\n");
    let json = out(&["diff", EXAMPLE, EXAMPLE, "--then-budget", "300", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["changes"].as_array().unwrap().iter().all(|change| change["cause"] == "budget"));
    assert!(fails(&["diff", EXAMPLE, "nowhere.json"]).contains("nowhere.json cannot be read"));
}

/// How much of the last prompt is repeated stands in the report and the JSON.
#[test]
fn a_plan_says_what_it_repeats_of_the_last_prompt() {
    let anchor = file("repeats-anchor.json", b"");
    let anchor = anchor.to_str().unwrap();
    out(&[EXAMPLE, "--budget", "400", "--save-anchor", anchor]);
    let again = out(&[EXAMPLE, "--budget", "400", "--previous", anchor]);
    let json: Value =
        serde_json::from_str(&out(&[EXAMPLE, "--budget", "400", "--previous", anchor, "--format", "json"]))
            .unwrap();
    let sum: u64 =
        json["included"].as_array().unwrap().iter().map(|row| row["token_estimate"].as_u64().unwrap()).sum();
    let sum = sum + 42; // the tools
    assert!(again.contains(&format!("repeats {sum} of the last prompt's {sum} tokens\n")), "{again}");
    assert_eq!(json["prefix"]["tokens"], sum);
    let page = std::fs::read_to_string("docs/explaining.md").unwrap();
    let shown = out(&[EXAMPLE, "--budget", "330", "--previous", anchor]);
    let line = shown.lines().find(|line| line.starts_with("repeats")).unwrap();
    assert!(page.contains(line), "the page shows another line than {line}");
    let less = out(&[EXAMPLE, "--budget", "300", "--previous", anchor]);
    assert!(less.contains("tokens, up to voucher: out for want of room"), "{less}");
}
