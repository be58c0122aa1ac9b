//! HTML pages that the tool prints and writes.

use assert_cmd::Command;
use std::path::{Path, PathBuf};

fn inspect(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("plan-inspect").unwrap();
    command.env_remove("RUST_LOG").env_remove("CONTEXT_WINDOW_CONFIG");
    command.current_dir(crate::support::root()).args(args);
    command
}

fn out(args: &[&str]) -> String {
    String::from_utf8(inspect(args).assert().success().get_output().stdout.clone()).unwrap()
}

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("html");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

const EXAMPLE: &str = "examples/support-chat.json";

#[test]
fn a_page_is_printed_or_written_whole() {
    let page = out(&[EXAMPLE, "--format", "html", "--budget", "400"]);
    crate::support::page::is_sound(&page);
    assert!(page.contains("<title>support-chat.json</title>"));
    assert!(page.contains("Opening hours"), "what is left out has its text too");
    assert!(page.contains("<dt>enters at</dt>"), "and its explanation");
    let path = file("page.html");
    let name = path.to_str().unwrap();
    assert_eq!(out(&[EXAMPLE, "--format", "html", "--budget", "400", "--output", name]), "");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
    assert_eq!(out(&[EXAMPLE, "--format", "json", "-o", name]), "");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), out(&[EXAMPLE, "--format", "json"]));
}

#[test]
fn only_a_page_has_texts_to_leave_out() {
    let page = out(&[EXAMPLE, "--format", "html", "--redact"]);
    assert!(!page.contains("kettle") && page.contains("every text is replaced by a hash and a size"));
    let assert = inspect(&[EXAMPLE, "--redact"]).assert().code(2);
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("--redact needs --format html"), "{said}");
    assert!(assert.get_output().stdout.is_empty());
}

#[test]
fn page_of_a_huge_session_opens_and_names_its_omissions() {
    let messages: Vec<String> = (0..100_000)
        .map(|n| format!("{{\"role\":\"{}\",\"content\":\"message {n}\"}}", ["user", "assistant"][n % 2]))
        .collect();
    let path = file("huge.json");
    std::fs::write(&path, format!("{{\"model\":\"gpt-4o\",\"messages\":[{}]}}", messages.join(","))).unwrap();
    let output = inspect(&[path.to_str().unwrap(), "--format", "html", "--budget", "8k"]).assert().success();
    let page = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("This page has no explanations."));
    assert!(said.contains("the page has no explanations"), "{said}");
}
