use super::{assert_says, read, sample};

const CHECKPOINT: [&str; 13] = [
    "user: <session_context>\nThis is the Gemini CLI.\n</session_context>",
    "assistant: Got it. Thanks for the context!",
    "user: Which boats are free?",
    "user image: data:image/png;base64,",
    "thought: **Look** it up",
    "assistant: I look.",
    r#"call c1 free_boats {"day":"Friday"}"#,
    "call c2 tide {}",
    "result c1: Heron, Otter",
    r#"result c2: {"error":"away"}"#,
    "assistant: Heron and Otter.",
    "user: Book the Otter.",
    "",
];

/// The conversation in several samples.
const TALK: &[&str] = &[
    "user: Which boats are free?",
    "thought: **Look** it up",
    "assistant: I look.",
    r#"call c1 free_boats {"day":"Friday"}"#,
    "call c2 tide {}",
    "result c1: Heron, Otter",
    r#"result c2: {"error":"away"}"#,
    "assistant: Heron and Otter.",
    "user: Book the Otter.",
];

#[test]
fn a_checkpoint_is_read_as_an_object_and_as_a_list() {
    let lines = &CHECKPOINT[..12];
    let session = sample("gemini-cli.json");
    assert_says(&session, lines, &[]);
    let call = &session.log.messages()[3].tool_calls()[0];
    assert_eq!(call.signature.as_deref(), Some("SIG"));
}

#[test]
fn a_session_is_read_without_items_of_the_screen() {
    let session = sample("gemini-cli-session.json");
    assert_says(
        &session,
        TALK,
        &[
            "1 command or context of the tool is left out, as the tool does when it resumes",
            "3 messages are left out: they are only for the screen: 1 error, 1 info, 1 warning",
        ],
    );
    assert_eq!((session.id.as_deref(), session.model.as_deref()), (Some("s1"), Some("gemini-2.5-pro")));
}

#[test]
fn lines_replace_and_take_back_messages() {
    assert_says(
        &sample("gemini-cli-session.jsonl"),
        TALK,
        &["2 messages were removed by the user or replaced: they are left out"],
    );
}

#[test]
fn contents_of_a_newer_session_hold_the_calls() {
    let session = read(
        "session.json",
        r#"{"sessionId":"s","projectHash":"p","messages":[
        {"id":"a","type":"user","content":[{"text":"/home/ida/boats is my folder."}]},
        {"id":"b","type":"gemini","content":[{"text":"Thinking.","thought":true},{"text":"I look."},
            {"functionCall":{"id":"c1","name":"free_boats","args":{}},"thoughtSignature":"S"}],
            "thoughts":[{"subject":"Thinking.","description":"","timestamp":"t"}],
            "toolCalls":[{"id":"c1","name":"free_boats","args":{},"result":"Heron","status":"success"}]},
        {"id":"c","type":"user","content":"Good."}]}"#,
    );
    assert_says(
        &session,
        &[
            "user: /home/ida/boats is my folder.",
            "thought: Thinking.",
            "assistant: I look.",
            "call c1 free_boats {}",
            "result c1: Heron",
            "user: Good.",
        ],
        &[],
    );
}
