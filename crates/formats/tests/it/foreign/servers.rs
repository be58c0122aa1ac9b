//! Cohere, Mistral and Ollama.

use super::{assert_says, read, sample};
use serde_json::json;

#[test]
fn a_request_of_cohere_1() {
    let session = sample("cohere-1.json");
    assert_says(
        &session,
        &[
            "system: You rent out boats.",
            "user: Which are free, and when?",
            "assistant: I look it up.",
            r#"call call_0 free_boats {"day":"Friday"}"#,
            r#"call call_1 free_boats {"day":"Sunday"}"#,
            "result call_1: none",
            r#"result call_0: [{"boats":"Heron"},{"boats":"Otter"}]"#,
            "assistant: Two on Friday.",
            "user: Book the Otter.",
        ],
        &[],
    );
    assert_eq!((session.tools.len(), session.rag.len()), (1, 1));
    assert_eq!(&*session.rag[0].text, "title: Rules\nsnippet: Wear a vest.");
    assert_eq!(session.limits.stated.max_completion_tokens, Some(300));
}

#[test]
fn cohere_2_request_keeps_plans_documents_and_reasoning() {
    let call =
        json!({ "id": "c1", "type": "function", "function": { "name": "free_boats", "arguments": "{}" } });
    let document = json!({ "type": "document", "document": { "data": { "boats": "Heron" } } });
    let messages = json!([
        { "role": "user", "content": "Which are free?" },
        { "role": "assistant", "tool_plan": "I look it up.", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c1", "content": [document] },
        { "role": "assistant", "content": [{ "type": "thinking", "thinking": "One." }, { "type": "text", "text": "The Heron." }] },
        { "role": "user", "content": "Book it." }]);
    let body = json!({ "model": "command-a-03-2025", "messages": messages, "documents": ["Wear a vest."] });
    let lines = [
        "user: Which are free?",
        "thought: I look it up.",
        "call c1 free_boats {}",
        r#"result c1 opaque: {"type":"document","document":{"data":{"boats":"Heron"}}}"#,
        "thought: One.",
        "assistant: The Heron.",
        "user: Book it.",
    ];
    let session = read("body", &body.to_string());
    assert_says(&session, &lines, &[]);
    assert_eq!(&*session.rag[0].text, "Wear a vest.");
    assert_says(&read("list", &messages.to_string()), &lines, &[]);
}

#[test]
fn a_history_of_mistral() {
    let session = sample("mistral-conversation.json");
    assert_says(
        &session,
        &[
            "user: Which are free?",
            r#"call D681 free_boats {"day": "Friday"}"#,
            "result D681: Heron",
            "thought: Only one.",
            "assistant: The Heron is free.",
        ],
        &["1 run of a built-in tool of Mistral is left out: a client does not send it"],
    );
    assert_eq!(session.id.as_deref(), Some("conv_1"));
}

#[test]
fn ids_of_mistral_that_are_not_given() {
    let call = |name: &str| json!({ "id": "null", "type": "function", "function": { "name": name, "arguments": "{}" } });
    let messages = json!([
        { "role": "user", "content": "Tide and wind?" },
        { "role": "assistant", "content": "", "tool_calls": [call("tide"), call("wind")] },
        { "role": "tool", "name": "wind", "content": "Five knots.", "tool_call_id": "null" },
        { "role": "tool", "name": "tide", "content": "Two metres." }]);
    let session = read("talk", &messages.to_string());
    let lines = [
        "user: Tide and wind?",
        "call call_1_0 tide {}",
        "call call_1_1 wind {}",
        "result call_1_1: Five knots.",
        "result call_1_0: Two metres.",
    ];
    assert_says(&session, &lines, &[]);
}

#[test]
fn results_of_ollama_answer_by_the_names_of_tools() {
    let call = |name: &str, day: &str| json!({ "function": { "name": name, "arguments": { "day": day } } });
    let messages = json!([
        { "role": "user", "content": "Which are free, and the tide?" },
        { "role": "assistant", "content": "", "tool_calls": [call("free", "Friday"), call("tide", "Friday"), call("free", "Sunday")] },
        { "role": "tool", "tool_name": "tide", "content": "Two metres." },
        { "role": "tool", "tool_name": "free", "content": "The Heron." },
        { "role": "tool", "tool_name": "free", "content": "None." }]);
    let session = read("talk", &json!({ "model": "qwen3:8b", "messages": messages }).to_string());
    let answers: Vec<_> =
        session.log.messages()[2..].iter().map(|message| message.answers().unwrap()).collect();
    assert_eq!(answers, ["call_1_1", "call_1_0", "call_1_2"]);
    assert!(session.ignored().is_empty());
}

#[test]
fn a_request_of_ollama_for_a_completion_asks_its_prompt() {
    let body =
        json!({ "model": "llama3.2", "system": "You rent out boats.", "prompt": "Is the Heron free?" });
    assert_says(
        &read("talk", &body.to_string()),
        &["system: You rent out boats.", "user: Is the Heron free?"],
        &[],
    );
}
