//! The binary as a user calls it: forms of input, formats, exit codes, errors.

mod advice;
mod answers;
mod compaction;
mod documents;
mod evaluation;
mod files;
#[cfg(unix)]
mod inert;
mod input;
mod packaging;
mod reading;
mod repair;
#[cfg(feature = "sqlite")]
mod stores;
mod target;
#[cfg(unix)]
mod seen;
mod terminal;
mod wording;

use assert_cmd::Command;
use serde_json::Value;
use std::{collections::BTreeSet, io::Write as _, path::PathBuf};

const EXAMPLE: &str = "examples/support-chat.json";

fn inspect(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("plan-inspect").unwrap();
    for name in ["RUST_LOG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CONTEXT_WINDOW_CONFIG"] {
        command.env_remove(name);
    }
    command.current_dir(crate::support::root()).args(args);
    command
}

fn out(args: &[&str]) -> String {
    let output = inspect(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// Checks for exit code 2 and an empty standard output. Returns the message on standard error.
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
fn subcommand_is_optional() {
    assert_eq!(out(&[EXAMPLE]), out(&["plan", EXAMPLE]));
    assert_eq!(out(&["--budget", "300", EXAMPLE]), out(&["plan", EXAMPLE, "--budget=300"]));
}

/// Every command of docs/reference/examples.md prints the output shown there.
#[test]
fn documented_examples_match_the_output() {
    let run = |page: &str| -> BTreeSet<String> {
        let page = std::fs::read_to_string(crate::support::root().join(page)).unwrap();
        let one = |part: &str| {
            let (command, rest) = part.split_once("\n```\n\n```text\n").unwrap();
            let (expected, _) = rest.split_once("```").unwrap();
            let args: Vec<&str> = command.split(' ').collect();
            assert_eq!(out(&args), expected, "{command}");
            args[0].to_owned()
        };
        page.split("```sh\nplan-inspect ").skip(1).map(one).collect()
    };
    assert_eq!(run("docs/reference/explaining.md"), BTreeSet::from(["diff".into(), "explain".into()]));
    assert_eq!(run("docs/reference/compaction.md"), BTreeSet::from(["compact".into(), "history".into()]));
    assert_eq!(run("docs/reference/screen.md"), BTreeSet::from(["tui".into()]));
    let of_the_guide = ["diff", "explain", "replay"].map(str::to_owned);
    assert_eq!(run("docs/guide/debugging.md"), BTreeSet::from(of_the_guide));
    assert_eq!(run("docs/guide/evaluating.md"), BTreeSet::from(["eval".into()]));
    assert_eq!(run("docs/guide/rag.md"), BTreeSet::from(["rag".into()]));
    // The part of the report that the quick start shows.
    let report = out(&[EXAMPLE, "--budget", "400"]);
    let page = std::fs::read_to_string(crate::support::root().join("docs/guide/quick-start.md")).unwrap();
    let shown = page.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    for part in shown.split("...\n") {
        assert!(report.contains(part), "{report}");
    }
    let shown = run("docs/reference/examples.md");
    let files = std::fs::read_dir(crate::support::root().join("examples")).unwrap();
    let files = files.map(|file| format!("examples/{}", file.unwrap().file_name().display()));
    let sessions: BTreeSet<String> =
        files.filter(|name| name.ends_with(".json") && !name.ends_with("anchor.json")).collect();
    assert_eq!(shown, sessions, "every example is shown, and nothing else");
}

#[test]
fn documented_option_error_matches_the_output() {
    let path = file("mine.toml", b"[rag]\nmax_itmes = 5\n");
    let error =
        fails(&[EXAMPLE, "--config", path.to_str().unwrap()]).replace(path.to_str().unwrap(), "mine.toml");
    let page = std::fs::read_to_string(crate::support::root().join("docs/reference/options.md")).unwrap();
    assert!(page.contains(&format!("```text\n{}\n```", error.trim_end())), "{error}");
    let models = out(&["models", "list"]).lines().count() - 3;
    for (page, said) in [("docs/reference/session.md", "know"), ("README.md", "chat templates;")] {
        let page = std::fs::read_to_string(crate::support::root().join(page)).unwrap();
        assert!(page.contains(&format!("{said} {models} models")), "{models}");
    }
}

#[test]
fn colour_is_for_terminals_and_carries_no_extra_information() {
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
fn reports_fit_their_width_in_every_script() {
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

/// The session and model files of docs/reference/session.md have the effect that the page states.
#[test]
fn session_page_matches_the_behaviour() {
    let page = std::fs::read_to_string(crate::support::root().join("docs/reference/session.md")).unwrap();
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
fn the_command_line_is_forgiving() {
    assert_eq!(out(&[EXAMPLE, "--budget", "8k"]), out(&[EXAMPLE, "--budget", "8,000"]));
    assert_eq!(out(&[EXAMPLE, "--budget", "8_000"]), out(&[EXAMPLE, "--budget", "8000"]));
    for wrong in ["-5", "8x", "99999999999999999999", "k", ""] {
        let error = fails(&[EXAMPLE, "--budget", wrong]);
        assert!(
            error.contains("expected a number of tokens") || error.contains("value is required"),
            "{wrong}: {error}"
        );
    }
    assert!(fails(&["plam", EXAMPLE]).contains("plan"));
    assert!(fails(&["cofnig"]).contains("config"));
    let text = std::fs::read_to_string(crate::support::root().join(EXAMPLE)).unwrap();
    let piped = inspect(&[]).write_stdin(text).assert().success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(piped).unwrap(), out(&[EXAMPLE]));
    let lines = file("list.jsonl", LINES.as_bytes());
    let listed = out(&[lines.to_str().unwrap(), "--list"]);
    let columns: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(columns[0], ["id", "model", "messages", "tokens"]);
    assert_eq!(
        columns[1..].iter().map(|row| (row[0], row[2])).collect::<Vec<_>>(),
        [("first", "1"), ("2", "1"), ("third", "1")]
    );
    assert!(fails(&[EXAMPLE, "--save-anchor", "-"]).contains("expected a file"));
    assert!(fails(&[EXAMPLE, "--set", "max_items=5"]).contains("did you mean `rag.max_items`?"));
    let mut command = inspect(&[EXAMPLE]);
    let error = command.env("CONTEXT_WINDOW_RAG_MAX_ITEMS", "5").assert().code(2).get_output().stderr.clone();
    assert!(String::from_utf8(error).unwrap().contains("did you mean `CONTEXT_WINDOW_RAG__MAX_ITEMS`?"));
    // A body cannot state an overflow, so it is reported on standard error.
    let body = inspect(&[EXAMPLE, "--format", "messages", "--budget", "20"]).assert().success();
    let beside = String::from_utf8(body.get_output().stderr.clone()).unwrap();
    assert!(beside.contains("over budget by"), "{beside}");
}

#[test]
fn json_and_messages_are_json() {
    let plan: Value = serde_json::from_str(&out(&[EXAMPLE, "--format", "json"])).unwrap();
    assert_eq!(plan["version"], 2);
    assert_eq!(plan["sections"]["conversation"]["share"], 550);
    assert_eq!(plan["fingerprint"].as_str().unwrap().len(), 64);
    let rows = plan["included"].as_array().unwrap().iter().map(|row| row["token_estimate"].as_i64().unwrap());
    let lines = plan["overhead"].as_array().unwrap().iter().map(|line| line["tokens"].as_i64().unwrap());
    assert_eq!(rows.chain(lines).sum::<i64>(), plan["estimated_tokens_total"]);
    let body: Value = serde_json::from_str(&out(&[EXAMPLE, "--format", "messages"])).unwrap();
    assert_eq!(body["messages"][0]["role"], "system");
}

#[test]
fn excluded_items_are_counted_on_request() {
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
fn strict_flag_turns_an_overflow_into_exit_code_1() {
    inspect(&[EXAMPLE, "--budget", "20"]).assert().code(0);
    let strict = inspect(&[EXAMPLE, "--budget", "20", "--strict"]).assert().code(1);
    assert!(!strict.get_output().stdout.is_empty(), "the plan is shown all the same");
    inspect(&[EXAMPLE, "--strict"]).assert().code(0);
}

/// Telemetry: one record a plan, with numbers and without a word of the prompt.
#[test]
fn one_log_record_per_plan() {
    let mut command = inspect(&[EXAMPLE, "--budget", "400"]);
    let log = command
        .env("RUST_LOG", "context_window=info")
        .env("NO_COLOR", "1")
        .assert()
        .success()
        .get_output()
        .stderr
        .clone();
    let log = String::from_utf8(log).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    for field in [
        "INFO context_window::tokens: plan",
        "prompt_budget=400",
        "conversation_used=",
        "rag_limit=",
        "excluded_budget=",
        "excluded_near_duplicate=",
        "excluded_repeats=",
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

/// A diff fails only on the changes requested by `--fail-on`.
#[test]
fn diff_fails_only_on_the_requested_changes() {
    let fails = |then: &str, on: &str| {
        let output =
            inspect(&["diff", EXAMPLE, EXAMPLE, "--then-budget", then, "--fail-on", on]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = fails("110592", "dropped,overflow,cache");
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = fails("400", "dropped");
    assert_eq!(code, Some(1));
    assert!(said.contains("dropped: care, hours"), "{said}");
    assert_eq!(fails("400", "overflow").0, Some(0));
    let (code, said) = fails("40", "overflow");
    assert_eq!(code, Some(1));
    assert!(said.contains("over budget by"), "{said}");
    let (code, said) = fails("400", "cache");
    assert_eq!(code, Some(1));
    assert!(said.contains("cache break at care"), "{said}");
    assert_eq!(fails("400", "everything").0, Some(2));
    let text = out(&["diff", EXAMPLE, EXAMPLE, "--then-budget", "400", "--format", "markdown"]);
    assert!(text.contains("| care | in: relevant | dropped: budget |"), "{text}");
}

/// Sessions are replayed in parallel. The output keeps their order, and the first error is reported.
#[test]
fn sessions_replay_in_their_order() {
    let session = |at: usize| {
        let turn =
            format!(r#"{{"role":"user","content":"question {at}"}},{{"role":"assistant","content":"yes"}}"#);
        let turns = vec![turn; 1 + 97 * (at % 3)].join(",");
        format!(r#"{{"id":"s{at}","messages":[{turns}]}}"#)
    };
    let lines: Vec<String> = (0..24).map(session).collect();
    let path = file("replay-order.jsonl", lines.join("\n").as_bytes());
    let json = out(&["replay", path.to_str().unwrap(), "--format", "json"]);
    let lines = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut order: Vec<String> =
        lines.filter_map(|line| line["session"].as_str().map(str::to_owned)).collect();
    order.dedup();
    assert_eq!(order, (0..24).map(|at| format!("s{at}")).collect::<Vec<_>>());

    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"ID","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let broken = |at: usize| {
        let call = call.replace("ID", &format!("call-{at}"));
        let fails = if at >= 3 { format!(",{call}") } else { String::new() };
        format!(r#"{{"id":"s{at}","messages":[{{"role":"user","content":"do it"}}{fails}]}}"#)
    };
    let lines: Vec<String> = (0..12).map(broken).collect();
    let path = file("replay-fails.jsonl", lines.join("\n").as_bytes());
    let said = fails(&["replay", path.to_str().unwrap(), "--set", "conversation.repair=reject"]);
    assert!(said.contains("s3") && said.contains("call-3"), "{said}");
}

/// Totals of a replay: breaks, tokens sent again, and costs if the model has a price.
#[test]
fn a_replay_ends_in_sums() {
    let text = out(&["replay", "examples/long-talk.json", "--model", "claude-opus-5-5", "--budget", "400"]);
    for said in
        ["prefix kept ", "cache hit rate ", " sent ", " tokens again", " for input, ", " without a cache"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let json = out(&["replay", "examples/long-talk.json", "--model", "gpt-4o", "--format", "json"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (totals, prompts) = lines.split_last().unwrap();
    let sum = |key: &str| prompts.iter().map(|prompt| prompt["cost"][key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(totals["totals"]["input_cost_billionths"], sum("billionths"));
    assert_eq!(totals["totals"]["uncached_cost_billionths"], sum("uncached"));
    let breaks = prompts.iter().filter(|prompt| !prompt["cause"].is_null()).count();
    assert_eq!(totals["totals"]["cache_breaks"], breaks);
}
