use super::{assert_says, read, said, sample, try_read};
use context_window::WireFormat;

#[test]
fn items_are_read() {
    let session = sample("openai-agents.json");
    assert_says(
        &session,
        &[
            "user: Which boats are free on Friday?",
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: ['Heron', 'Otter']",
            "result call_2: An error occurred while running the tool. Please try again.",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
    assert_eq!(session.wire_format, Some(WireFormat::OpenAiResponses));
    assert_eq!(session.log.messages()[1].reasoning()[0].signature.as_deref(), Some("ZW5j"));
}

#[test]
fn items_of_javascript_are_read() {
    assert_says(
        &sample("openai-agents-js.json"),
        &[
            "user: Which boats?",
            "user image: data:image/png;base64,",
            "thought: Check the list.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            r#"result call_1: ["Heron","Otter"]"#,
            "result call_2: An error occurred while running the tool. Please try again.",
            "assistant: Heron and Otter are free.",
        ],
        &[],
    );
}

#[test]
fn the_state_of_a_run_is_read() {
    assert_says(
        &sample("openai-agents-state.json"),
        &[
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            r#"user opaque: {"type":"input_file","file_id":"file_1"}"#,
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: ['Heron', 'Otter']",
            "result call_2: An error occurred while running the tool. Please try again.",
            "assistant: Heron and Otter are free; Teal is not.",
        ],
        &[],
    );
}

#[test]
fn a_call_that_waits_for_an_approval_is_read_once() {
    let call = r#"{"type":"function_call","call_id":"c1","name":"book","arguments":"{}"}"#;
    let state = format!(
        r#"{{"$schemaVersion":"1.9","current_turn":1,"current_agent":{{"name":"Desk"}},"original_input":"Book it.",
            "generated_items":[{{"type":"tool_call_item","raw_item":{call},"agent":{{"name":"Desk"}}}},
            {{"type":"tool_approval_item","raw_item":{call},"agent":{{"name":"Desk"}},"tool_name":"book"}}]}}"#
    );
    assert_eq!(said(&read("state", &state)), ["user: Book it.", "call c1 book {}"]);
}

#[test]
fn unknown_content_is_refused_by_its_place() {
    let hello = r#"{"role":"user","content":"Is it free?"}"#;
    for (item, place) in [
        (
            r#"{"type":"function_call","call_id":"c","name":"tide","argumentss":"{\"day\": \"on Friday\"}"}"#,
            "[1].argumentss",
        ),
        (r#"{"type":"message","role":"assistant","text":"It is free."}"#, "[1].text"),
        (r#"{"type":"hosted_tool_call","name":"web_search","id":"h1"}"#, "[1]"),
    ] {
        let error = try_read("talk", &format!("[{hello},{item}]")).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
}
