//! Digests that have no room for everything: which statements stay, and in what form (rule C6).

use super::*;
use proptest::prelude::*;

fn compacted(log: &Conversation, most: u64) -> String {
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.digest_max_tokens) = (Some(2), most);
    }));
    let mut log = log.clone();
    log.extend([Message::user("Next."), Message::assistant("Yes.")]);
    manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap().digest().unwrap()
}

fn told(texts: &[&str]) -> Conversation {
    texts.iter().flat_map(|text| [Message::user(*text), Message::assistant("Yes.")]).collect()
}

/// Returns the statements in a digest, without their numbers.
fn statements(digest: &str) -> Vec<&str> {
    let Some((_, rest)) = digest.split_once("The user said (") else { return Vec::new() };
    let kept: usize = rest.split(' ').next().unwrap().parse().unwrap();
    let lines = rest.lines().skip(1).take(kept);
    lines
        .map(|line| line.split_once(" [").filter(|cut| cut.1.ends_with(']')).map_or(line, |cut| cut.0))
        .collect()
}

fn joined_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rules, facts, wishes and open tasks stay before other statements, in the order of time.
#[test]
fn a_digest_keeps_the_statements_with_most_points() {
    let log = told(&[
        "I was wondering about the kettle that we saw last week in town.",
        "Never sell the copper kettle.",
        "And there was something about a lid, I think, or was there not.",
        "The shop's number is 555-0147.",
        "Thanks a lot!",
        "Ada would rather drink green tea.",
        "It rained all day and the shop was as empty as it has ever been.",
        "TODO: order lids.",
    ]);
    insta::assert_snapshot!(compacted(&log, 140), @r"
    The user said (4 of 8):
    Never sell the copper kettle.
    The shop's number is 555-0147.
    Ada would rather drink green tea.
    TODO: order lids.
    ");
}

/// Of two short messages with equal words and another value, only the newer stays.
#[test]
fn a_digest_keeps_the_newest_value() {
    let filler = "Something else about the weather in the town, at some length, again and again.";
    let log = told(&[
        "The port is 8080.",
        filler,
        "The door is 8080.",
        "The port is 9090.",
        "Is the port 7070?",
        "The price of each lid was 12 euros.",
    ]);
    let digest = compacted(&log, 150);
    assert_eq!(
        statements(&digest),
        [
            "The door is 8080.",
            "The port is 9090.",
            "Is the port 7070?",
            "The price of each lid was 12 euros."
        ]
    );
}

/// A long message is divided into its sentences, and none is cut. Code has no sentences.
#[test]
fn a_digest_divides_long_messages() {
    let long = format!(
        "{}Never push to main. Next:\n{}\n\n```\nlet never = 1; // always\n```\n",
        "We talked about it for a while. ".repeat(8),
        "There was more to be seen. ".repeat(8)
    );
    let digest = compacted(&told(&[&long, "And then the lid."]), 110);
    assert_eq!(
        digest,
        "The user said (3 of 4):\nNever push to main.\nThere was more to be seen. [8 times]\nAnd then the lid."
    );
}

/// The parts of a digest with calls: half for statements, then failed and open calls, resources, last words.
#[test]
fn a_digest_with_calls_keeps_failed_ones_longest() {
    let mut log = told(&["Make the kettle whistle.", &"Some words about tea and towns. ".repeat(40)]);
    for step in 0..20 {
        let arguments = format!("{{\"path\":\"src/{step}.rs\"}}");
        log.push(Message::assistant("").with_tool_calls([ToolCall::new(
            format!("c{step}"),
            "read",
            arguments,
        )]));
        let result =
            Message::tool(format!("c{step}"), if step == 3 { "Error: no such file" } else { "text" });
        log.push(result);
    }
    log.push(Message::assistant("It does not whistle."));
    let digest = compacted(&log, 420);
    insta::assert_snapshot!(digest, @r#"
    Earlier: 18 tool calls, 0 of the calls failed.
    The user said (2 of 2):
    Make the kettle whistle.
    Some words about tea and towns. [40 times]
    The last tool calls:
    - read {"path":"src/3.rs"}: failed: Error: no such file
    - read {"path":"src/19.rs"}: done, 4 bytes
    Touched, with the last call on each (the newest 2 of 20):
    - src/18.rs: read
    - src/19.rs: read
    The assistant said last: It does not whistle.
    "#);
    assert!(compacted(&log, 200).contains("failed"));
}

fn text() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "Never",
        "lid",
        "is",
        "8080",
        "please",
        "todo",
        "kettle",
        "agreed",
        "src/lid.rs",
        "avoid",
        "Ada",
        "the",
        "tea.",
        "\n",
        "- list",
        "The user asked:",
        "Earlier: 3 tool calls",
        "茶は8080です。",
        "`code`",
    ]);
    let short = prop::collection::vec(words.clone(), 1..12);
    let long = prop::collection::vec(words, 60..120);
    prop_oneof![4 => short, 1 => long].prop_map(|words| words.join(" "))
}

/// Adds a compaction whose summary is the digest, as a real one does.
fn compact(log: &mut Conversation, most: u64) -> String {
    let manager = bytes(config(|config| {
        (config.compaction.retain.messages, config.compaction.digest_max_tokens) = (Some(2), most);
    }));
    let job = manager.compactor().now(&PlanRequest::like_last(log)).unwrap().unwrap();
    let record = manager.compactor().compact_without_model(log, &job).unwrap();
    assert_eq!(record.kind, CompactionKind::Digest);
    record.summary.unwrap()
}

proptest! {
    /// A digest is within its limit, gives equal messages once and the user's words verbatim.
    #[test]
    fn a_digest_has_the_words_of_the_user(
        texts in prop::collection::vec(text(), 1..25),
        most in 60u64..900,
    ) {
        let log: Conversation =
            texts.iter().flat_map(|text| [Message::user(text.as_str()), Message::assistant("Yes.")]).collect();
        let digest = compacted(&log, most);
        prop_assert!(digest.len() as u64 <= most, "{digest}");
        prop_assert_eq!(&digest, &compacted(&log.clone(), most));
        let said: Vec<String> = texts.iter().map(|text| joined_words(text)).collect();
        let lines = statements(&digest);
        for (at, line) in lines.iter().enumerate() {
            prop_assert!(said.iter().any(|text| text.contains(line)), "{line} in\n{digest}");
            prop_assert!(!lines[..at].contains(line), "{line} twice in\n{digest}");
        }
    }

    /// With room for everything, a digest of digests is the digest of all messages.
    #[test]
    fn digests_of_digests_lose_nothing(
        rounds in prop::collection::vec(prop::collection::vec(text(), 3..6), 2..5),
    ) {
        let (mut log, mut all) = (Conversation::new(), Conversation::new());
        let mut last = String::new();
        for round in &rounds {
            for text in round {
                let reply = format!("Yes.\n\n- list {}", "of teas ".repeat(60));
                let turn = [Message::user(text.as_str()), Message::assistant(reply)];
                log.extend(turn.clone());
                all.extend(turn);
            }
            last = compact(&mut log, 1_000_000);
        }
        prop_assert_eq!(last, compact(&mut all, 1_000_000));
    }

    /// Repeated digests stay within the limit, and the user's rule survives every round.
    #[test]
    fn digests_of_digests_keep_the_best_statement(
        rounds in prop::collection::vec(prop::collection::vec("[a-h ]{20,90}", 3..8), 2..6),
        most in 120u64..600,
    ) {
        let rule = "You must never sell it.";
        let mut log = told(&[rule]);
        for round in &rounds {
            log.extend(round.iter().flat_map(|text| {
                [Message::user(format!("something {text}")), Message::assistant("Yes. ".repeat(60))]
            }));
            let digest = compact(&mut log, most);
            prop_assert!(digest.len() as u64 <= most, "{digest}");
            prop_assert!(digest.contains(rule), "{digest}");
            prop_assert!(!digest.contains("Before that"), "{digest}");
        }
    }
}

/// The numbers of calls, failed calls, resources and statements that were left out go on to the next digest.
#[test]
fn digests_of_digests_count_entries_that_they_leave_out() {
    let mut log = Conversation::new();
    let mut digest = String::new();
    for round in 0..4 {
        for step in 0..10 {
            let id = format!("c{round}x{step}");
            let arguments = format!("{{\"path\":\"src/{round}/{step}.rs\"}}");
            log.push(Message::user(format!("Look at number {step} in folder {round} and at the lid.")));
            log.push(Message::assistant("").with_tool_calls([ToolCall::new(id.as_str(), "read", arguments)]));
            log.push(Message::tool(id.as_str(), if step < 5 { "Error: no such file" } else { "some text" }));
            log.push(Message::assistant("Done. ".repeat(20)));
        }
        digest = compact(&mut log, 600);
    }
    let listed = |mark: &str| digest.lines().filter(|line| line.contains(mark)).count();
    let numbers = |begins: &str| -> Vec<usize> {
        let line = digest.lines().find(|line| line.starts_with(begins)).unwrap();
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    // The last question stays in the prompt, its call does not.
    let counted = numbers("Earlier: ");
    assert_eq!(counted[0] + listed("- read"), 40, "{digest}");
    assert_eq!(counted[1] + listed(": failed: "), 20, "{digest}");
    assert_eq!(numbers("The user said")[1], 39, "{digest}");
    assert_eq!(numbers("Touched")[1], 40, "{digest}");
}
