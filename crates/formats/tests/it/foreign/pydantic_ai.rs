use super::{assert_says, read, said, sample, try_read};
use context_window::WireFormat;

#[test]
fn requests_and_responses_are_read() {
    let session = sample("pydantic-ai.json");
    assert_says(
        &session,
        &[
            "system: Answer in short.",
            "system: You help with the boat rental.",
            "user: Which boats are free on Friday?",
            "user image: data:image/png;base64,",
            "user image: https://example.org/h.",
            r#"user opaque: {"type":"document","source":{"type":"url","url":"https://example.org/r.pdf"}}"#,
            "user: Be quick.",
            "thought: Check the list first.",
            "assistant: I look it up.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            r#"call call_2 tide {"harbour":"North"}"#,
            "call call_3 wind {}",
            r#"result call_1: ["Heron","Otter"]"#,
            "result call_2 (failed): offline",
            "result call_3 (failed): Give a place.",
            "assistant: Heron and Otter are free; Teal is not.",
            "user: Book the Otter, please.",
        ],
        &[],
    );
    let thought = &session.log.messages()[2].reasoning()[0];
    assert_eq!(
        (thought.wire_format, thought.signature.as_deref()),
        (Some(WireFormat::Anthropic), Some("c2ln"))
    );
    assert_eq!(session.model.as_deref(), Some("gpt-4o"));
}

fn request(parts: &str, instructions: &str) -> String {
    format!(r#"{{"parts":[{parts}],"instructions":{instructions},"kind":"request"}}"#)
}

const HELLO: &str = r#"{"content":"Is the Heron free?","part_kind":"user-prompt"}"#;

#[test]
fn the_last_instructions_hold() {
    let reply = r#"{"parts":[{"content":"It is.","part_kind":"text"}],"kind":"response"}"#;
    let (first, last) = (request(HELLO, r#""Be long.""#), request(HELLO, r#""Be short.""#));
    assert_says(
        &read("talk", &format!("[{first},{reply},{last}]")),
        &["system: Be short.", "user: Is the Heron free?", "assistant: It is.", "user: Is the Heron free?"],
        &["instructions of earlier requests, which the last one replaces, are left out"],
    );
}

#[test]
fn a_prompt_for_one_request_is_in_that_alone() {
    let once = r#"{"content":"3 tries are left.","scope":"request","part_kind":"system-prompt"}"#;
    let reply = r#"{"parts":[{"content":"It is.","part_kind":"text"}],"kind":"response"}"#;
    let asked = request(&format!("{once},{HELLO}"), "null");
    assert_says(
        &read("talk", &format!("[{asked},{reply},{asked}]")),
        &[
            "user: Is the Heron free?",
            "assistant: It is.",
            "system: 3 tries are left.",
            "user: Is the Heron free?",
        ],
        &["system prompts of single earlier requests are left out"],
    );
}

#[test]
fn a_providers_summary_archives_earlier_messages() {
    let reply = r#"{"parts":[{"content":"A talk about boats.","provider_name":"anthropic","part_kind":"compaction"},
        {"content":"Go on.","part_kind":"text"}],"kind":"response"}"#;
    let session = read("talk", &format!("[{},{reply},{}]", request(HELLO, "null"), request(HELLO, "null")));
    let record = session.log.compactions().next().unwrap();
    assert_eq!((record.messages_archived, record.summary.as_deref()), (1, Some("A talk about boats.")));
    assert!(session.ignored().is_empty(), "{:?}", session.ignored());
}

#[test]
fn reports_of_failures_to_the_model_are_read() {
    let parts = r#"{"content":"Return a text.","retry":{"cause":"model_retry"},"part_kind":"retry-feedback"},
        {"content":"Try again.","tool_name":null,"tool_call_id":"x","part_kind":"retry-prompt"}"#;
    let expected = ["user: Return a text.", "user: Try again."];
    assert_eq!(said(&read("talk", &format!("[{}]", request(parts, "null")))), expected);
}

#[test]
fn a_tool_of_the_provider_is_a_call_with_its_result() {
    let reply = r#"{"parts":[{"tool_name":"web_search","args":{"query":"boats"},"tool_call_id":"s1","part_kind":"builtin-tool-call"},
        {"tool_name":"web_search","content":[{"title":"Boats"}],"tool_call_id":"s1","part_kind":"builtin-tool-return"},
        {"content":"Found.","part_kind":"text"}],"kind":"response"}"#;
    let expected = [
        "user: Is the Heron free?",
        r#"call s1 web_search {"query":"boats"}"#,
        r#"result s1: [{"title":"Boats"}]"#,
        "assistant: Found.",
    ];
    assert_eq!(said(&read("talk", &format!("[{},{reply}]", request(HELLO, "null")))), expected);
}

#[test]
fn unknown_content_is_refused_by_its_place() {
    for (part, place) in [
        (r#"{"content":"Is it free?","part_kind":"dream"}"#, "[0].parts[0].part_kind"),
        (
            r#"{"content":[{"url":"https://example.org/a.mp3","kind":"audio-url"}],"part_kind":"user-prompt"}"#,
            "content[0]",
        ),
        (
            r#"{"tool_name":"t","content":"gone","tool_call_id":"c","outcome":"lost","part_kind":"tool-return"}"#,
            "parts[0]",
        ),
    ] {
        let error = try_read("talk", &format!("[{}]", request(part, "null"))).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("read as pydantic-ai"), "{error}");
    }
}
