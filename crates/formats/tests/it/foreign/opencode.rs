use super::{assert_says, sample};

#[test]
fn export_gives_the_conversation_as_sent() {
    let session = sample("opencode.json");
    assert_says(
        &session,
        &[
            "system: You paint boats.",
            "user: Which boats are free?",
            "user: SYNTHETIC file text",
            "user image: data:image/png;base64,",
            "thought: Look",
            "assistant: I look.",
            r#"call call_1 free_boats {"day":"Friday"}"#,
            "call call_2 tide {}",
            r#"call call_3 wind {"at":"quay"}"#,
            r#"call call_4 read {"p":"x"}"#,
            "result call_1: Heron, Otter",
            "result call_2 (failed): away",
            "result call_3 (failed): [Tool execution was interrupted]",
            "result call_4: [Old tool result content cleared]",
            "assistant: Heron and Otter.",
            "user: Again.",
            "assistant: HALF an answ",
            "user: Book the Otter.",
        ],
        &[
            "1 reply failed and is not sent again: it is left out",
            "1 text is marked as ignored: it is left out",
            "1 result was cleared by opencode: its content is left out",
        ],
    );
    assert_eq!((session.id.as_deref(), session.model.as_deref()), (Some("ses_1"), Some("claude-sonnet-4-5")));
    assert_eq!(session.log.messages()[1].reasoning()[0].signature.as_deref(), Some("SIG"));
}

#[test]
fn a_summary_precedes_the_messages_that_it_keeps() {
    assert_says(
        &sample("opencode-compacted.json"),
        &[
            "user: What did we do so far?",
            "assistant: SUMMARY",
            "user: TAIL KEPT",
            "assistant: TAIL ANSWER",
            "user: NOW",
        ],
        &["2 messages that opencode compacted are left out: their summary replaces them"],
    );
}
