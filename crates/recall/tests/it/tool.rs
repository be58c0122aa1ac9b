//! The tool `recall` as a model calls it.

use context_window::{Conversation, Message, PlanRequest, TokenCounter, ToolCall};
use context_window_recall::Recall;
use proptest::prelude::*;

/// Returns a talk with a large result of `lines` lines as `m2`.
fn talk(lines: usize) -> Conversation {
    let text: String = (1..=lines).map(|at| format!("line {at} of the report\n")).collect();
    with_result(&text)
}

fn with_result(text: &str) -> Conversation {
    Conversation::from([
        Message::user("Our contact in Trondheim is Ida."),
        Message::assistant("").with_tool_calls([ToolCall::new("c", "report", "{}")]),
        Message::tool("c", text),
        Message::user("Go on."),
    ])
}

fn answer(log: &Conversation, arguments: &str, most: u64) -> Message {
    let call = ToolCall::new("r", "recall", arguments);
    let counter = TokenCounter::o200k_base();
    let answer = Recall::new().answer(log, &call, &counter, most).unwrap();
    assert_eq!(answer.answers(), Some("r"));
    answer
}

#[test]
fn handle_reads_as_many_lines_as_fit() {
    let log = talk(1_000);
    let read = answer(&log, r#"{"handle": "m2"}"#, 100);
    assert!(!read.is_failed());
    let lines: Vec<&str> = read.text().lines().collect();
    assert!(lines.len() > 8 && lines[1] == "line 1 of the report", "{}", read.text());
    let last = lines.len() - 2;
    assert_eq!(lines[0], format!("[m2: lines 1 to {last} of 1000]"));
    assert_eq!(lines[last], format!("line {last} of the report"));
    assert_eq!(lines[last + 1], format!("[more lines from {} on]", last + 1));

    let read = answer(&log, r#"{"handle": "m2", "first_line": "999", "pattern": "", "query": null}"#, 1_000);
    assert_eq!(
        read.text(),
        "[m2: lines 999 to 1000 of 1000]\nline 999 of the report\nline 1000 of the report\n"
    );
    // Zeros count as unset, and the handle may be copied with more than the id.
    let numbers = r#"{"handle": "[recall:m2#7].", "first_line": 999.0, "last_line": 0, "max_tokens": 0}"#;
    assert_eq!(answer(&log, numbers, 1_000).text(), read.text());
    let read = answer(&log, r#"{"handle": "m0"}"#, 1_000);
    assert_eq!(read.text(), "[m0: lines 1 to 1 of 1]\nOur contact in Trondheim is Ida.\n");
}

#[test]
fn pattern_reads_matching_lines_with_their_numbers() {
    let log = talk(1_000);
    let read = answer(&log, r#"{"handle": "m2", "pattern": "^line \\d*50 "}"#, 2_000);
    assert!(
        read.text().starts_with("[m2: 10 of 10 lines that match]\n50: line 50 of the report\n150: line"),
        "{}",
        read.text()
    );
    let read = answer(&log, r#"{"handle": "m2", "pattern": "report$", "first_line": 500}"#, 100);
    assert!(
        read.text().contains("\n500: line 500 of the report\n")
            && read.text().contains("[more matches from line 5")
    );
    let read = answer(&log, r#"{"handle": "m2", "pattern": "absent"}"#, 100);
    assert!(read.is_failed() && read.text().contains("no line of m2 matches"));
    let read = answer(&log, r#"{"handle": "m2", "pattern": "("}"#, 100);
    assert!(read.is_failed() && read.text().contains("regular expression"), "{}", read.text());
    let read = answer(&with_result("a\n\nb\r\n\r\n"), r#"{"handle": "m2", "pattern": "^$"}"#, 100);
    assert_eq!(read.text(), "[m2: 2 of 2 lines that match]\n2: \n4: \r\n");
    // A compiled pattern has a limit, and a search takes time linear in the text.
    for pattern in ["(a{1000}){1000}", "(x+x+)+y"] {
        let text = format!("{}\n", "x".repeat(100_000));
        let read = answer(
            &with_result(&text),
            &serde_json::json!({"handle": "m2", "pattern": pattern}).to_string(),
            100,
        );
        assert!(read.is_failed());
    }
}

#[test]
fn line_of_any_length_is_read_in_parts() {
    let log = with_result(&"0123456789".repeat(1_000));
    let read = answer(&log, r#"{"handle": "m2", "first_line": 3, "last_line": 3}"#, 5_000);
    assert!(read.text().starts_with("[m2: lines 3 to 3 of 10]\n0123456789"), "{}", read.text());
    assert_eq!(read.text().lines().nth(1).unwrap().len(), 1_000);
    let read = answer(&log, r#"{"handle": "m2", "max_tokens": 80}"#, 5_000);
    assert!(read.text().ends_with("\n[line 1 goes on]\n"), "{}", read.text());
    let read = answer(&log, r#"{"handle": "m2", "pattern": "9$"}"#, 5_000);
    assert!(read.text().starts_with("[m2: 1 of 1 lines that match]\n10: 0123456789"), "{}", read.text());
}

#[test]
fn query_finds_messages_and_parts_of_results() {
    let mut text: String = (0..3_000).map(|at| format!("row {at} has nothing of note\n")).collect();
    text.insert_str(40_000, "the invoice of Sandvik is overdue\n");
    let log = with_result(&text);
    let read = answer(&log, r#"{"query": "invoice Sandvik"}"#, 1_000);
    assert!(read.text().contains("the invoice of Sandvik is overdue"), "{}", read.text());
    // The line before a part of a result names the line from which the handle reads on.
    let header = read.text().lines().nth(1).unwrap();
    let line = header.strip_prefix("[m2 from line ").unwrap().strip_suffix(']').unwrap();
    let read =
        answer(&log, &format!("{{\"handle\": \"m2\", \"first_line\": {line}, \"max_tokens\": 4000}}"), 5_000);
    assert!(read.text().contains("the invoice of Sandvik is overdue"), "{}", read.text());
    // All parts of it have their lines, the first one its handle alone.
    let read = answer(&log, r#"{"query": "nothing of note", "max_tokens": 100000}"#, 100_000);
    let lines: Vec<&str> = read.text().lines().filter(|line| line.starts_with("[m2")).collect();
    assert!(lines.len() > 10 && !lines.contains(&"[m2 from line 0]"), "{lines:?}");
    let read = answer(&log, r#"{"query": "Trondheim"}"#, 1_000);
    assert!(read.text().contains("[m0]\nuser: Our contact in Trondheim is Ida.\n"), "{}", read.text());
    let read = answer(&log, r#"{"query": "zebra"}"#, 1_000);
    assert!(read.is_failed() && read.text() == "no earlier message has these words: try others");
}

#[test]
fn mistakes_are_told_to_the_model() {
    let log = talk(10);
    for (arguments, told) in [
        ("", "no JSON object"),
        ("[1]", "no JSON object"),
        ("{}", "give a query"),
        (r#"{"handle": "m99"}"#, "no message has this handle"),
        (r#"{"handle": "m2", "first_line": 11}"#, "m2 has the lines 1 to 10"),
        (r#"{"handle": "m2", "first_line": true}"#, "first_line is no whole number"),
        (r#"{"handle": "m1"}"#, "m1 has no text"),
        (r#"{"handle": "m2", "first_line": 5, "last_line": 4}"#, "m2 has the lines 1 to 10"),
        (r#"{"handle": "m2", "first_line": -1}"#, "first_line is no whole number"),
        (r#"{"handle": "m2", "start": 3}"#, "there is no parameter start: the parameters are query, handle"),
        (r#"{"handle": ["m2"]}"#, "handle is no text"),
        (r#"{"handle": "m2", "pattern": "("}"#, "this regular expression cannot be used"),
        (r#"{"handle": "m2", "pattern": "(a{1000}){1000}"}"#, "exceeds size limit"),
    ] {
        let read = answer(&log, arguments, 1_000);
        assert!(read.is_failed() && read.text().contains(told), "{arguments}: {}", read.text());
    }
}

#[test]
fn results_of_the_tool_are_not_found_again() {
    let mut log = talk(10);
    for day in 0..40 {
        log.push(Message::user(format!("Write the summary of day {day}.")));
        log.push(Message::assistant(format!("Day {day} was spent on the quarterly report, as planned.")));
    }
    log.push(Message::assistant("").with_tool_calls([ToolCall::new(
        "r1",
        "recall",
        r#"{"query": "Trondheim"}"#,
    )]));
    log.push(Message::tool("r1", "[m0]\nuser: Our contact in Trondheim is Ida.\n"));
    log.push(Message::assistant("It is Ida."));
    log.push(Message::user("Where in Trondheim is Ida?"));
    let mut recall = Recall::new();
    let request = recall.for_request(PlanRequest::new(&log));
    let found: Vec<&str> = request.retrieved().iter().map(|item| item.id().as_str()).collect();
    assert!(found.contains(&"recall:m0") && !found.contains(&"recall:m85"), "{found:?}");
}

#[test]
fn forgotten_and_removed_messages_have_no_handle() {
    let mut log = talk(10);
    let mut recall = Recall::new();
    let read = |recall: &mut Recall, log: &Conversation, handle: &str| {
        let call = ToolCall::new("r", "recall", format!("{{\"handle\": \"{handle}\"}}"));
        recall.answer(log, &call, &TokenCounter::chars_per_4(), 500).unwrap()
    };
    assert!(!read(&mut recall, &log, "m2").is_failed());
    recall.forget(&log, ["m2"]);
    assert!(read(&mut recall, &log, "m2").is_failed());
    assert!(!read(&mut recall, &log, "m3").is_failed());
    log.rewind_before("m3").unwrap();
    assert!(read(&mut recall, &log, "m3").is_failed());
    assert!(!read(&mut recall, &log, "m0").is_failed());
    log.start_fresh();
    assert!(read(&mut recall, &log, "m0").is_failed(), "the user starts without it");
}

proptest! {
    #![proptest_config(context_window_testing::generate::cases(200, 20_000))]

    /// No result has more tokens than its limit, and those of any arguments come without a panic. The lines
    /// that a model reads one after another are the whole text.
    #[test]
    fn lines_read_one_after_another_are_the_text(
        lines in prop::collection::vec("[a-z0-9 äß钥🙂]{0,80}|[xé]{900,2100}", 1..30),
        has_end in any::<bool>(),
        most in 64u64..700,
        wild in ".{0,40}",
    ) {
        let mut text = lines.join("\n");
        if has_end {
            text.push('\n');
        }
        prop_assume!(!text.trim().is_empty());
        let log = with_result(&text);
        let counter = TokenCounter::o200k_base();
        let count = |text: &str| counter.count(text).unwrap().tokens;
        let (mut first, mut read) = (1, String::new());
        for _ in 0..text.len() + 2 {
            let answered = answer(&log, &format!("{{\"handle\": \"m2\", \"first_line\": {first}}}"), most);
            prop_assert!(!answered.is_failed() && count(answered.text()) <= most, "{}", answered.text());
            let (header, body) = answered.text().split_once('\n').unwrap();
            let (range, all) = header.trim_end_matches(']').rsplit_once(" of ").unwrap();
            let last: usize = range.rsplit_once(' ').unwrap().1.parse().unwrap();
            let body = match body.rsplit_once("\n[") {
                Some((body, rest)) if rest.starts_with("more lines from") => format!("{body}\n"),
                Some((body, rest)) if rest.starts_with("line ") => {
                    // A line that does not fit in the limit is not read further.
                    prop_assert!(count(body) > most / 2, "{}", answered.text());
                    return Ok(());
                }
                _ => body.to_owned(),
            };
            read.push_str(&body);
            first = last + 1;
            if last == all.parse::<usize>().unwrap() {
                break;
            }
        }
        // Long lines get breaks where they are split, and the last one gets one.
        prop_assert_eq!(read.replace('\n', ""), text.replace('\n', ""));
        let of_pattern = serde_json::json!({"handle": "m2", "pattern": wild});
        let of_query = serde_json::json!({"query": wild});
        for arguments in [wild, of_pattern.to_string(), of_query.to_string()] {
            let answered = answer(&log, &arguments, most);
            prop_assert!(answered.is_failed() || count(answered.text()) <= most);
        }
    }
}
