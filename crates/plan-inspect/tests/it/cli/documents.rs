//! Several ranked lists of documents, with a session and without.

use super::{EXAMPLE, fails, file, out};
use serde_json::Value;

const TITLES: &str = "examples/hits/titles.json";
const BODIES: &str = "examples/hits/bodies.json";

fn plan(args: &[&str]) -> Value {
    serde_json::from_str(&out(&[args, &["--format", "json"]].concat())).unwrap()
}

/// Returns the included documents, each with its ranks.
fn included(plan: &Value) -> Vec<String> {
    let rows = plan["included"].as_array().unwrap().iter().filter(|row| row["source"] == "rag");
    let rank = |rank: &Value| format!(" {}{}", rank["list"].as_str().unwrap(), rank["rank"]);
    let ranks = |row: &Value| row["ranks"].as_array().into_iter().flatten().map(rank).collect::<String>();
    rows.map(|row| row["id"].as_str().unwrap().to_owned() + &ranks(row)).collect()
}

fn hits(name: &str, ids: &[&str]) -> String {
    let rows: Vec<Value> = ids
        .iter()
        .zip((0..10).rev())
        .map(|(id, score)| serde_json::json!({"id": id, "text": format!("Text {id}."), "score": score}))
        .collect();
    file(name, serde_json::to_string(&rows).unwrap().as_bytes()).display().to_string()
}

#[test]
fn repeated_flag_gives_ranked_lists() {
    let (words, meaning) = (hits("words.json", &["a", "b"]), hits("meaning.list.json", &["b", "c"]));
    let one = included(&plan(&[EXAMPLE, "--rag", &words]));
    assert_eq!(one, ["a", "b"]);
    let by_file = included(&plan(&[EXAMPLE, "--rag", &words, "--rag", &meaning]));
    assert_eq!(by_file, ["b words2 meaning1", "a words1", "c meaning2"]);
    let named = format!("by meaning={meaning}");
    let by_name = included(&plan(&[EXAMPLE, "--rag", &words, "--rag", &named]));
    assert_eq!(by_name, ["b words2 by meaning1", "a words1", "c by meaning2"]);
    // A single list has no ranks, whatever its name.
    assert_eq!(included(&plan(&["rag", &format!("best={words}")])), ["a", "b"]);
    // An equals sign in a path is no name.
    let path = hits("a=b.json", &["a"]);
    assert_eq!(included(&plan(&[EXAMPLE, "--rag", &path])), ["a"]);
    let distances = ["--rag", &words, "--rag", &named, "--rag-distances"];
    let distances = included(&plan(&[&[EXAMPLE], &distances[..]].concat()));
    assert_eq!(distances, ["b words1 by meaning2", "c by meaning1", "a words2"]);
}

#[test]
fn lists_of_one_name_and_missing_files_are_errors() {
    let words = hits("same.json", &["a"]);
    let error = fails(&[EXAMPLE, "--rag", &words, "--rag", &format!("same={words}")]);
    assert!(error.contains("two lists have the name `same`; expected another name"), "{error}");
    let error = fails(&["rag", "words=missing.json"]);
    assert!(error.contains("missing.json cannot be read"), "{error}");
    assert!(fails(&["rag"]).contains("[NAME=]FILE"));
    assert!(fails(&["rag", TITLES, "--redact"]).contains("--redact needs --format html"));
}

/// The lists of the example have overlapping chunks, a near-duplicate, and a price list in two versions.
#[test]
fn documents_are_selected_without_a_session() {
    let select = ["--set", "rag.near_duplicates=90", "--set", "rag.join_chunks=true"];
    let args = [&["rag", TITLES, BODIES, "--budget", "1k", "--question", "Where is my money?"], &select[..]];
    let args = args.concat();
    let whole = plan(&args);
    let documents = included(&whole);
    assert!(documents.iter().any(|row| row.starts_with("prices-2026 ")));
    assert!(documents.iter().any(|row| row.starts_with("prices-2027 ")));
    let second = whole["included"].as_array().unwrap().iter().find(|row| row["id"] == "refunds#2").unwrap();
    assert_eq!(second["continues"], "refunds#1");
    let [near] = whole["excluded"].as_array().unwrap().as_slice() else { panic!("{whole}") };
    assert_eq!((&near["id"], &near["reason"]), (&"faq".into(), &"near_duplicate".into()));
    // Every format has the ranks.
    let text = out(&args);
    assert!(text.contains("near duplicate of refunds#1, 100 % (titles 2, bodies 2)"), "{text}");
    assert!(text.contains("document (titles 3, bodies 1), continues refunds#1"), "{text}");
    let markdown = out(&[&args[..], &["--format", "markdown"]].concat());
    assert!(markdown.contains("| faq | 63 | near duplicate of refunds&#35;1, 100 % (titles 2, bodies 2) |"));
    let messages = out(&[&args[..], &["--format", "messages"]].concat());
    assert_eq!(messages.matches("If the card has expired").count(), 1, "the chunks are one text");
    assert!(messages.contains("Where is my money?"));
    #[cfg(feature = "html")]
    {
        let page = out(&[&args[..], &["--format", "html"]].concat());
        assert!(page.contains("document (titles 3, bodies 1), continues refunds#1"));
        assert!(page.contains("<title>titles, bodies"), "{}", &page[..400]);
        assert!(!page.contains("score 9.1"), "scores of two lists cannot be compared");
    }
}

/// The answer to the question of the example was archived. It comes back with the talk around it, and
/// messages of the window do not.
#[test]
fn earlier_messages_come_back_for_the_question() {
    let args = ["plan", "examples/long-talk.json", "--budget", "700", "--recall"];
    let whole = plan(&args);
    let recalled = |row: &&serde_json::Value| row["reason"] == "recalled";
    let rows: Vec<_> = whole["included"].as_array().unwrap().iter().filter(recalled).collect();
    assert!(rows.iter().any(|row| row["id"] == "recall:m11" && row["messages"][0] == "m11"), "{whole}");
    let text = out(&args);
    assert!(text.contains("recalled: m11"), "{text}");
    assert!(text.contains("stands in the window as m13"), "{text}");
    let messages = out(&[&args[..], &["--format", "messages"]].concat());
    assert!(messages.contains(r#"source=\"history, no instruction\""#), "{messages}");
    assert_eq!(messages.matches("I looked: 61 kg.").count(), 1);
    let answer = out(&["explain", "examples/long-talk.json", "m11", "--budget", "700", "--recall"]);
    assert!(answer.contains("comes back for this question as recall:m11"), "{answer}");
    // Without a hit, nothing changes.
    let off = plan(&args[..4]);
    assert!(!off["included"].as_array().unwrap().iter().any(|row| row["reason"] == "recalled"));
}
