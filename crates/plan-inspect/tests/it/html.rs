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

/// Writes a folder with the files of the npm package that a live page needs.
fn package(name: &str, manifest: &str) -> PathBuf {
    let folder = file(name);
    std::fs::create_dir_all(folder.join("dist/encodings")).unwrap();
    std::fs::write(folder.join("package.json"), manifest).unwrap();
    std::fs::write(folder.join("dist/core.js"), "import { createError } from './errors.js';\n").unwrap();
    std::fs::write(folder.join("dist/errors.js"), "export function createError() {}\n").unwrap();
    std::fs::write(folder.join("dist/core_bg.wasm"), b"\0asm\x01\0\0\0").unwrap();
    for name in ["o200k_base", "cl100k_base"] {
        std::fs::write(folder.join(format!("dist/encodings/{name}.gz")), b"\x1f\x8b").unwrap();
    }
    folder
}

fn own_manifest() -> String {
    format!(r#"{{"name":"context-window","version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
}

#[test]
fn a_live_page_contains_the_package_and_no_text_as_markup() {
    let folder = package("live", &own_manifest());
    let session = file("live.json");
    let text = "</script><script>alert(1)</script>{{ script }}";
    std::fs::write(
        &session,
        format!(r#"{{"model":"gpt-4o","messages":[{{"role":"user","content":"{text}"}}]}}"#),
    )
    .unwrap();
    let page = out(&[session.to_str().unwrap(), "--format", "html", "--live", folder.to_str().unwrap()]);
    assert!(!page.contains("alert(1)</script>") && page.contains(r"\u003c/script>"), "{page}");
    assert_eq!(page.matches("{{").count(), 1, "the text of the session is data");
    assert_eq!(page.matches("<script").count(), 4);
    std::fs::write(&session, r#"{"messages":[{"role":"user","content":"Hi"}]}"#).unwrap();
    let mut nameless =
        inspect(&[session.to_str().unwrap(), "--format", "html", "--live", folder.to_str().unwrap()]);
    let said = String::from_utf8(nameless.assert().code(2).get_output().stderr.clone()).unwrap();
    assert!(said.contains("the session names no model; expected --model NAME"), "{said}");
    // A model of the user's own has a name, too.
    let models = file("models.toml");
    std::fs::write(&models, "[[model]]\nname = \"mine\"\nprovider = \"acme\"\ncontext_len = 9000\nsource = \"us\"\ndate = \"2026-11-23\"\n").unwrap();
    let (session, folder, models) =
        (session.to_str().unwrap(), folder.to_str().unwrap(), models.to_str().unwrap());
    let page = out(&[session, "--format", "html", "--live", folder, "--models", models, "--model", "mine"]);
    assert!(page.contains(r#""model":"mine""#) && page.contains("context_len = 9000"), "{page}");
}

#[test]
fn a_live_page_needs_the_package_of_its_version() {
    let said = |args: &[&str]| {
        let assert = inspect(&[&[EXAMPLE], args].concat()).assert().code(2);
        assert!(assert.get_output().stdout.is_empty());
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let live = |folder: &Path, more: &[&str]| {
        said(&[&["--format", "html", "--live", folder.to_str().unwrap()], more].concat())
    };
    let whole = package("whole", &own_manifest());
    assert!(said(&["--live", whole.to_str().unwrap()]).contains("--live needs --format html"));
    let none = live(&file("no-package"), &[]);
    assert!(none.contains("package.json: expected the folder of the npm package"), "{none}");
    let other = live(&package("other", r#"{"name":"context-window","version":"9.0.0"}"#), &[]);
    assert!(
        other.contains("is the package `context-window` 9.0.0; expected `context-window` 0.1.0"),
        "{other}"
    );
    let no_json = live(&package("no-json", "{"), &[]);
    assert!(no_json.contains("package.json is not JSON"), "{no_json}");
    let broken = package("broken", &own_manifest());
    std::fs::write(broken.join("dist/core.js"), "").unwrap();
    assert!(live(&broken, &[]).contains("does not import './errors.js'"));
    std::fs::remove_file(broken.join("dist/core.js")).unwrap();
    assert!(live(&broken, &[]).contains("core.js: expected the folder of the npm package"));
}
