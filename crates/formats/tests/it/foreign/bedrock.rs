//! Amazon Bedrock's Converse.

use super::{assert_says, read, sample, try_read};
use context_window_formats::SessionFile;
use serde_json::{Value, json};

#[test]
fn a_request() {
    let session = sample("bedrock.json");
    assert_says(
        &session,
        &[
            "system: You rent out boats.",
            "user: Is the Heron free?",
            "user image: data:image/png;base64,",
            r#"user opaque: {"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQ="},"title":"rules"}"#,
            r#"user opaque: {"type":"document","source":{"type":"text","media_type":"text/plain","data":"We are four."},"title":"note"}"#,
            "user: On Friday.",
            "thought: Look it up.",
            "thought: ",
            "assistant: I look it up.",
            r#"call t1 free_boats {"day":"Friday"}"#,
            "call t2 tide {}",
            "call t3 photo {}",
            r#"result t1: {"boats":["Heron"]}"#,
            "result t2 (failed): No tide table.",
            "result t3: The Heron:",
            "result t3 image: s3://boats/heron.jpg",
            "user: Go on.",
            "assistant: The Heron is free.",
            "user: Book it.",
        ],
        &[],
    );
    assert_eq!(session.model.as_deref(), Some("us.anthropic.claude-sonnet-4-5-20250929-v1:0"));
    assert_eq!(session.limits.stated.max_completion_tokens, Some(500));
    assert_eq!(session.tools.len(), 1);
    let thoughts: Vec<_> = session.log.messages().iter().flat_map(|message| message.reasoning()).collect();
    assert_eq!((thoughts[0].signature.as_deref(), thoughts[1].redacted), (Some("c2ln"), true));
}

fn messages(text: &str) -> Value {
    json!([{ "role": "user", "content": [{ "text": text }] }])
}

fn logged(id: &str, input: &Value) -> Value {
    json!({ "schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "operation": "Converse", "requestId": id,
        "modelId": "amazon.nova-pro-v1:0", "input": input, "output": { "outputBodyJson": { "stopReason": "end_turn",
        "output": { "message": { "role": "assistant", "content": [{ "text": "It is." }] } }, "usage": { "inputTokens": 9 } } } })
}

#[test]
fn messages_alone() {
    assert_says(&read("talk", &messages("Is the Teal free?").to_string()), &["user: Is the Teal free?"], &[]);
}

#[test]
fn lines_of_the_log_are_sessions_by_their_requests() {
    let body = json!({ "inputBodyJson": { "messages": messages("Is the Teal free?") } });
    let elsewhere = json!({ "inputBodyS3Path": "s3://logs/a2_input.json.gz" });
    let lines = [logged("a1", &body), logged("a2", &elsewhere)].map(|line| line.to_string()).join("\n");
    let file = SessionFile::new("log", lines.into_bytes()).unwrap();
    assert_eq!(file.ids().collect::<Vec<_>>(), ["a1", "a2"]);
    assert_says(&file.session(Some("a1")).unwrap(), &["user: Is the Teal free?", "assistant: It is."], &[]);
    let error = file.session(Some("a2")).unwrap_err().to_string();
    assert!(
        error
            .contains("input: does not contain the body of the request: it is at s3://logs/a2_input.json.gz"),
        "{error}"
    );
}

#[test]
fn a_body_of_anthropic_in_the_log() {
    let body = json!({ "anthropic_version": "bedrock-2023-05-31", "max_tokens": 300, "system": "You rent out boats.",
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Is the Teal free?" }] }] });
    let mut line = logged("a1", &json!({ "inputBodyJson": body }));
    line["output"]["outputBodyJson"] =
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "It is." }] });
    let session = read("log", &line.to_string());
    assert_says(
        &session,
        &["system: You rent out boats.", "user: Is the Teal free?", "assistant: It is."],
        &[],
    );
    assert_eq!(session.limits.stated.max_completion_tokens, Some(300));
}

#[test]
fn unknown_blocks_and_bytes_of_python_are_errors() {
    let with = |block: Value| json!([{ "role": "user", "content": [{ "text": "Look:" }, { "cachePoint": { "type": "default" } }, block] }]);
    for (block, place) in [
        (json!({ "hologram": { "text": "a red boat" } }), "[0].content[2]"),
        (json!({ "image": { "format": "png", "source": { "bytes": "b'\\x89PNG'" } } }), "image.source.bytes"),
        (
            json!({ "toolResult": { "toolUseId": "t", "content": [], "status": "lost" } }),
            "[0].content[2].toolResult",
        ),
    ] {
        let error = try_read("talk", &with(block).to_string()).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}
