use super::{assert_says, read, sample};
use context_window::WireFormat;

#[test]
fn task_is_read_with_the_reasoning_of_any_provider() {
    let session = sample("roo.json");
    assert_says(
        &session,
        &[
            "user: <task>\nPaint the Heron.\n</task>",
            "user: <environment_details>\n# Current Time\n</environment_details>",
            "user image: data:image/png;base64,",
            "thought: Which colour?",
            "assistant: I look.",
            r#"call toolu_1 read_file {"path":"a"}"#,
            r#"call toolu_2 read_file {"path":"b"}"#,
            "result toolu_1: A: blue",
            "result toolu_2 (failed): no file b",
            "thought: deep thought",
            "assistant: Blue.",
            "user: Now the Otter.",
        ],
        &[],
    );
    assert_eq!(session.wire_format, Some(WireFormat::Anthropic));
}

#[test]
fn condensed_messages_are_omitted_except_the_task_before_an_older_summary() {
    assert_says(
        &sample("roo-condensed.json"),
        &[
            "user: FIRST task",
            "thought: Condensing",
            "assistant: SUMMARY one",
            "user: KEPT 1",
            "assistant: KEPT 2",
            "user: KEPT 3",
        ],
        &["2 messages that Roo Code condensed are left out: their summary replaces them"],
    );
}

#[test]
fn the_newest_summary_counts_and_results_without_their_calls_go() {
    assert_says(
        &sample("roo-condensed-twice.json"),
        &["user: ## Conversation Summary\nSECOND SUMMARY", "user: NOW"],
        &[
            "4 messages that Roo Code condensed are left out: their summary replaces them",
            "1 result is left out with its call",
        ],
    );
}

#[test]
fn truncated_messages_are_omitted_while_their_marker_exists() {
    let marked = |marker: &str| {
        format!(
            r#"[{{"role":"user","content":"Paint the Teal.","ts":1}},
            {{"role":"assistant","content":"Red?","ts":2,"truncationParent":"t1"}},
            {{"role":"user","content":"Yes.","ts":3,"truncationParent":"t1"}},{marker}
            {{"role":"assistant","content":"Painted red.","ts":5}},{{"role":"user","content":"Thanks.","ts":6}}]"#
        )
    };
    let marker = r#"{"role":"user","content":"[2 messages hidden]","ts":4,"isTruncationMarker":true,"truncationId":"t1"},"#;
    assert_says(
        &read("task.json", &marked(marker)),
        &["user: Paint the Teal.", "user: [2 messages hidden]", "assistant: Painted red.", "user: Thanks."],
        &["2 messages removed by Roo Code for lack of space are left out"],
    );
    // The user went back to before the cut: the marker is gone, and the messages are active again.
    assert_says(
        &read("task.json", &marked("")),
        &[
            "user: Paint the Teal.",
            "assistant: Red?",
            "user: Yes.",
            "assistant: Painted red.",
            "user: Thanks.",
        ],
        &[],
    );
}

#[test]
fn reasoning_of_openai_keeps_its_encrypted_content() {
    let session = read(
        "task.json",
        r#"[{"role":"user","content":"Is the Heron dry?","ts":1},
        {"type":"reasoning","encrypted_content":"c2VhbA==","id":"rs_1","summary":[{"type":"summary_text","text":"Look."}],"ts":2},
        {"role":"assistant","content":[{"type":"reasoning","summary":[],"encrypted_content":"c2VhbDI=","id":"rs_2"},
            {"type":"text","text":"It is."},{"type":"thoughtSignature","thoughtSignature":"dHM="}],"ts":3},
        {"role":"user","content":"Good.","ts":4}]"#,
    );
    assert_says(
        &session,
        &["user: Is the Heron dry?", "thought: Look.", "thought: ", "assistant: It is.", "user: Good."],
        &[],
    );
    let thought = &session.log.messages()[1].reasoning()[0];
    assert_eq!((thought.id.as_deref(), thought.signature.as_deref()), (Some("rs_1"), Some("c2VhbA==")));
    assert_eq!(thought.wire_format, Some(WireFormat::OpenAiResponses));
}

/// Application logs record times as well, and use the form of OpenAI.
#[test]
fn log_with_times_is_read_unchanged() {
    let log = r#"[{"role":"user","content":[{"type":"text","text":"Is the Teal dry?"}],"ts":1},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
            "function":{"name":"look","arguments":"{}"}}],"ts":2},
        {"role":"tool","tool_call_id":"c","content":"dry","ts":3},{"role":"assistant","content":"It is.","ts":4}]"#;
    let session = read("log.json", log);
    assert_says(
        &session,
        &["user: Is the Teal dry?", "call c look {}", "result c: dry", "assistant: It is."],
        &[],
    );
    assert_eq!(session.wire_format, None);
}
