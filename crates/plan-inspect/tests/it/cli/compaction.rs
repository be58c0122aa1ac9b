//! `compact` and `history`: the effect of a compaction, and the history after it.

use super::{fails, file, inspect, out};
use serde_json::Value;

#[test]
fn compactions_are_previewed_and_written_to_a_new_file() {
    let talk = "examples/long-talk.json";
    let before = std::fs::read_to_string(crate::support::root().join(talk)).unwrap();
    let json: Value = serde_json::from_str(&out(&["compact", talk, "--format", "json"])).unwrap();
    assert_eq!(json["archived"][0], serde_json::json!({"id": "m13", "last_id": "m22", "count": 10}));
    assert_eq!(json["kept"], serde_json::json!(["m0", "m1", "m23"]));
    assert!(json["tokens_after"].as_u64() < json["tokens_before"].as_u64());
    let request = json["request"].as_array().unwrap();
    assert!(request.last().unwrap()["content"].as_str().unwrap().contains("Answer with the summary alone"));
    assert!(json["digest"].as_str().unwrap().contains("The user asked: Then order rye for Monday."));
    // Written to a new file, with everything else byte for byte the same.
    let summary = file("summary.txt", "Bread for Friday is planned; 50 kg of rye are ordered.\n".as_bytes());
    let new = file("compacted.json", b"");
    std::fs::remove_file(&new).unwrap();
    let new = new.to_str().unwrap();
    let args = ["compact", talk, "--summary", summary.to_str().unwrap(), "--apply", new];
    out(&args);
    assert_eq!(std::fs::read_to_string(crate::support::root().join(talk)).unwrap(), before);
    let after = std::fs::read_to_string(new).unwrap();
    let end = before.rfind("\n  ]").unwrap();
    assert!(after.starts_with(&before[..end]) && after.trim_end().ends_with(before[end..].trim()), "{after}");
    let plan: Value = serde_json::from_str(&out(&[new, "--format", "json"])).unwrap();
    let ids: Vec<&str> =
        plan["included"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m0", "owner", "summary:2", "m1", "m23"]);
    assert!(fails(&args).contains("exists; expected a new file"));
    let history = out(&["history", new]);
    assert!(history.contains("Context compacted #2: 10 messages archived, ~"), "{history}");
    // A manual range.
    let by_hand = out(&["compact", talk, "--first", "m15", "--last", "m18"]);
    assert!(
        by_hand.contains(
            "archived    5 messages: m14..m18 (5)\nkept        m0, m13, m19..m23 (5), m1 (pinned)\n"
        ),
        "whole exchanges: {by_hand}"
    );
    let archived = fails(&["compact", talk, "--first", "m5"]);
    assert!(archived.contains("message `m5`: is archived by compaction #1; expected an active message"));
    assert!(fails(&["compact", talk, "--first", "m99"]).contains("id `m99` is not in the conversation"));
    let turned = fails(&["compact", talk, "--first", "m20", "--last", "m15"]);
    assert!(turned.contains("message `m20`: is after the end of the range"), "{turned}");
    let small = ["--context-len", "200", "--max-completion", "60"];
    let no_room = out(&[&["compact", "examples/overflow.json"], &small[..]].concat());
    assert!(
        no_room.contains("request     none: it does not fit the context window of gpt-4o-mini"),
        "{no_room}"
    );
    let gemini: Value =
        serde_json::from_str(&out(&["compact", talk, "--wire-format", "gemini", "--format", "json"]))
            .unwrap();
    assert_eq!(gemini["request"][0]["role"], "user");
    assert!(gemini["request"][0]["parts"].is_array(), "in the target's own form");
    let nothing = fails(&["compact", "examples/agent-parallel-tools.json", "--apply", "/tmp/never.json"]);
    assert!(nothing.contains("a tool call is pending; nothing was written"), "{nothing}");
    // A body of another wire format becomes a log.
    let contents = (0..12).map(|at| {
        let role = if at % 2 == 0 { "user" } else { "model" };
        serde_json::json!({"role": role, "parts": [{"text": format!("{at} {}", "word ".repeat(60))}]})
    });
    let body = serde_json::json!({"contents": contents.collect::<Vec<_>>()}).to_string();
    let gemini = file("gemini.json", body.as_bytes());
    let log = file("gemini.log", b"");
    std::fs::remove_file(&log).unwrap();
    let log = log.to_str().unwrap();
    out(&["compact", gemini.to_str().unwrap(), "--apply", log]);
    assert!(out(&["history", log]).contains("Context compacted #1 by a digest: 10 messages archived"));
    assert!(out(&[log]).contains("summary:1"));
}

/// A document would use the tokens that a compaction frees, so the prompt would grow.
#[test]
fn a_compaction_that_leaves_the_prompt_no_smaller_is_refused_with_figures() {
    let chat = ["compact", "examples/support-chat.json", "--budget", "400"];
    let why = "nothing to compact: the prompt has 370 tokens, and would have 389 after a compaction, because hours is added";
    assert_eq!(out(&chat), format!("{why}\n"));
    let by_hand = out(&[&chat[..], &["--first", "m0", "--last", "m5"]].concat());
    assert_eq!(by_hand, format!("{why}\n"));
    let json: Value = serde_json::from_str(&out(&[&chat[..], &["--format", "json"]].concat())).unwrap();
    assert!(json["why"].as_str().unwrap().starts_with("the prompt has 370 tokens"), "{json}");
    let path = file("never.json", b"");
    std::fs::remove_file(&path).unwrap();
    let said = fails(&[&chat[..], &["--apply", path.to_str().unwrap()]].concat());
    assert!(said.contains(why) && said.contains("nothing was written") && !path.exists(), "{said}");
    // With room for every document the prompt shrinks. The compaction was requested, although none is due.
    let roomy = out(&["compact", "examples/support-chat.json"]);
    assert!(roomy.starts_with("compaction  requested; not automatic: fewer active messages"), "{roomy}");
    assert!(roomy.contains("prompt      490 before, 476 after"), "{roomy}");
}

#[test]
fn the_history_is_whole_in_every_form() {
    let talk = "examples/long-talk.json";
    let json: Value = serde_json::from_str(&out(&["history", talk, "--format", "json"])).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 25);
    assert_eq!(rows[1]["archived"], true);
    assert_eq!(rows[13]["kind"], "compaction");
    assert_eq!(rows[14]["archived"], false);
    let markdown = out(&["history", talk, "--format", "markdown"]);
    assert_eq!(markdown.matches("\n### ").count() + usize::from(markdown.starts_with("### ")), 24);
    assert!(markdown.contains("**Context compacted #1: 12 messages archived, ~166 tokens freed**"));
    assert!(markdown.contains("> Error: the scale of shelf 4 does not answer"));
    let colour = out(&["history", talk, "--color", "always", "--expand"]);
    assert!(colour.contains("\u{1b}[2m  m1 ") && colour.contains("The bakery bakes on Monday"), "{colour}");
    let narrow = out(&["history", talk, "--width", "50"]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    // An incomplete compaction keeps the messages, with a note.
    let broken = std::fs::read_to_string(crate::support::root().join(talk))
        .unwrap()
        .replace("\"summary\": \"The", "\"sumary\": \"The");
    let broken = file("torn.json", broken.as_bytes());
    let output = inspect(&["history", broken.to_str().unwrap()]).assert().success();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("compaction 1 is not used: it has no summary"), "{said}");
    assert!(!String::from_utf8(output.get_output().stdout.clone()).unwrap().contains("- m1"));
}
