//! Files of known tools that are not supported.

use super::try_read;

#[track_caller]
fn assert_refused(text: &str, tool: &str, remedy: &str) {
    let error = try_read("file", text).unwrap_err().to_string();
    assert!(error.contains(tool) && error.contains(remedy), "{error}");
}

#[test]
fn chats_of_sillytavern() {
    let message = r#"{"name":"Captain","is_user":false,"mes":"Ahoy there."}"#;
    let header = r#"{"user_name":"Ida","character_name":"Captain","create_date":"d","chat_metadata":{}}"#;
    assert_refused(&format!("{header}\n{message}"), "SillyTavern", "convert each message");
    assert_refused(&format!("{message}\n{message}"), "SillyTavern", "convert each message");
}

#[test]
fn chats_of_open_webui() {
    let messages =
        r#"{"id":"a","parentId":null,"childrenIds":[],"role":"user","content":"Is the Teal free?"}"#;
    let inner = format!(
        r#"{{"title":"t","models":["m"],"history":{{"messages":{{"a":{messages}}},"currentId":"a"}},"messages":[{messages}]}}"#
    );
    let whole = format!(r#"{{"id":"x","user_id":"u","title":"t","chat":{inner},"archived":false}}"#);
    for text in [inner, whole.clone(), format!("[{whole}]")] {
        assert_refused(&text, "Open WebUI", "currentId");
    }
}

#[test]
fn conversations_of_librechat() {
    let message = r#"{"messageId":"a","sender":"User","text":"Is the Teal free?","isCreatedByUser":true}"#;
    for key in ["messages", "messagesTree"] {
        let text = format!(r#"{{"conversationId":"c","exportAt":"d","{key}":[{message}]}}"#);
        assert_refused(&text, "LibreChat", "one branch");
    }
}

#[test]
fn threads_of_zed() {
    assert_refused(
        r#"{"title":"t","messages":[{"User":{"id":"u","content":[{"Text":"Is the Teal free?"}]}}],"version":"0.3.0"}"#,
        "Zed",
        "Markdown",
    );
}

#[test]
fn sessions_of_pi_and_droid() {
    let header = r#"{"type":"session","version":3,"id":"u","timestamp":"t","cwd":"/boats"}"#;
    let message = r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"Is the Teal free?"}}"#;
    assert_refused(&format!("{header}\n{message}"), "pi", "parentId");
    let header = r#"{"type":"session_start","id":"d","title":"t","cwd":"/boats"}"#;
    assert_refused(&format!("{header}\n{message}"), "Droid", "extract `message` from each line");
}

#[test]
fn files_next_to_a_task_and_a_session() {
    for (text, remedy) in [
        (r#"[{"ts":1,"type":"say","say":"text","text":"Paint the Teal."}]"#, "api_conversation_history.json"),
        (
            r#"[{"id":"1","ts":1,"task":"Paint the Teal.","tokensIn":1,"tokensOut":2}]"#,
            "api_conversation_history.json",
        ),
        (r#"{"files_in_context":[],"model_usage":[]}"#, "api_conversation_history.json"),
        (
            r#"[{"sessionId":"s","messageId":0,"type":"user","message":"Is it free?","timestamp":"t"}]"#,
            "/chat save",
        ),
        (r#"{"id":"m","sessionID":"s","role":"user","agent":"build"}"#, "opencode export"),
        (
            r#"{"id":"p","sessionID":"s","messageID":"m","type":"text","text":"Is it free?"}"#,
            "opencode export",
        ),
    ] {
        assert_refused(text, "is ", remedy);
    }
}
