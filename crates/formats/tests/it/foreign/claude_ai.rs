use super::{assert_says, read, sample};

#[test]
fn an_export_is_read_with_the_results_in_the_assistants_messages() {
    assert_says(
        &sample("claude-ai.json"),
        &[
            "user: list.txt\n\nHeron, Otter, Teal",
            "user: Which boats are free?",
            "thought: Look it up.",
            "assistant: I look.",
            r#"call toolu_1 free_boats {"day":"Friday"}"#,
            "result toolu_1: Heron, Otter",
            r#"call toolu_2 web_search {"query":"tide"}"#,
            "result toolu_2 (failed): Tide\nhttps://t\naway",
            "assistant: Heron and Otter are free.",
            "user: Book the Otter, please.",
        ],
        &[
            "1 message of another branch is left out",
            "1 file is not in the export",
            "1 block has no content for the model: 1 token_budget",
        ],
    );
}

#[test]
fn the_current_message_ends_the_branch() {
    let message = |id: &str, parent: &str, sender: &str, text: &str| {
        format!(
            r#"{{"uuid":"{id}","parent_message_uuid":"{parent}","sender":"{sender}","text":"","content":[{{"type":"text","text":"{text}"}}]}}"#
        )
    };
    let messages = [
        message("a", "00000000-0000-4000-8000-000000000000", "human", "Is the Teal free?"),
        message("b", "a", "assistant", "It is."),
        message("c", "a", "assistant", "I do not know."),
    ];
    let text = format!(
        r#"{{"uuid":"x","name":"n","current_leaf_message_uuid":"b","chat_messages":[{}]}}"#,
        messages.join(",")
    );
    assert_says(
        &read("chat.json", &text),
        &["user: Is the Teal free?", "assistant: It is."],
        &["1 message of another branch is left out"],
    );
}

#[test]
fn results_without_ids_answer_the_open_call_of_their_tool() {
    let session = read(
        "chat.json",
        r#"{"uuid":"x","name":"n","chat_messages":[{"uuid":"a","sender":"human","text":"Tide and wind?"},
        {"uuid":"b","sender":"assistant","text":"","content":[
            {"type":"tool_use","name":"tide","input":{}},{"type":"tool_use","name":"wind","input":{}},
            {"type":"tool_result","name":"wind","content":"5 knots"},
            {"type":"tool_result","name":"tide","content":[{"type":"text","text":"2 metres"}]}]}]}"#,
    );
    assert_says(
        &session,
        &[
            "user: Tide and wind?",
            "call call_1_0 tide {}",
            "call call_1_1 wind {}",
            "result call_1_1: 5 knots",
            "result call_1_0: 2 metres",
        ],
        &[],
    );
}
