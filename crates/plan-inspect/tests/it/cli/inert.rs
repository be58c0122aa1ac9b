//! No text of a session acts on a terminal, for every command and format (rule V3).

use super::{
    file,
    terminal::{on_a_terminal, plain, text},
};
use serde_json::{Value, json};

/// All kinds of characters that act on a terminal and can occur in a session.
const HOSTILE: &str = "\u{1b}[31mx\u{7f}\u{9b}2J\u{202e}y\u{2066}\u{61c}\u{200f}\u{7}\r\u{85}";

/// Returns a session in which every text, name and id contains such characters.
fn of_hostile_texts() -> Value {
    let text = |what: &str| format!("{what}{HOSTILE}");
    json!({
        "id": text("session"), "model": text("model"), "focus": text("focus"),
        "system": [{"id": text("s"), "text": text("Be brief.")}],
        "pinned": [{"id": text("note"), "text": text("note"), "ttl": {"limited": 2}}],
        "state": [{"id": text("state"), "text": text("state")}],
        "tools": [
            {"type": "function", "function": {"name": text("f"), "description": text("Does."),
                "parameters": {"type": "dict", "properties": {text("p"): {"type": text("odd"), "description": text("d")}}}}},
            {"type": text("web_search"), "name": text("own")},
        ],
        "messages": [
            {"role": "user", "id": text("u0"), "name": text("Ada"), "content": text("?")},
            {"role": "assistant", "id": text("a0"), "content": null, "reasoning_content": text("hm"),
                "tool_calls": [{"id": text("c"), "type": "function", "function": {"name": text("f"), "arguments": json!({text("p"): HOSTILE}).to_string()}}]},
            {"role": "tool", "id": text("r0"), "tool_call_id": text("c"), "content": text("found")},
            {"role": "tool", "id": text("r1"), "tool_call_id": text("d"), "content": text("orphan")},
            {"role": "user", "id": text("u1"), "content": [{"type": text("odd"), "data": HOSTILE}, {"type": "text", "text": text("and?")}]},
            {"role": "assistant", "id": text("a1"), "content": text("Done.")},
            {"role": "user", "id": text("u2"), "content": text("Thanks.")},
        ],
        "rag": [
            {"id": text("d"), "text": text("doc"), "score": 0.5, "source": text("file")},
            {"id": text("e"), "text": text("doc"), "score": 0.4},
        ],
    })
}

/// Rule V3 for every command and format. Only the text of a page is written unchanged.
#[test]
fn nothing_that_is_printed_acts_on_a_terminal() {
    let session = file("hostile-texts.json", of_hostile_texts().to_string().as_bytes());
    let session = session.to_str().unwrap();
    let mut calls: Vec<Vec<&str>> = vec![vec![session, "--list"], vec!["history", session]];
    for format in ["text", "json", "messages", "html"] {
        for provider in ["openai", "openai-responses", "anthropic", "gemini"] {
            for budget in ["60", "100000"] {
                calls.push(vec![session, "--format", format, "--wire-format", provider, "--budget", budget]);
            }
        }
    }
    for format in ["text", "json"] {
        calls.push(vec!["explain", session, "--format", format, "--budget", "200"]);
        calls.push(vec!["diff", session, session, "--then-budget", "200", "--format", format]);
        calls.push(vec!["compact", session, "--format", format]);
        calls.push(vec!["replay", session, "--format", format]);
        calls.push(vec!["replay", session, session, "--format", format]);
        calls.push(vec!["models", "show", "gpt-4o", "--format", format]);
    }
    for format in ["text", "markdown", "json"] {
        calls.push(vec!["history", session, "--expand", "--format", format]);
    }
    calls.push(vec!["tui", session, "--print", "120x40"]);
    calls.push(vec!["tui", session, "--print", "80x24", "--keys", "<Tab>jj<Enter>"]);
    for args in calls {
        let output = plain(&args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        for shown in [&output.stdout, &output.stderr] {
            let shown = text(shown);
            let wrong = shown.lines().find(|line| context_window_report::printable(line) != *line);
            assert_eq!(wrong, None, "{args:?}");
        }
    }
}

/// A chat template's text goes to a pipe unchanged, and to a terminal with escaped control characters.
#[test]
fn a_template_s_text_is_shown_on_a_terminal() {
    let session = file("hostile-template.json", of_hostile_texts().to_string().as_bytes());
    let flags = "--tokenizer tests/tokenizers/small --wire-format chat-template --format messages";
    let args: Vec<&str> = [session.to_str().unwrap()].into_iter().chain(flags.split(' ')).collect();
    let sent = text(&plain(&args).output().unwrap().stdout);
    assert!(sent.contains(HOSTILE), "{sent:?}");
    let command = format!("\"$PLAN_INSPECT\" {} {flags} 2>/dev/null", session.display());
    let Some((shown, status)) = on_a_terminal(&command, "") else { return };
    assert!(status.success(), "{shown:?}");
    let shown = shown.replace("\r\n", "\n");
    // The progress display is erased from its line.
    let shown = shown.rsplit("\u{1b}[2K").next().unwrap();
    let wrong = shown.lines().find(|line| context_window_report::printable(line) != *line);
    assert_eq!(wrong, None);
    assert!(shown.contains("?[31mx??2J?y???"), "{shown:?}");
}
