//! Limits stated in a logged body, and context that its provider adds (rule B8): one small body for each
//! spelling.

use context_window::{Config, ContextPlan, ContextWindowManager, Model, TokenCounter, plan::NoticeCode};
use context_window_formats::{Session, SessionTexts, session_json};

const HI: &str = r#""messages": [{"role": "user", "content": "Hi"}]"#;

fn session(keys: &str) -> Session {
    Session::from_json(&format!("{{{HI}, {keys}}}")).unwrap()
}

fn manager(model: &str) -> ContextWindowManager {
    ContextWindowManager::new(Model::named(model).unwrap(), TokenCounter::bytes(), Config::default()).unwrap()
}

fn planned(model: &str, session: &Session) -> ContextPlan {
    manager(model).build_plan(&session.request()).unwrap()
}

fn notice(plan: &ContextPlan, code: NoticeCode) -> Option<&str> {
    plan.notices.iter().find(|notice| notice.code == code).map(|notice| notice.text.as_str())
}

#[test]
fn each_spelling_of_the_reply_is_read() {
    for (keys, reply) in [
        (r#""max_tokens": 700"#, Some(700)),
        (r#""max_completion_tokens": 700"#, Some(700)),
        (r#""max_completion_tokens": 700, "max_tokens": 9"#, Some(700)),
        (r#""max_output_tokens": 700"#, Some(700)),
        (r#""maxOutputTokens": 700"#, Some(700)),
        (r#""maxTokens": 700"#, Some(700)),
        (r#""generationConfig": {"maxOutputTokens": 700}"#, Some(700)),
        (r#""generation_config": {"max_output_tokens": 700}"#, Some(700)),
        (r#""config": {"max_output_tokens": 700}"#, Some(700)),
        (r#""options": {"num_predict": 700}"#, Some(700)),
        (r#""num_predict": 700"#, Some(700)),
        (r#""inferenceConfig": {"maxTokens": 700}"#, Some(700)),
        // Values that state no limit.
        (r#""options": {"num_predict": -1}"#, None),
        (r#""max_tokens": 0"#, None),
        (r#""max_tokens": null"#, None),
        (r#""max_tokens": "many""#, None),
        (r#""max_tokens": 1.5"#, None),
        (r#""options": [700], "config": "default", "generationConfig": 7"#, None),
    ] {
        let stated = session(keys).limits.stated;
        assert_eq!((stated.max_completion_tokens, stated.model_context_len), (reply, None), "{keys}");
    }
}

#[test]
fn a_stated_window_is_read() {
    for keys in [r#""options": {"num_ctx": 2048}"#, r#""num_ctx": 2048"#] {
        assert_eq!(session(keys).limits.stated.model_context_len, Some(2_048), "{keys}");
    }
}

#[test]
fn the_budget_of_reasoning_counts_without_a_limit_of_the_reply() {
    let thinking = r#""thinking": {"type": "enabled", "budget_tokens": 55000}"#;
    let stated = session(thinking).limits.stated;
    assert_eq!((stated.reasoning, stated.max_completion_tokens), (Some(55_000), None));
    let both = session(&format!("{thinking}, \"max_tokens\": 60000")).limits.stated;
    assert_eq!((both.reasoning, both.max_completion_tokens), (None, Some(60_000)));
}

#[test]
fn stated_limits_apply_to_the_plan() {
    let long = planned("claude-sonnet-4-5", &session(r#""max_tokens": 60000"#));
    assert_eq!((long.limits.max_completion_tokens, long.limits_source.name()), (60_000, "body"));
    assert_eq!(
        notice(&long, NoticeCode::StatedLimits),
        Some("the request body sets limits, in tokens: reply up to 60,000")
    );
    let local = planned("llama3.1", &session(r#""options": {"num_ctx": 2048, "num_predict": 300}"#));
    assert_eq!((local.limits.model_context_len, local.prompt_budget), (2_048, 1_708));
    assert_eq!(
        notice(&local, NoticeCode::StatedLimits),
        Some("the request body sets limits, in tokens: context length 2,048, reply up to 300")
    );
    assert_eq!(notice(&planned("gpt-4o", &session("\"top_p\": 1")), NoticeCode::StatedLimits), None);
}

#[test]
fn the_sessions_own_limits_hold_before_stated_ones() {
    let own = r#""limits": {"context_len": 9000, "max_completion": 500}, "max_tokens": 700, "num_ctx": 2048"#;
    let plan = planned("gpt-4o", &session(own));
    assert_eq!((plan.limits.model_context_len, plan.limits.max_completion_tokens), (9_000, 500));
    assert_eq!((plan.limits_source.name(), notice(&plan, NoticeCode::StatedLimits)), ("request", None));
    // Each limit is set independently.
    let one = planned("gpt-4o", &session(r#""limits": {"safety_buffer": 7}, "max_tokens": 700"#));
    assert_eq!((one.limits.max_completion_tokens, one.limits.safety_buffer), (700, 7));
}

#[test]
fn unknown_model_reports_if_default_limits_apply() {
    let unknown = |keys: &str| {
        let plan = planned("nobody-7b", &session(keys));
        notice(&plan, NoticeCode::UnknownModel).unwrap().contains("default limits apply")
    };
    assert!(unknown(r#""max_tokens": 700"#));
    assert!(!unknown(r#""options": {"num_ctx": 2048}"#));
}

#[test]
fn context_that_the_provider_adds_is_a_notice() {
    let input = r#""input": [{"role": "user", "content": "And now?"}]"#;
    let contents = r#""contents": [{"role": "user", "parts": [{"text": "And now?"}]}]"#;
    for (body, key, id, missing) in [
        (
            format!("{input}, \"previous_response_id\": \"resp_1\""),
            "previous_response_id",
            "resp_1",
            "messages up to that response",
        ),
        (
            format!("{input}, \"conversation\": \"conv_1\""),
            "conversation",
            "conv_1",
            "items of that conversation",
        ),
        (
            format!("{input}, \"conversation\": {{\"id\": \"conv_1\"}}"),
            "conversation",
            "conv_1",
            "items of that conversation",
        ),
        (
            format!("{input}, \"prompt\": {{\"id\": \"pmpt_1\", \"version\": \"2\"}}"),
            "prompt",
            "pmpt_1",
            "messages of that prompt",
        ),
        (
            format!("{contents}, \"cachedContent\": \"cachedContents/1\""),
            "cachedContent",
            "cachedContents/1",
            "cached contents",
        ),
        (
            format!("{HI}, \"mcp_servers\": [{{\"name\": \"tides\"}}]"),
            "mcp_servers",
            "tides",
            "tools of that server",
        ),
    ] {
        let session = Session::from_json(&format!("{{{body}}}")).unwrap();
        let named: Vec<_> =
            session.remote.iter().map(|remote| (remote.body_key(), remote.id.as_str())).collect();
        assert_eq!(named, [(key, id)], "{body}");
        let plan = planned("gpt-5", &session);
        let text = notice(&plan, NoticeCode::RemoteContext).unwrap();
        assert!(
            text.contains(id) && text.contains(missing) && text.contains("or set a prompt budget"),
            "{text}"
        );
    }
    // Keys of these names with other meanings in logs.
    for keys in [
        r#""previous_response_id": null"#,
        r#""previous_response_id": """#,
        r#""conversation": "a talk", "prompt": "Be brief.""#,
        r#""prompt": {"id": "pmpt_1"}"#,
        r#""mcp_servers": []"#,
        r#""cachedContent": 7"#,
    ] {
        assert!(session(keys).remote.is_empty(), "{keys}");
    }
}

/// A body exported as a session gives the same plan with the same notices.
#[test]
fn an_exported_body_gives_the_same_plan() {
    let body = r#"{"input": "And now?", "previous_response_id": "resp_1", "max_output_tokens": 700}"#;
    let session = Session::from_json(body).unwrap();
    let manager = manager("gpt-5");
    let plan = manager.build_plan(&session.request()).unwrap();
    let text = session_json(&manager, &session.request(), SessionTexts::Kept).unwrap();
    let again = Session::from_json(&text).unwrap();
    assert_eq!(manager.build_plan(&again.request()).unwrap().to_json(), plan.to_json());
}

/// Keys of a body are no misspelt session keys; `conversation` may be one.
#[test]
fn keys_of_a_body_give_no_hint() {
    let keys = r#""max_tokens": 7, "num_ctx": 2048, "options": {}, "prompt": "", "conversation": "mine""#;
    assert_eq!(session(keys).unread_keys(), [("conversation".to_owned(), "messages")]);
}
