use super::{assert_says, read, said, sample, try_read};
use context_window::WireFormat;

/// The conversation in several samples.
const TALK: &[&str] = &[
    "system: You help with the boat rental.",
    "user: Which boats are free on Friday? This is the harbour.",
    "user image: data:image/png;base64,",
    "thought: Check the list first.",
    "assistant: I look it up.",
    r#"call call_1 free_boats {"day":"Friday"}"#,
    r#"call call_2 tide {"harbour":"North"}"#,
    "result call_1: Heron, Otter",
    "result call_2 (failed): tide table offline",
    "assistant: Heron and Otter are free; Teal is not.",
    "user: Book the Otter, please.",
];

#[test]
fn constructors_are_read_with_each_call_once() {
    let session = sample("langchain.json");
    assert_says(&session, TALK, &[]);
    let thought = &session.log.messages()[2].reasoning()[0];
    assert_eq!(
        (thought.wire_format, thought.signature.as_deref()),
        (Some(WireFormat::Anthropic), Some("c2ln"))
    );
    assert_eq!(session.model.as_deref(), Some("gpt-4o"));
    let ids: Vec<_> =
        session.log.messages().iter().filter_map(|message| Some(message.id()?.to_string())).collect();
    assert_eq!(ids, ["s1", "h1", "a1", "t1", "t2", "a2", "h2"]);
}

#[test]
fn dictionaries_with_data_are_read_one_a_line() {
    assert_says(&sample("langchain-dict.jsonl"), TALK, &[]);
}

#[test]
fn messages_of_javascript_are_read() {
    assert_says(
        &sample("langchain-js.json"),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "thought: Check.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: Heron, Otter",
            "result call_2 (failed): offline",
            "assistant: Heron and Otter are free.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
}

#[test]
fn messages_of_a_graphs_state_are_read() {
    assert_says(&sample("langchain-state.json"), TALK, &[]);
}

#[test]
fn other_keys_of_a_state_are_left_out_with_a_note() {
    let text = r#"{"values":{"messages":[{"type":"human","content":"Is it free?","id":"h1"}],"todos":["Ask the desk"]},
        "next":["agent"],"checkpoint":{"thread_id":"t"},"tasks":[]}"#;
    let note = "`todos` of the state is left out: it is not a message";
    assert_says(&read("state", text), &["user: Is it free?"], &[note]);
    let text = text.replace(r#"["Ask the desk"]"#, r#"[{"role":"user","content":"Ask the desk"}]"#);
    assert!(try_read("state", &text).unwrap_err().to_string().contains("has messages under `todos` too"));
}

#[test]
fn calls_outside_the_content_are_read() {
    assert_says(
        &sample("langchain-old.json"),
        &[
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday? This is the harbour.",
            "user image: data:image/png;base64,",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "result call_1: Heron, Otter",
            "result call_2 (failed): tide table offline",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
}

/// Returns a list of messages in the form of `model_dump()`.
fn flat(messages: &[&str]) -> String {
    format!("[{{\"type\":\"human\",\"content\":\"Is the Heron free?\"}},{}]", messages.join(","))
}

#[test]
fn calls_with_invalid_json_arguments_are_read() {
    let message = r#"{"type":"ai","content":"","tool_calls":[],"invalid_tool_calls":[
        {"name":"tide","args":"{bad","id":"c9","error":"no JSON","type":"invalid_tool_call"}]}"#;
    let session = read("talk", &flat(&[message, r#"{"type":"tool","content":"low","tool_call_id":"c9"}"#]));
    assert_eq!(said(&session), ["user: Is the Heron free?", "call c9 tide {bad", "result c9: low"]);
}

#[test]
fn functions_are_answered_by_their_name() {
    let call = r#"{"type":"ai","content":"","additional_kwargs":{"function_call":{"name":"wind","arguments":"{}"}}}"#;
    let session = read("talk", &flat(&[call, r#"{"type":"function","name":"wind","content":"5 knots"}"#]));
    let id = &session.log.messages()[1].tool_calls()[0].id;
    assert_eq!(session.log.messages()[2].answers(), Some(id.as_str()));
}

#[test]
fn removed_message_is_omitted() {
    let all = [
        r#"{"type":"ai","id":"a1","content":"No idea."}"#,
        r#"{"type":"remove","id":"a1","content":""}"#,
        r#"{"type":"ai","content":"It is free."}"#,
    ];
    let session = read("talk", &flat(&all));
    assert_says(
        &session,
        &["user: Is the Heron free?", "assistant: It is free."],
        &["1 message removed by a RemoveMessage is left out"],
    );
}

#[test]
fn results_without_calls_are_noted() {
    let session = read("talk", &flat(&[r#"{"type":"tool","name":"tide","content":"The tide is low"}"#]));
    assert_eq!(session.ignored(), ["1 tool result has no tool call in the file: providers reject it"]);
}

#[test]
fn unknown_content_is_refused_by_its_place() {
    let cases = [
        (r#"{"type":"chat","role":"critic","content":"A critic says this"}"#, "[1].role"),
        (r#"{"type":"ai","content":[{"type":"hologram","text":"It is free"}]}"#, "[1].content[0]"),
        (r#"{"type":"ai","content":"","tool_calls":[{"name":"tide","id":"c"}]}"#, "[1].tool_calls[0]"),
        (
            r#"{"type":"ai","content":[{"type":"tool_use","id":"c","name":"tide","input":{"a":1}}],
                "tool_calls":[{"name":"tide","id":"c","args":{"a":2}}]}"#,
            "[1].tool_calls[0]: has arguments that differ",
        ),
        (r#"{"lc":1,"type":"not_implemented","id":["x","AIMessage"],"repr":"AIMessage()"}"#, "[1]"),
    ];
    for (message, place) in cases {
        let error = try_read("talk", &flat(&[message])).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("read as langchain"), "{error}");
    }
}
