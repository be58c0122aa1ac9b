//! A request exported by its application gives the same plan in `plan-inspect`.

use crate::support::data;
use context_window::*;
use context_window_formats::{Session, SessionTexts};
use serde_json::Value;
use std::collections::BTreeSet;

fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "look",
            "Looks something up.",
            r#"{"type":"object","properties":{"q":{"type":"string","description":"What."}}}"#,
        ),
        Tool::new("clock", "Says what time it is.", ""),
    ]
}

/// Creates a conversation with many kinds of entries: calls, pins, TTL, a compaction, reports, a rewind.
fn conversation(manager: &ContextWindowManager) -> Conversation {
    let mut log = Conversation::new();
    log.push_system("rules", "Answer from the documents. Never promise refunds.");
    log.pin(PinnedItem::new("tone", "The customer likes short answers.").with_ttl(Ttl::turns(3)));
    for turn in 0..14 {
        log.push(Message::user(format!(
            "Question {turn}: how long does a kettle last, and what does it weigh?"
        )));
        let call = ToolCall::new(format!("c{turn}"), "look", format!("{{\"q\": \"kettle {turn}\"}}"));
        log.push(Message::assistant("").with_tool_calls([call]));
        log.push(Message::tool(
            format!("c{turn}"),
            format!("Kettle {turn}: ten years, 1.{turn} kg. Café, 水壶. ").repeat(9),
        ));
        let plan = manager.build_plan(&PlanRequest::new(&log)).unwrap();
        log.push_reply(
            &plan,
            Message::assistant(format!("Ten years, and 1.{turn} kg.")),
            Usage::openai(plan.counted(), 9, 12),
        );
        log.complete_turn(&plan);
    }
    let job = manager.compactor().now(&PlanRequest::like_last(&log)).unwrap().unwrap();
    manager
        .compactor()
        .apply_summary(&mut log, &job.with_state("plan", "1. kettle"), "They spoke of kettles.")
        .unwrap();
    log.push(Message::user("And the Finch? I live in Lund."));
    log.pin_message("m2", Priority::High).unwrap();
    log
}

fn request<'a>(log: &'a Conversation, tools: &'a [Tool], budget: u64) -> PlanRequest<'a> {
    let documents = (0..9).map(|at| {
        RagItem::new(
            format!("d{at}"),
            f64::from(at) / 10.0,
            format!("Document {at} on kettles. ").repeat(at as usize + 2),
        )
        .with_origin("shop.md")
    });
    PlanRequest::new(log)
        .with_tools(tools)
        .with_rag(documents)
        .with_focus("kettles")
        .with_state("clock", "Monday, 9:00")
        .with_limits(RequestLimits::prompt_budget(budget).with_max_completion_tokens(900))
}

fn manager(model: &str) -> ContextWindowManager {
    let mut config = Config::preset("agent").unwrap();
    config.rag.max_items = Some(6);
    config.sections.pins_limit = 300;
    config.compaction.summary.max_tokens = 60;
    config.compaction.retain.messages = Some(9);
    ContextWindowManager::configured(Model::named(model).unwrap(), config).unwrap()
}

fn inspected(text: &str) -> Value {
    let file =
        std::env::temp_dir().join(format!("context-window-{}-{:x}.json", std::process::id(), text.len()));
    std::fs::write(&file, text).unwrap();
    let plan = assert_cmd::Command::new(env!("CARGO_BIN_EXE_plan-inspect"))
        .arg(&file)
        .args(["--format", "json"])
        .assert()
        .success();
    serde_json::from_slice(&plan.get_output().stdout).unwrap()
}

#[test]
fn plan_inspect_gives_the_plan_of_the_application() {
    for model in ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash"] {
        let manager = manager(model);
        let (log, tools) = (conversation(&manager), tools());
        for budget in [700, 1_100, 3_000] {
            let request = request(&log, &tools, budget);
            let text = context_window_formats::session_json(&manager, &request, SessionTexts::Kept).unwrap();
            let plan = manager.build_plan(&request).unwrap();
            assert_eq!(inspected(&text)["fingerprint"], plan.fingerprint(), "{model} {budget}");
            // Without its texts, it has the same rows with the same tokens, and none of the words.
            let redacted =
                context_window_formats::session_json(&manager, &request, SessionTexts::Redacted).unwrap();
            for word in ["kettle", "Kettle", "refund", "Lund", "Monday", "customer", "水壶"] {
                assert!(!redacted.contains(word), "{word} is in {redacted}");
            }
            let seen = inspected(&redacted);
            let rows = |rows: &Value| -> Vec<String> {
                let rows = rows.as_array().unwrap().iter();
                rows.map(|row| format!("{} {} {}", row["id"], row["section"], row["token_estimate"]))
                    .collect()
            };
            let own: Value = serde_json::from_str(&plan.to_json()).unwrap();
            assert_eq!(rows(&seen["included"]), rows(&own["included"]), "{model} {budget}");
        }
    }
}

/// The file has the options as they were set, so another model may support what this one does not.
#[test]
fn a_session_file_has_the_options_that_the_model_does_not_support() {
    let mut config = Config::default();
    config.conversation.tool_results = config::ToolResults::Provider;
    let manager = ContextWindowManager::configured(Model::named("gpt-4o").unwrap(), config).unwrap();
    let log = Conversation::from([Message::user("Hello")]);
    let request = PlanRequest::new(&log);
    let plan = manager.build_plan(&request).unwrap();
    assert!(!plan.notices.is_empty(), "the notice about the option");
    let text = context_window_formats::session_json(&manager, &request, SessionTexts::Kept).unwrap();
    assert_eq!(inspected(&text)["fingerprint"], plan.fingerprint());
}

#[test]
fn a_session_file_of_another_version_or_with_wrong_entries_is_an_error() {
    let manager = manager("gpt-4o");
    let log = Conversation::from([Message::user("Hello")]);
    let text =
        context_window_formats::session_json(&manager, &PlanRequest::new(&log), SessionTexts::Kept).unwrap();
    assert_eq!(Session::from_json(&text).unwrap().log, log);
    let later = text.replace("\"context_window\":{\"version\":1", "\"context_window\":{\"version\":7");
    assert!(Session::from_json(&later).unwrap_err().to_string().contains("version 7; expected version 1"));
    let rewound = text.replace("{\"message\":{", "{\"event\":{\"rewound\":{\"before\":\"m9\"}}},{\"x\":{");
    assert_eq!(Session::from_json(&rewound).unwrap_err().kind(), context_window_formats::ErrorKind::Input);
}

/// Real sessions that are written and read give the same plan; redacted ones give the same items.
#[test]
fn exported_real_sessions_give_the_same_plan() {
    let manager = ContextWindowManager::for_model("gpt-4o").unwrap();
    // Five consecutive words of a message.
    let words = |log: &Conversation| -> BTreeSet<String> {
        let texts: Vec<String> =
            log.messages().iter().flat_map(context_window_report::message_lines).collect();
        let words = texts.iter().map(|text| text.split_whitespace().collect::<Vec<_>>());
        words.flat_map(|words| words.windows(5).map(|words| words.join(" ")).collect::<Vec<_>>()).collect()
    };
    let mut sentences = 0;
    for file in data::files(&["conv_taubench", "conv_miniswe", "conv_claudecode"]) {
        for id in file.ids().take(4) {
            let session = file.session(Some(&id)).unwrap();
            let request = session.request().with_limits(RequestLimits::prompt_budget(6_000));
            let ids = |plan: &ContextPlan| {
                plan.included
                    .iter()
                    .map(|row| (row.id.clone(), row.token_estimate.tokens))
                    .collect::<Vec<_>>()
            };
            let plan = manager.build_plan(&request).unwrap();
            let kept = Session::from_json(
                &context_window_formats::session_json(&manager, &request, SessionTexts::Kept).unwrap(),
            )
            .unwrap();
            assert_eq!(
                manager.build_plan(&kept.request()).unwrap().fingerprint(),
                plan.fingerprint(),
                "{id}"
            );
            let json =
                context_window_formats::session_json(&manager, &request, SessionTexts::Redacted).unwrap();
            let redacted = Session::from_json(&json).unwrap();
            assert_eq!(ids(&manager.build_plan(&redacted.request()).unwrap()), ids(&plan), "{id}");
            let (original, redacted) = (words(&session.log), words(&redacted.log));
            sentences += original.len();
            assert!(original.is_disjoint(&redacted), "{id}: {:?}", original.intersection(&redacted).next());
        }
    }
    assert!(sentences > 0 || data::folder().is_none(), "nothing was compared");
}

/// Images and parts of other types are redacted too, with the same token counts.
#[test]
fn a_redacted_session_keeps_no_image_and_no_part() {
    let block = r#"{"type":"document","title":"The secret plan","source":{"type":"text","media_type":"text/plain","data":"Attack at dawn, from the east."},"citations":{"enabled":true}}"#;
    let body = serde_json::json!({"model": "claude-sonnet-4-5", "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/private/passport.png"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "c2VjcmV0IHBpeGVscw=="}},
            serde_json::from_str::<Value>(block).unwrap(),
        ]},
    ]});
    let session = Session::from_json(&body.to_string()).unwrap();
    let manager = ContextWindowManager::for_model("claude-sonnet-4-5").unwrap();
    let json =
        context_window_formats::session_json(&manager, &session.request(), SessionTexts::Redacted).unwrap();
    for secret in ["passport", "c2VjcmV0", "secret", "dawn", "What is"] {
        assert!(!json.contains(secret), "{secret}: {json}");
    }
    assert!(json.contains("data:image/png;base64,") && json.contains("text/plain"), "{json}");
    let redacted = Session::from_json(&json).unwrap();
    let tokens = |session: &Session| {
        let plan = manager.build_plan(&session.request()).unwrap();
        plan.included.iter().map(|row| (row.id.clone(), row.token_estimate)).collect::<Vec<_>>()
    };
    assert_eq!(tokens(&redacted), tokens(&session));
}
