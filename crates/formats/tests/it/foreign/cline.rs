use super::{assert_says, read, sample};

const NO_RANGE: &str = "the list of a task identifies the messages that Cline no longer sends \
                        (conversationHistoryDeletedRange); this file does not, and all of its messages are \
                        read";

#[test]
fn a_task_is_read() {
    let session = sample("cline.json");
    assert_says(
        &session,
        &[
            "user: <task>\nPaint the Heron.\n</task>",
            "thought: T",
            "assistant: Plan.",
            r#"call toolu_1 read_file {"path":"a"}"#,
            "result toolu_1: blue",
            "assistant: OUT?",
            "result toolu_x: x",
            "user: KEPT",
            "assistant: Painted.",
            "user: Now the Otter.",
        ],
        &[NO_RANGE, "1 tool result has no tool call in the file: providers reject it"],
    );
    assert_eq!(session.model.as_deref(), Some("claude-sonnet-4-5"));
}

#[test]
fn a_newer_session_is_read_with_its_prompt() {
    let session = sample("cline-session.json");
    assert_says(
        &session,
        &[
            "system: You are Cline, a boat painter.",
            "user: Move the icon",
            "user: <file_content path=\"/w/a.tsx\">\nconst a = 1;\n</file_content>",
            "thought: T",
            "assistant: I edit.",
            r#"call toolu_1 editor {"path":"a"}"#,
            r#"call toolu_2 read_files {"files":[]}"#,
            r#"result toolu_1: {"success":true}"#,
            r#"result toolu_2: [{"query":"a:1","result":"1 | x","success":true}]"#,
            "assistant: Done.",
            "user: Smaller?",
            "user image: data:image/png;base64,",
        ],
        &[],
    );
    assert_eq!(session.model.as_deref(), Some("claude-opus-4.8"));
}

#[test]
fn removed_range_of_messages_is_omitted() {
    let session = read(
        "task.json",
        r#"{"historyItem":{"id":"1","task":"Paint","conversationHistoryDeletedRange":[2,3]},"apiConversationHistory":[
        {"role":"user","content":"Paint the Teal."},{"role":"assistant","content":"Red?"},
        {"role":"user","content":"Out."},
        {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"paint","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"wet"},{"type":"text","text":"Kept."}]}]}"#,
    );
    assert_says(
        &session,
        &["user: Paint the Teal.", "assistant: Red?", "user: Kept."],
        &["2 messages removed by Cline for lack of space are left out", "1 result is left out with its call"],
    );
}

#[test]
fn keys_of_its_own_do_not_reach_the_provider() {
    let session = sample("cline.json");
    let written: Vec<String> = session.log.messages().iter().map(|message| format!("{message:?}")).collect();
    assert!(!written.concat().contains("call_id"), "{written:#?}");
}
