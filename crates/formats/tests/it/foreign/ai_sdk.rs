//! The AI SDK of Vercel.

use super::{assert_says, read, sample, try_read};
use context_window::WireFormat;
use serde_json::json;

#[test]
fn messages_of_the_user_interface() {
    let session = sample("ai-sdk-ui.json");
    assert_says(
        &session,
        &[
            "system: You rent out boats.",
            "user: Is the Heron free on Friday?",
            "user image: data:image/png;base64,",
            r#"user opaque: {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0xLjQ=","filename":"rules.pdf"}}"#,
            "user: We are four.",
            "thought: Look at the list and the tide.",
            "assistant: I look it up.",
            r#"call c1 free_boats {"day":"Friday"}"#,
            r#"call c2 tide {"day":"Friday"}"#,
            r#"call c3 web_search {"query":"harbour"}"#,
            r#"result c1: {"boats":["Heron","Otter"]}"#,
            "result c2 (failed): The tide table is gone.",
            "result c3: Open until eight.",
            "assistant: The Heron is free.",
            r#"call c4 book {"boat":"Heron"}"#,
            r#"call c5 book {"boat":"Otter"}"#,
            r#"call c6 book {"boat":"#,
            r#"call c8 book {"boat":"Teal"}"#,
            "result c4 (failed): Too dear.",
            "result c5 (failed): Tool call execution denied.",
            "result c6 (failed): The input is not JSON.",
            "user: Then the Teal, please.",
        ],
        &[
            "1 source is left out: it is not sent to a model",
            "1 data part is left out: the SDK does not send it to a model",
            "1 call is left out: its input is incomplete",
        ],
    );
    let thought = session.log.messages().iter().flat_map(|message| message.reasoning()).next().unwrap();
    assert_eq!(
        (thought.wire_format, thought.signature.as_deref()),
        (Some(WireFormat::Anthropic), Some("c2ln"))
    );
}

#[test]
fn messages_for_models() {
    let session = sample("ai-sdk-model.json");
    assert_says(
        &session,
        &[
            "system: You rent out boats.",
            "user: Which boat is this?",
            "user image: data:image/png;base64,",
            "user image: data:image/png;base64,",
            "user image: https://boats.example/",
            "user image: https://boats.example/",
            r#"user opaque: {"type":"file","file":{"file_id":"file-7"}}"#,
            "thought: It has a red sail.",
            "assistant: I ask.",
            r#"call c1 find {"sail":"red"}"#,
            "call c2 tide {}",
            r#"call c3 book {"boat":"Heron"}"#,
            "call c4 photo {}",
            "call c5 cancel {}",
            r#"result c1: {"boat":"Heron"}"#,
            "result c2 (failed): No tide table.",
            "result c3 (failed): Not today.",
            "result c4: The photo:",
            "result c4 image: data:image/png;base64,",
            "result c4 image: data:image/png;base64,",
            "result c5 (failed): Keep it.",
            r#"call s1 web_search {"query":"Heron"}"#,
            r#"result s1: [{"title":"Heron"}]"#,
            "assistant: It is the Heron.",
            "user: Thank you. And the Otter?",
        ],
        &["2 approvals are left out: they are not sent to a model"],
    );
    assert_eq!(session.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(session.limits.stated.max_completion_tokens, Some(400));
}

#[test]
fn messages_of_version_4() {
    let session = sample("ai-sdk-4.json");
    assert_says(
        &session,
        &[
            "user: Which are free?",
            "user image: data:image/png;base64,",
            "user: We are four.",
            "thought: The list.",
            "thought: ",
            "assistant: I look it up.",
            r#"call c1 free_boats {"day":"Friday"}"#,
            r#"result c1: ["Heron","Otter"]"#,
            "assistant: Heron and Otter are free.",
            "user: Ask me before you book the Otter.",
            "assistant: May I book it?",
            r#"call c2 confirm {"boat":"Otter"}"#,
        ],
        &["1 data part is left out: the SDK does not send it to a model"],
    );
    assert_eq!(session.id.as_deref(), Some("chat-4"));
}

#[test]
fn parts_are_read_if_content_is_empty() {
    let message = |role: &str, text: &str| json!({ "role": role, "content": "", "parts": [{ "type": "text", "text": text }] });
    let messages = json!([
        message("user", "Is the Teal free?"),
        message("assistant", "It is."),
        message("user", "Book it.")
    ]);
    let session = read("talk", &json!({ "messages": messages }).to_string());
    assert_says(&session, &["user: Is the Teal free?", "assistant: It is.", "user: Book it."], &[]);
}

#[test]
fn content_missing_from_the_parts_is_an_error() {
    let message = json!({ "role": "user", "content": "Book the Heron too.", "parts": [{ "type": "text", "text": "Book the Teal." }] });
    let error = try_read("talk", &json!([message]).to_string()).unwrap_err().to_string();
    assert!(error.contains("[0].content: contains text that is in no part of the message"), "{error}");
}

#[test]
fn unknown_parts_states_and_outputs_are_errors() {
    let ui = |part: serde_json::Value| json!([{ "role": "user", "parts": [{ "type": "text", "text": "Hello" }] }, { "role": "assistant", "parts": [part] }]);
    let call = |state: &str| json!({ "type": "tool-book", "toolCallId": "c1", "state": state, "input": {} });
    let model = |output: serde_json::Value| {
        let call = json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "book", "input": {} });
        let result =
            json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "book", "output": output });
        json!([{ "role": "assistant", "content": [call] }, { "role": "tool", "content": [result] }])
    };
    for (file, place) in [
        (ui(json!({ "type": "hologram", "text": "Look at this boat." })), "[1].parts[0].type"),
        (ui(call("half-done")), "[1].parts[0].state"),
        (ui(json!({ "type": "custom", "kind": "openai.compaction" })), "[1].parts[0].type"),
        (model(json!({ "type": "riddle", "value": "Two boats." })), "[1].content[0].output.type"),
    ] {
        let error = try_read("talk", &file.to_string()).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn the_steps_of_a_result_are_refused_with_advice() {
    let content = json!([{ "type": "text", "text": "It is free." }]);
    let messages = json!([{ "role": "assistant", "content": content }]);
    let step = json!({ "content": content, "finishReason": "stop", "response": { "messages": messages } });
    let error = try_read("steps", &json!([step]).to_string()).unwrap_err().to_string();
    assert!(error.contains("are the steps of a result, without the request"), "{error}");
}

#[test]
fn a_list_of_chats_holds_each_by_its_id() {
    let chat = |id: &str, text: &str| json!({ "id": id, "messages": [{ "id": "u", "role": "user", "parts": [{ "type": "text", "text": text }] }] });
    let text = json!([chat("one", "Is the Heron free?"), chat("two", "Is the Teal free?")]).to_string();
    let file = context_window_formats::SessionFile::new("chats", text.into_bytes()).unwrap();
    assert_eq!(file.ids().collect::<Vec<_>>(), ["one", "two"]);
    assert_says(&file.session(Some("two")).unwrap(), &["user: Is the Teal free?"], &[]);
}
