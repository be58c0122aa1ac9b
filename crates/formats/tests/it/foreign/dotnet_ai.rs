//! `Microsoft.Extensions.AI` and the Agent Framework.

use super::{assert_says, read, sample, try_read};
use serde_json::json;

#[test]
fn messages() {
    let session = sample("dotnet-ai.json");
    assert_says(
        &session,
        &[
            "system: You rent out boats.",
            "user: Is the Heron free?",
            "user image: data:image/png;base64,",
            "user image: https://boats.example/",
            "thought: Look it up.",
            "assistant: I look it up.",
            r#"call c1 free_boats {"day":"Friday"}"#,
            "call c2 tide {}",
            r#"result c1: {"boats":["Heron"]}"#,
            "result c2: Error: Function failed.",
            r#"call c3 book {"boat":"Heron"}"#,
            "result c3 (failed): Tool call invocation rejected. Too dear.",
            "user: Then the Otter.",
        ],
        &["1 error is left out: it is not from the model"],
    );
    assert!(session.log.messages().iter().any(|message| message.name() == Some("Ann")));
}

#[test]
fn the_state_of_an_agent() {
    let session = sample("agent-framework.json");
    assert_says(
        &session,
        &[
            "system: You rent out boats.",
            "user: Is the Heron free?",
            "user image: data:image/png;base64,",
            "user image: https://boats.example/",
        ],
        &[],
    );
}

#[test]
fn capitals_and_nulls_of_a_plain_serialiser() {
    let text = json!({ "$type": "text", "Text": "Is the Teal free?", "Annotations": null });
    let message = json!({ "AuthorName": null, "CreatedAt": null, "Role": "user", "Contents": [text], "MessageId": null });
    assert_says(&read("talk", &json!([message]).to_string()), &["user: Is the Teal free?"], &[]);
}

#[test]
fn unknown_contents_are_errors() {
    let message = |kind: &str| json!([{ "role": "user", "contents": [{ "$type": kind, "text": "Look at the boat." }] }]);
    for kind in ["hologram", "hostedVectorStore"] {
        let error = try_read("talk", &message(kind).to_string()).unwrap_err().to_string();
        assert!(error.contains("[0].contents[0]"), "{error}");
    }
}
