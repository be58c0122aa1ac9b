//! `eval`: tables, files, bounds, and continued runs.

use super::{fails, file, inspect, out, packed};
use serde_json::Value;
use std::{fs, path::PathBuf, process::Stdio, time::Duration};

const QUESTIONS: &str = "examples/questions.jsonl";

fn scores(args: &[&str]) -> Vec<Value> {
    let all = [&["eval", QUESTIONS, "--format", "json"], args].concat();
    let json: Value = serde_json::from_str(&out(&all)).unwrap();
    json["scores"].as_array().unwrap().clone()
}

#[test]
fn table_has_a_row_for_each_policy_and_budget() {
    let table = out(&["eval", QUESTIONS, "--budget", "200,1000", "--policy", "default,rag+recall"]);
    insta::assert_snapshot!(table);
    let rows = scores(&["--budget", "200,1000", "--policy", "default,rag+recall"]);
    assert_eq!(rows.len(), 2 * (2 + 5));
    for row in rows {
        assert_eq!((row["sessions"].as_u64(), row["questions"].as_u64()), (Some(2), Some(5)));
        let line = table.lines().find(|line| {
            let mut cells = line.split_whitespace();
            let budget =
                |cell: &str| cell.replace(',', "").parse::<u64>().ok() == row["prompt_budget"].as_u64();
            cells.next() == row["policy"].as_str() && cells.next().is_some_and(budget)
        });
        assert!(line.unwrap().contains(&format!("{:.1} (", row["whole_percent"].as_f64().unwrap())), "{row}");
    }
}

#[test]
fn csv_has_the_values_of_the_json() {
    let csv = out(&["eval", QUESTIONS, "--budget", "200", "--format", "csv"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    for (cells, row) in lines.zip(scores(&["--budget", "200"])) {
        for (name, cell) in names.iter().zip(cells) {
            let expected = match &row[*name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(cell, expected, "{name}");
        }
    }
}

#[test]
fn needles_are_shown_by_kind_and_place() {
    let table = out(&["eval", QUESTIONS, "--budget", "400", "--needles", "--baseline", "none"]);
    assert!(table.contains("after 1 (first/middle/last %)"), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("default")).count(), 1 + 4);
    assert!(fails(&["eval", QUESTIONS, "--seed", "3"]).contains("--needles"));
}

#[test]
fn bound_that_is_not_reached_is_exit_code_1() {
    let bounded = |bound: &str| {
        let assert = inspect(&["eval", QUESTIONS, "--budget", "200", "--fail-under", bound]).assert();
        let output = assert.get_output();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(bounded("whole=60"), (Some(0), String::new()));
    let (code, note) = bounded("whole=60.1");
    assert_eq!(code, Some(1));
    assert!(note.contains("default at 200 tokens in questions: whole is 60.0 %, below 60.1 %"), "{note}");
    // A figure that was not measured is below no bound. Baselines have no bounds.
    assert_eq!(bounded("needles=100").0, Some(0));
    for wrong in ["whole", "whole=101", "whole=", "whole=5.25", "whole=-1", "hole=5"] {
        assert!(fails(&["eval", QUESTIONS, "--fail-under", wrong]).contains("--fail-under"), "{wrong}");
    }
}

#[test]
fn interrupted_run_continues_with_the_same_bytes() {
    let line = fs::read_to_string(crate::support::root().join(QUESTIONS)).unwrap();
    let talk = line.lines().next().unwrap();
    let many: String =
        (0..60).map(|at| talk.replace("\"coast\"", &format!("\"coast-{at}\"")) + "\n").collect();
    let input = file("many-questions.jsonl.gz", &packed(&many));
    let whole = out(&["eval", input.to_str().unwrap(), "--needles", "--format", "csv"]);

    let journal = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("eval-journal.jsonl");
    drop(fs::remove_file(&journal));
    let args = [
        "eval",
        input.to_str().unwrap(),
        "--needles",
        "--format",
        "csv",
        "--journal",
        journal.to_str().unwrap(),
    ];
    let program = assert_cmd::cargo::cargo_bin("plan-inspect");
    let mut run = std::process::Command::new(program).args(args).stdout(Stdio::null()).spawn().unwrap();
    let lines = || fs::read_to_string(&journal).unwrap_or_default().lines().count();
    while lines() < 3 && run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(run.kill());
    run.wait().unwrap();
    // A line that was being written when the run ended, in the middle of a character.
    let before = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, [before.as_bytes(), b"{\"key\":\"12\xc3"].concat()).unwrap();
    assert_eq!(out(&args), whole);
    let after = fs::read_to_string(&journal).unwrap();
    assert!(after.starts_with(&before), "results of the first run are kept");
    assert_eq!(after.lines().count(), 60);
    // A third run computes nothing and writes nothing.
    assert_eq!(out(&args), whole);
    assert_eq!(fs::read_to_string(&journal).unwrap(), after);
}

#[test]
fn journal_that_is_another_file_is_an_error_and_stays_as_it_is() {
    for text in ["a diary\n", "a diary", "{\"messages\": []}\n"] {
        let path = file("not-a-journal.txt", text.as_bytes());
        let error = fails(&["eval", QUESTIONS, "--journal", path.to_str().unwrap()]);
        assert!(error.contains("not-a-journal.txt:1: not a result of `eval`"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = fails(&["eval", QUESTIONS, "--journal", QUESTIONS]);
    assert!(error.contains("is an input file"), "{error}");
}

#[test]
fn unusable_input_is_an_error() {
    assert!(fails(&["eval", "nowhere.jsonl"]).contains("nowhere.jsonl cannot be read"));
    assert!(fails(&["eval", "examples/support-chat.json"]).contains("no questions; expected `questions`"));
    let empty = file("no-sessions.jsonl", b"\n");
    assert!(fails(&["eval", empty.to_str().unwrap()]).contains("no sessions; expected JSON lines"));
    let twice = fails(&["eval", QUESTIONS, QUESTIONS]);
    assert!(twice.contains("FILES: questions is given twice"), "{twice}");
    let cut = packed(&fs::read_to_string(crate::support::root().join(QUESTIONS)).unwrap());
    let cut = file("cut-questions.jsonl.gz", &cut[..cut.len() / 2]);
    let error = fails(&["eval", cut.to_str().unwrap()]);
    assert!(error.contains("cut-questions.jsonl.gz: cannot be read") && error.contains("gzip"), "{error}");
    let broken = file("broken-questions.jsonl", b"{\"query\": \"a?\", \"passages\": []}\n{\"query\": ");
    assert!(fails(&["eval", broken.to_str().unwrap()]).contains("not JSON"));
    let error = fails(&["eval", QUESTIONS, "--policy", "bold"]);
    assert!(error.contains("--policy bold: no such file or preset; expected default, agent,"), "{error}");
    assert!(fails(&["eval", QUESTIONS, "--policy", "rag,chat,rag"]).contains("rag is given twice"));
    for ambiguous in ["2,048", "8,192,16384", "200,400"] {
        assert!(fails(&["eval", QUESTIONS, "--budget", ambiguous]).contains("one number or several?"));
    }
    assert_eq!(scores(&["--budget", "200", "--budget", "400", "--baseline", "none"]).len(), 2);
    assert!(fails(&["eval", QUESTIONS, "--budget", "0"]).contains("expected 1 token or more"));
    assert!(fails(&["eval", QUESTIONS, "--budget", "2000,2k"]).contains("2,000 is given twice"));
    let error = fails(&["eval", QUESTIONS, "--baseline", "worst"]);
    assert!(error.contains("no baseline `worst`; expected one of newest, langchain, bm25"), "{error}");
}

#[test]
fn policy_can_be_a_file_of_options() {
    let options = file("few-documents.toml", b"[rag]\nmax_items = 1\n");
    let rows = scores(&["--budget", "4000", "--policy", options.to_str().unwrap(), "--baseline", "none"]);
    assert_eq!(rows[0]["policy"], "few-documents");
    // The question about the library needs two documents.
    assert_eq!(rows[0]["questions_whole"], 4);
    let wrong = file("wrong-options.toml", b"[rag]\nmax_itmes = 1\n");
    assert!(fails(&["eval", QUESTIONS, "--policy", wrong.to_str().unwrap()]).contains("max_itmes"));
}

#[cfg(feature = "html")]
#[test]
fn page_has_a_curve_for_each_policy_and_no_script() {
    let hostile = talk_with_id("<script>alert(1)</script>");
    let input = file("<b>hostile.jsonl", hostile.as_bytes());
    let page =
        out(&["eval", input.to_str().unwrap(), "--budget", "100,1000,4k", "--needles", "--format", "html"]);
    assert_eq!(page.matches("<polyline").count(), 6);
    assert!(page.contains("&lt;b&gt;hostile") && !page.contains("<script") && !page.contains("<b>"));
}

#[cfg(feature = "html")]
fn talk_with_id(id: &str) -> String {
    let line = fs::read_to_string(crate::support::root().join(QUESTIONS)).unwrap();
    line.lines().next().unwrap().replace("\"coast\"", &format!("\"{id}\"")) + "\n"
}
