use super::{assert_says, read, said, sample, try_read};
use context_window_formats::SessionFile;

#[test]
fn the_spans_of_a_run_are_one_conversation() {
    let session = sample("opentelemetry-spans.json");
    assert_says(
        &session,
        &[
            "system: Short.",
            "system: You help with the boat rental.",
            "user: Which boats are free?",
            "user image: https://example.org/h.",
            "user image: data:image/png;base64,",
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            r#"result call_1: ["Heron","Otter"]"#,
            "result call_2: low",
            "assistant: Heron and Otter are free; Teal is not.",
        ],
        &[],
    );
    assert_eq!(session.tools.len(), 2);
    assert_eq!(session.model.as_deref(), Some("gpt-4o"));
}

#[test]
fn structured_values_of_otlp_are_read() {
    let session = sample("opentelemetry-otlp.json");
    assert_eq!(said(&session), said(&sample("opentelemetry-spans.json")));
    assert_eq!(session.limits.stated.max_completion_tokens, Some(200));
}

#[test]
fn events_of_earlier_conventions_are_read() {
    assert_says(
        &sample("opentelemetry-logs.json"),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: Heron, Otter",
            "result call_2: offline",
            "assistant: Heron and Otter are free; Teal is not.",
        ],
        &[],
    );
}

#[test]
fn a_message_in_many_attributes_is_read() {
    assert_says(
        &sample("opentelemetry-openllmetry.json"),
        &[
            "system: You help.",
            "user: Which?",
            "assistant: I look.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            "result call_1: Heron",
            "assistant: Heron is free.",
        ],
        &[],
    );
}

#[test]
fn a_message_of_openinference_is_read() {
    let text = r#"{"llm.model_name":"gpt-4o","llm.input_messages.0.message.role":"user",
        "llm.input_messages.0.message.contents.0.message_content.type":"text",
        "llm.input_messages.0.message.contents.0.message_content.text":"Is it free?",
        "llm.output_messages.0.message.role":"assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id":"c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name":"free",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments":"{}"}"#;
    assert_eq!(said(&read("span", text)), ["user: Is it free?", "call c1 free {}"]);
}

fn span(start: u64, id: &str, input: &str, output: &str) -> String {
    let message = |role: &str, text: &str| {
        format!(r#"[{{"role":"{role}","parts":[{{"type":"text","content":"{text}"}}]}}]"#)
    };
    let value = |text: String| serde_json::json!({ "stringValue": text });
    let attributes = serde_json::json!([
        { "key": "gen_ai.conversation.id", "value": value(id.to_owned()) },
        { "key": "gen_ai.input.messages", "value": value(message("user", input)) },
        { "key": "gen_ai.output.messages", "value": value(message("assistant", output)) },
    ]);
    serde_json::json!({ "spanId": id, "startTimeUnixNano": start.to_string(), "attributes": attributes })
        .to_string()
}

#[test]
fn several_conversations_are_each_by_itself() {
    let spans =
        [span(1, "a", "Is the Heron free?", "It is."), span(2, "b", "Is the Teal free?", "It is not.")];
    let text = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","));
    let file = SessionFile::new("trace", text.into_bytes()).unwrap();
    assert_eq!(file.len(), 2);
    assert_eq!(said(&file.session(Some("b")).unwrap()), ["user: Is the Teal free?", "assistant: It is not."]);
}

#[test]
fn the_result_of_the_last_call_comes_from_the_span_of_its_tool() {
    let text = r#"[{"gen_ai.operation.name":"chat","gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":"Tide?"}]}],
        "gen_ai.output.messages":[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"tide","arguments":{}}]}]},
        {"gen_ai.operation.name":"execute_tool","gen_ai.tool.call.id":"c1","gen_ai.tool.name":"tide","gen_ai.tool.call.result":"low"}]"#;
    assert_eq!(said(&read("spans", text)), ["user: Tide?", "call c1 tide {}", "result c1: low"]);
}

#[test]
fn content_that_was_not_captured_is_refused() {
    for (text, place) in [
        (r#"{"gen_ai.operation.name":"chat","gen_ai.request.model":"gpt-4o"}"#, "did not capture"),
        (
            r#"[{"role":"user","parts":[{"type":"text","content":"Hi"},{"type":"text"}]}]"#,
            "[0].parts[1]: has no `content`",
        ),
        (
            r#"{"gen_ai.input.mesages":[{"role":"user","parts":[{"type":"text","content":"Is it free?"}]}]}"#,
            "mesages",
        ),
    ] {
        let error = try_read("talk", text).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("read as opentelemetry"), "{error}");
    }
}

#[test]
fn values_nested_too_deep_are_errors() {
    let (open, close) = (r#"{"arrayValue":{"values":["#.repeat(20_000), "]}}".repeat(20_000));
    let text = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"attributes":[{{"key":"gen_ai.prompt","value":{open}{close}}}]}}]}}]}}]}}"#
    );
    assert!(try_read("deep", &text).is_err());
    let (open, close) = (r#"{"type":"non_standard","value":"#.repeat(20_000), "}".repeat(20_000));
    let text = format!(r#"[{{"type":"human","content":[{open}{{"type":"text","text":"Hi"}}{close}]}}]"#);
    assert!(try_read("deep", &text).is_err());
}
