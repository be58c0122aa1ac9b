//! The advice of a report, applied on the command line: the next report has the promised numbers.

use super::{EXAMPLE, file, out};
use serde_json::{Value, json};

/// Returns the line of a report about the largest items of the prompt.
fn fills(args: &[&str]) -> String {
    let text = out(&[args, &["--width", "1000"]].concat());
    text.lines().find(|line| line.starts_with("contents  ")).unwrap_or_default().to_owned()
}

/// Returns the tokens of the kinds with this prefix in a report.
fn tokens(args: &[&str], kind: &str) -> u64 {
    let text = out(args);
    let kinds = text.lines().skip_while(|line| *line != "contents of the prompt").skip(1);
    let cells = kinds.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(" %  "));
    let of_kind = cells.filter(|(_, name)| name.starts_with(kind));
    of_kind.map(|(left, _)| number(left.split_whitespace().next().unwrap_or_default())).sum()
}

fn number(text: &str) -> u64 {
    text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Applies the advice of a report and checks the promised tokens. Returns the advice.
fn apply(name: &str, args: &[&str]) -> String {
    let line = fills(args);
    if let Some((_, said)) = line.split_once("; --set ") {
        let (set, promise) = said.split_once(' ').unwrap();
        let (before, after) = promise.rsplit_once(": ").unwrap().1.split_once(" tokens become ").unwrap();
        let kind = line["contents  ".len()..].split(" %").next().unwrap().rsplit_once(' ').unwrap().0;
        let changed = [args, &["--set", set]].concat();
        assert_eq!(
            (tokens(args, kind), tokens(&changed, kind)),
            (number(before), number(after)),
            "{name}: {line}"
        );
        assert!(!fills(&changed).contains(set), "{name}: advised again: {}", fills(&changed));
        return set.split('=').next().unwrap().to_owned();
    }
    let Some((_, said)) = line.split_once("; `plan-inspect compact` archives ") else { return String::new() };
    let (before, after) =
        said.split_once("this prompt of ").unwrap().1.split_once(" tokens becomes ").unwrap();
    let total = |args: &[&str]| -> u64 {
        let plan: Value = serde_json::from_str(&out(&[args, &["--format", "json"]].concat())).unwrap();
        plan["estimated_tokens_total"].as_u64().unwrap()
    };
    assert_eq!(total(args), number(before), "{name}: {line}");
    let path = file(name, b"");
    std::fs::remove_file(&path).unwrap();
    let (path, rest) = (path.to_str().unwrap(), &args[1..]);
    let said = out(&[&["compact", args[0]], rest, &["--apply", path]].concat());
    assert!(said.contains(&format!(
        "archived    {} ",
        line.split("archives ").nth(1).unwrap().split(' ').next().unwrap()
    )));
    assert_eq!(total(&[&[path], rest].concat()), number(after), "{name}: {line}");
    "compact".into()
}

/// Returns an agent's session: questions, calls and long results.
fn agent(turns: usize) -> Value {
    let turn = |at: usize| {
        let text = format!("entry {at}: ").repeat(60 + at);
        let call = json!([{"id": format!("c{at}"), "type": "function",
            "function": {"name": "look", "arguments": format!("{{\"at\": {at}}}")}}]);
        [
            json!({"role": "user", "content": format!("What is entry {at}?")}),
            json!({"role": "assistant", "content": "I look.", "tool_calls": call}),
            json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": text}),
            json!({"role": "assistant", "content": format!("That is entry {at}.")}),
        ]
    };
    let messages: Vec<Value> =
        (0..turns).flat_map(turn).chain([json!({"role": "user", "content": "Thanks."})]).collect();
    json!({"model": "gpt-4o", "messages": messages})
}

#[test]
fn advice_of_a_report_has_its_stated_effect() {
    let talk: Vec<Value> = (0..40)
        .map(|at| {
            let role = if at % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": format!("{at}: {}", "word ".repeat(60))})
        })
        .chain([json!({"role": "user", "content": "And now?"})])
        .collect();
    let talk = file("advice-talk.json", json!({"model": "gpt-4o", "messages": talk}).to_string().as_bytes());
    let talk = talk.to_str().unwrap();
    assert_eq!(apply("advice-talk-done.json", &[talk, "--budget", "2000"]), "compact");
    assert_eq!(apply("advice-documents-done.json", &[EXAMPLE, "--budget", "400"]), "", "35 %");
    let passages: Vec<Value> = (0..9)
        .map(|at| json!({"id": format!("p{at}"), "text": format!("{at} {}", "fact ".repeat(50)), "score": 9 - at}))
        .collect();
    let rag = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "Which facts?"}], "rag": passages});
    let rag = file("advice-rag.json", rag.to_string().as_bytes());
    assert_eq!(apply("advice-rag-done.json", &[rag.to_str().unwrap(), "--budget", "600"]), "rag.max_items");
    // Without a last prompt nothing is cleared, so clearing is not advised. With one it is, and an applied
    // clearing is not advised again.
    let work = file("advice-agent.json", agent(12).to_string().as_bytes());
    let work = work.to_str().unwrap();
    assert_eq!(apply("advice-agent-done.json", &[work, "--budget", "3000"]), "compact");
    let early = file("advice-early.json", agent(7).to_string().as_bytes());
    let anchor = file("advice-anchor.json", b"");
    let anchor = anchor.to_str().unwrap();
    std::fs::remove_file(anchor).unwrap();
    out(&[early.to_str().unwrap(), "--budget", "3000", "--save-anchor", anchor]);
    assert_eq!(
        apply(
            "advice-agent-later.json",
            &[work, "--budget", "3000", "--previous", anchor, "--set", "conversation.low_mark=900"]
        ),
        "conversation.tool_results"
    );
    // If the question itself is too long, there is no advice.
    let long = json!([{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "word ".repeat(2_000)}]);
    let long = file("advice-question.json", long.to_string().as_bytes());
    let long = long.to_str().unwrap();
    for budget in ["1500", "2100"] {
        assert_eq!(apply("advice-question-done.json", &[long, "--budget", budget]), "");
    }
}
