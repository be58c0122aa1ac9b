//! Functions for an application with its own messages: messages in a provider's form, prompts item by item,
//! counts alone.

use crate::support::{data, generate};
use context_window::{
    Config, ContextWindowManager, Conversation, Message, Model, Part, PlanRequest, TokenCounter, Tool,
    ToolCall, WireFormat, render,
};
use context_window_formats::{ErrorKind, Session, SessionFile, push_json, tools_from_json};
use proptest::prelude::*;
use serde_json::{Value, json};

fn manager() -> ContextWindowManager {
    ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default()).unwrap()
}

/// Returns the conversation of a session file with these messages.
fn from_file(messages: &Value) -> Conversation {
    Session::from_json(&json!({ "messages": messages }).to_string()).unwrap().log
}

#[test]
fn pushed_messages_equal_those_of_a_file() {
    let results = json!([
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {"at": 2}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "one"},
            {"type": "tool_result", "tool_use_id": "b", "content": "two"},
            {"type": "text", "text": "Well?"},
        ]},
        {"role": "assistant", "content": "Both.", "pinned": true, "ttl": {"limited": 3}},
        {"role": "user", "content": "Half \u{1f600}", "id": "last"},
    ]);
    let whole = from_file(&results);
    let mut pushed = Conversation::new();
    let ids = push_json(&mut pushed, &results.to_string(), WireFormat::Anthropic).unwrap();
    assert_eq!(pushed, whole);
    assert_eq!(ids, ["m0", "m1", "m2.0", "m2.1", "m2", "m3", "last"]);
    assert!(pushed.is_pinned("m3"));
    // Pushed one by one, each result is matched by its position in the log.
    let mut one_by_one = Conversation::new();
    for message in results.as_array().unwrap() {
        push_json(&mut one_by_one, &message.to_string(), WireFormat::Anthropic).unwrap();
    }
    assert_eq!(one_by_one.messages().len(), whole.messages().len());
    let texts =
        |log: &Conversation| log.messages().iter().map(|one| one.text().to_owned()).collect::<Vec<_>>();
    assert_eq!(texts(&one_by_one), texts(&whole));
    assert_eq!(one_by_one.position_of_message("m5"), Some(5));
    assert_eq!(one_by_one.position_of_message("m7"), None);
}

#[test]
fn messages_of_other_tools_are_those_of_their_files() {
    let ui = json!([
        {"id": "q", "role": "user", "parts": [{"type": "text", "text": "How warm is it?"}]},
        {"id": "a", "role": "assistant", "parts": [
            {"type": "step-start"},
            {"type": "tool-weather", "toolCallId": "c", "state": "output-available", "input": {"at": 1}, "output": {"warm": 2}},
            {"type": "step-start"},
            {"type": "text", "text": "Two degrees."},
        ]},
    ]);
    let model = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "How warm is it?"}]},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "weather", "input": {"at": 1}}]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "c", "toolName": "weather", "output": {"type": "json", "value": {"warm": 2}}},
        ]},
        {"role": "assistant", "content": [{"type": "text", "text": "Two degrees."}]},
    ]);
    for messages in [ui, model] {
        let mut pushed = Conversation::new();
        let ids = push_json(&mut pushed, &messages.to_string(), WireFormat::OpenAiChat).unwrap();
        let whole =
            SessionFile::new("m.json", messages.to_string().into_bytes()).unwrap().session(None).unwrap().log;
        assert_eq!(pushed, whole);
        assert_eq!(ids.len(), whole.messages().len());
        assert!(whole.messages().iter().any(|one| one.answers() == Some("c")), "{whole:?}");
        // A conversation that goes on takes the form of a provider alone.
        let mut log = Conversation::from([Message::user("Hello")]);
        let before = log.clone();
        let error = push_json(&mut log, &messages.to_string(), WireFormat::OpenAiChat).unwrap_err();
        assert!(error.to_string().contains("which only an empty conversation takes"), "{error}");
        assert_eq!(log, before);
        let plan = manager().build_plan(&PlanRequest::new(&pushed)).unwrap();
        assert_eq!(plan.excluded, []);
    }
    let wrong =
        json!([{"role": "user", "parts": [{"type": "text", "text": "Hi"}, {"type": "text", "txt": "lost"}]}]);
    let mut log = Conversation::new();
    assert!(push_json(&mut log, &wrong.to_string(), WireFormat::OpenAiChat).is_err());
    assert_eq!(log, Conversation::new());
}

#[test]
fn items_of_responses_and_contents_of_gemini_are_read_too() {
    let mut log = Conversation::new();
    let items = json!([
        {"type": "message", "role": "user", "content": "Look it up."},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {"type": "function_call_output", "call_id": "b", "output": "two"},
    ]);
    let ids = push_json(&mut log, &items.to_string(), WireFormat::OpenAiResponses).unwrap();
    assert_eq!(ids, ["m0", "m1", "m2", "m3"]);
    assert_eq!(log.messages()[1].tool_calls().len(), 2);
    let contents = json!({"role": "user", "parts": [{"text": "And now?"}]});
    assert_eq!(push_json(&mut log, &contents.to_string(), WireFormat::Gemini).unwrap(), ["m4"]);
    assert_eq!(log.messages()[4].parts(), [Part::Text("And now?".into())]);
}

#[test]
fn a_push_that_fails_appends_nothing() {
    let mut log = Conversation::from([Message::user("Hello").with_id("a"), Message::assistant("Hello")]);
    let before = log.clone();
    let compaction =
        json!({"role": "user", "content": [{"type": "context_compaction", "summary": "They talked."}]});
    for (wrong, said) in [
        ("[".to_owned(), "messages:1"),
        ("null".into(), "messages:1"),
        ("3".into(), "messages:1"),
        (r#"[{"role": "user", "content": "x"}, {"role": "bob"}]"#.into(), "unknown variant `bob`"),
        (r#"[{"role": "user", "content": "x"}, {"role": "user", "id": "a", "content": "y"}]"#.into(), "`a`"),
        (r#"[{"role": "user", "id": "m1", "content": "y"}]"#.into(), "`m1`"),
        (compaction.to_string(), "contain a compaction"),
        (r#"[{"role": "user", "id": "b", "content": "y"}, {"role": "user", "id": "b"}]"#.into(), "`b`"),
    ] {
        let error = push_json(&mut log, &wrong, WireFormat::OpenAiChat).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{wrong}");
        assert!(error.to_string().contains(said), "{wrong}: {error}");
        assert_eq!(log, before, "{wrong}");
    }
    for wrong in ["{", "[3]", r#"[{"type": "function", "description": "no name"}]"#] {
        let error = tools_from_json(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.to_string().starts_with("tools:1"), "{error}");
    }
}

/// Pushing the messages of a real session gives the conversation of its file.
#[test]
fn pushed_real_sessions_equal_the_files() {
    let (mut compared, mut singly) = (0, 0);
    for text in data::texts(&["conv_"]) {
        for line in text.lines().filter(|line| !line.is_empty()).take(40) {
            let Ok(session) = serde_json::from_str::<Value>(line) else { continue };
            let Some(messages) = session.get("messages").filter(|messages| messages.is_array()) else {
                continue;
            };
            let whole = from_file(messages);
            let mut pushed = Conversation::new();
            push_json(&mut pushed, &messages.to_string(), WireFormat::OpenAiChat).unwrap();
            assert_eq!(pushed, whole);
            compared += 1;
            // A result inside a message has its message's number only in a file.
            let each = messages.as_array().into_iter().flatten();
            if whole.messages().len() == each.clone().count() {
                let mut one_by_one = Conversation::new();
                for one in each {
                    push_json(&mut one_by_one, &one.to_string(), WireFormat::OpenAiChat).unwrap();
                }
                assert_eq!(one_by_one, whole);
                singly += 1;
            }
        }
    }
    assert!(singly > 100 || data::folder().is_none(), "{singly} of {compared}");
}

proptest! {
    #![proptest_config(generate::cases(64, 1_000))]

    /// The items of a prompt are the included ones, each once and in order. Every item except documents has
    /// its text of the conversation or is listed as shortened.
    #[test]
    fn a_prompt_item_by_item_is_the_prompt(session in generate::crowded()) {
        let Ok(plan) = session.plan() else { return Ok(()) };
        let items = plan.by_item();
        let ids: Vec<_> = items.iter().flat_map(|item| item.ids.iter()).collect();
        let included: Vec<_> = plan.included.iter().map(|item| &item.id).collect();
        prop_assert_eq!(ids, included);
        // All texts are in the finished prompt, also joined ones.
        let body = serde_json::to_value(render::openai(&plan)).unwrap().to_string();
        for item in &items {
            let text = Value::from(item.message.text()).to_string();
            prop_assert!(body.contains(text.trim_matches('"')), "{:?} {}", item.ids, text);
        }
    }

    /// A list of messages has the count of its prompt if nothing is excluded, repaired or joined.
    #[test]
    fn messages_have_the_count_of_their_prompt(texts in prop::collection::vec("[a-z]{1,40}", 1..12), tools in 0..3usize) {
        let manager = manager();
        let message = |(at, text): (usize, &String)| match at % 4 {
            0 => Message::user(text.as_str()),
            1 => Message::assistant("").with_tool_calls([ToolCall::new(format!("c{at}"), "look", "{}")]),
            2 => Message::tool(format!("c{}", at - 1), text.as_str()),
            _ => Message::assistant(text.as_str()),
        };
        let mut log: Conversation = texts.iter().enumerate().map(message).collect();
        if log.open_calls().next().is_some() {
            log.push(Message::tool(format!("c{}", texts.len() - 1), "done"));
        }
        let tools: Vec<Tool> = (0..tools).map(|at| Tool::new(format!("t{at}"), "A tool.", r#"{"type":"object"}"#)).collect();
        let plan = manager.build_plan(&PlanRequest::new(&log).with_tools(&tools)).unwrap();
        prop_assert!(plan.excluded.is_empty());
        prop_assert_eq!(manager.count_messages(log.messages(), &tools).unwrap(), plan.estimated_tokens_total);
    }
}
