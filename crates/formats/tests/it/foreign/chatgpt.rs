use super::{assert_says, read, sample, try_read};
use context_window_formats::SessionFile;

const LEFT: &str = "3 contents are left out: they are not in the export, or only for the screen: 1 \
                    image_asset_pointer, 1 real_time_user_audio_video_asset_pointer, 1 reasoning_recap";

#[test]
fn the_current_branch_is_read_with_calls_and_texts_of_tools() {
    let session = sample("chatgpt.json");
    assert_says(
        &session,
        &[
            "system: I own the boats.",
            "system: Answer shortly.",
            "system: 1. [2026-11-01] Likes the Teal.",
            "user: Which boat is this, and which are free?",
            "thought: Look it up.",
            r#"call call_0 python {"code":"print(free('Friday'))"}"#,
            "result call_0: Heron, Otter",
            r#"call call_1 web.run {"search_query":[{"q":"tide"}]}"#,
            "result call_1 (failed): tide server is away",
            r#"call call_2 browser {"code":"search(\"quay\")"}"#,
            "result call_2: Quay list",
            "result call_2: L0: Quay",
            "result call_2: Quay",
            "result call_2: https://quay.example",
            "result call_2: The quay opens at 8.",
            "assistant: It is the Heron. Heron and Otter are free.",
            "user: Book the Otter, please.",
        ],
        &[
            "2 messages of other branches are left out",
            "1 message is hidden from the conversation: it is left out",
            LEFT,
        ],
    );
    assert_eq!((session.id.as_deref(), session.model.as_deref()), (Some("cc"), Some("gpt-5-thinking")));
}

/// Returns a conversation of messages, each after its parent.
fn conversation(id: &str, nodes: &[(&str, &str, &str, &str, f64)], current: Option<&str>) -> String {
    let nodes: Vec<String> = nodes
        .iter()
        .map(|(id, parent, role, text, time)| {
            format!(
                r#""{id}":{{"id":"{id}","parent":"{parent}","children":[],"message":{{"id":"{id}","author":{{"role":"{role}"}},
                "create_time":{time},"content":{{"content_type":"text","parts":["{text}"]}},"metadata":{{}}}}}}"#
            )
        })
        .collect();
    let current = current.map(|id| format!(r#""current_node":"{id}","#)).unwrap_or_default();
    let root = r#""root":{"id":"root","message":null,"parent":null,"children":[]}"#;
    format!(r#"{{"title":"t","id":"{id}",{current}"mapping":{{{root},{}}}}}"#, nodes.join(","))
}

#[test]
fn without_a_current_message_the_newest_one_ends_the_branch() {
    let nodes = [
        ("a", "root", "user", "Is the Teal free?", 1.0),
        ("c", "a", "assistant", "It is.", 3.0),
        ("b", "a", "assistant", "I do not know.", 2.0),
    ];
    let session = read("chat.json", &conversation("x", &nodes, None));
    assert_says(
        &session,
        &["user: Is the Teal free?", "assistant: It is."],
        &["1 message of another branch is left out"],
    );
}

#[test]
fn an_export_holds_many_conversations() {
    let one = conversation("x", &[("a", "root", "user", "Is the Teal free?", 1.0)], None);
    let other = conversation("y", &[("a", "root", "user", "Is the Heron free?", 1.0)], None);
    let file = SessionFile::new("conversations.json", format!("[{one},{other}]").into_bytes()).unwrap();
    assert_eq!(file.ids().collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(file.session(Some("y")).unwrap().log.messages()[0].text(), "Is the Heron free?");
}

#[test]
fn a_text_of_a_tool_without_a_call_is_a_context() {
    let nodes = [("a", "root", "user", "Read my list.", 1.0), ("b", "a", "tool", "The list is loaded.", 2.0)];
    let text = conversation("x", &nodes, Some("b"))
        .replace(r#""role":"tool""#, r#""role":"tool","name":"file_search""#);
    assert_says(
        &read("chat.json", &text),
        &["user: Read my list.", "system: From file_search:", "system: The list is loaded."],
        &[],
    );
}

#[test]
fn a_parent_that_is_not_there_is_an_error() {
    let text = conversation("x", &[("a", "gone", "user", "Is the Teal free?", 1.0)], Some("a"));
    let error = try_read("chat.json", &text).unwrap_err().to_string();
    assert!(error.contains("has no node `gone`"), "{error}");
}
