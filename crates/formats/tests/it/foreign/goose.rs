use super::{assert_says, read, sample, try_read};

#[test]
fn an_export_is_read_without_items_of_the_screen() {
    let session = sample("goose.json");
    assert_says(
        &session,
        &[
            "user: Here is a photo of the Heron. Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "thought: Look the list up.",
            "assistant: I look it up.",
            r#"call call_1 boats__free {"day":"Friday"}"#,
            r#"call call_2 boats__tide {"place":"Quay"}"#,
            "result call_1: Heron, Otter",
            "result call_2 (failed): -32603: tide server is away",
            "assistant: Heron and Otter are free.",
            "user: Book the Otter, please.",
        ],
        &["1 part is only for the user: it is left out"],
    );
    assert_eq!(session.id.as_deref(), Some("20261101_1"));
    assert_eq!(session.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(session.limits.stated.model_context_len, Some(200_000));
}

#[test]
fn older_lines_are_read_behind_their_header() {
    assert_says(
        &sample("goose.jsonl"),
        &[
            "user: Which boats are free on Friday?",
            "assistant: I look it up.",
            r#"call call_1 boats__free {"day":"Friday"}"#,
            "result call_1: Heron, Otter",
            "result call_1: Heron\nOtter",
            "assistant: Heron and Otter are free.",
            "user: Book the Otter, please.",
        ],
        &[
            "1 call could not be read by goose: it and its result are left out",
            "2 contents are not sent to the model and are left out: 1 contextLengthExceeded, 1 summarizationRequested",
        ],
    );
}

#[test]
fn compacted_messages_are_omitted() {
    let message = |id: &str, text: &str, visible: bool| {
        format!(
            r#"{{"id":"{id}","role":"user","created":1,"content":[{{"type":"text","text":"{text}"}}],"metadata":{{"userVisible":true,"agentVisible":{visible}}}}}"#
        )
    };
    let messages = [
        message("a", "Paint the Heron.", false),
        message("b", "Summary: the Heron is blue.", true),
        message("c", "Now the Otter.", true),
    ];
    let session = read("goose.json", &format!(r#"{{"messages":[{}]}}"#, messages.join(",")));
    assert_says(
        &session,
        &["user: Summary: the Heron is blue.", "user: Now the Otter."],
        &["1 message is hidden from the model (agentVisible: false): it is left out"],
    );
}

#[test]
fn content_that_is_not_known_is_an_error_with_its_place() {
    let text = r#"[{"role":"user","created":1,"content":[{"type":"smellResponse","id":"a"}],
        "metadata":{"agentVisible":true}}]"#;
    let error = try_read("goose.json", text).unwrap_err().to_string();
    assert!(error.contains("[0].content[0].type: `smellResponse` is not known content of goose"), "{error}");
}

#[test]
fn text_of_a_message_only_for_the_user_is_left_out_with_a_note() {
    let part = |text: &str, audience: &str| {
        format!(r#"{{"type":"text","text":"{text}","annotations":{{"audience":["{audience}"]}}}}"#)
    };
    let (shown, sent) = (part("Saved as draft.", "user"), part("Paint the Heron.", "assistant"));
    let text = format!(
        r#"[{{"role":"user","created":1,"content":[{shown},{sent}],"metadata":{{"agentVisible":true}}}}]"#
    );
    assert_says(
        &read("goose.json", &text),
        &["user: Paint the Heron."],
        &["1 part is only for the user: it is left out"],
    );
}
