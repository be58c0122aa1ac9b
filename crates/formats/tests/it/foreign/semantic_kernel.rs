use super::{assert_says, read, said, sample};

#[test]
fn a_history_of_python_is_read() {
    assert_says(
        &sample("semantic-kernel.json"),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "user image: https://example.org/h.",
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 boats-free_boats {"day": "Friday"}"#,
            r#"call call_2 harbour-tide {"harbour":"North"}"#,
            "result call_1: Heron, Otter",
            "result call_2 (failed): Exception: offline",
            "assistant: Heron and Otter are free; Teal is not.",
            r#"user opaque: {"type":"file","file":{"file_id":"file_1"}}"#,
            r#"user opaque: {"type":"input_audio","input_audio":{"data":"YWJj","format":"wav"}}"#,
            r#"user opaque: {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERg=="}}"#,
            "user: See these.",
            "assistant: Seen.",
            "user: Book the Otter, please.",
        ],
        &["annotations, which quote files, are left out"],
    );
}

#[test]
fn a_history_of_csharp_is_read() {
    assert_says(
        &sample("semantic-kernel-csharp.json"),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "user image: https://example.org/h.",
            r#"user opaque: {"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERg=="}}"#,
            r#"user opaque: {"type":"input_audio","input_audio":{"data":"YWJj","format":"wav"}}"#,
            r#"user opaque: {"type":"file","file":{"file_id":"file_1"}}"#,
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 boats-free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            r#"result call_1: ["Heron","Otter"]"#,
            "result call_2: Error: Exception while invoking function. offline",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
}

#[test]
fn contents_and_calls_of_early_versions_are_read() {
    let text = r#"[{"Role":{"Label":"user"},"Content":"Is the Heron free?","Items":null},
        {"Role":{"Label":"assistant"},"Content":"","Items":[],"Metadata":{"ChatResponseMessage.FunctionToolCalls":
            [{"Id":"c1","Name":"boats-free","Arguments":"{}"}]}},
        {"Role":{"Label":"tool"},"Content":"It is free.","Metadata":{"ChatCompletionsToolCall.Id":"c1"}}]"#;
    let expected = ["user: Is the Heron free?", "call c1 boats-free {}", "result c1: It is free."];
    assert_eq!(said(&read("talk", text)), expected);
}

#[test]
fn several_results_in_one_message_answer_their_calls() {
    let text = r#"{"messages":[
        {"metadata":{},"content_type":"message","role":"user","items":[{"content_type":"text","text":"Tide and wind?"}]},
        {"metadata":{},"content_type":"message","role":"assistant","items":[
            {"content_type":"function_call","id":"c1","name":"sea-tide","function_name":"tide","plugin_name":"sea","arguments":"{}"},
            {"content_type":"function_call","id":"c2","function_name":"wind"}]},
        {"metadata":{},"content_type":"message","role":"tool","items":[
            {"content_type":"function_result","id":"c2","result":"5 knots","function_name":"wind"},
            {"content_type":"function_result","id":"c1","result":"low","name":"sea-tide"}]}]}"#;
    let expected = [
        "user: Tide and wind?",
        "call c1 sea-tide {}",
        "call c2 wind {}",
        "result c2: 5 knots",
        "result c1: low",
    ];
    assert_eq!(said(&read("talk", text)), expected);
}
