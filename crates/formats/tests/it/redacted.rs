//! A session without its texts gives the plan of the original session: the same rows with the same tokens.

use crate::support::{generate, texts};
use context_window::{
    Config, ContextPlan, ContextWindowManager, ItemKind, Message, Model, PlanRequest, RequestLimits,
    TokenCounter,
    config::{RulePolicy, ToolResults},
};
use context_window_formats::{Session, SessionTexts, session_json};
use proptest::{prelude::*, strategy::ValueTree as _};
use serde_json::{Value, json};

/// Generates texts of one character, of one script, of control characters, and random ones.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(&["q", "x", "y", "7", "é", "水", "😀", "?", "\"", "\\", "<", "ok", "a\nb", " x ", "\u{200b}"][..])
            .prop_map(str::to_owned),
        3 => "[ -~]{1,40}",
        3 => (any::<u64>(), 1usize..60).prop_map(|(seed, length)| texts::thrown_together(seed, length)),
        1 => (1usize..400).prop_map(|length| "word ".repeat(length)),
        1 => (1usize..60).prop_map(|length| "\u{301}\0\t<|im_end|>".repeat(length)),
    ]
}

/// Generates arguments like those of models: objects, other JSON, unfinished JSON, and text that is not JSON.
fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::collection::vec((text(), text()), 0..3).prop_map(|pairs| {
            Value::Object(pairs.into_iter().map(|(key, text)| (key, Value::from(text))).collect()).to_string()
        }),
        1 => prop::sample::select(&["not json", "{\"a\":", "[1, 2]", "\"text\"", "null", "7", "{}", "", " ", "{\"n\":{\"x\":[1,null]}}"][..])
            .prop_map(str::to_owned),
        1 => text(),
    ]
}

fn turn() -> impl Strategy<Value = Vec<Value>> {
    let calls = prop::collection::vec((arguments(), text()), 0..3);
    let documents = prop::collection::vec((text(), 0u8..9), 0..3);
    (text(), text(), calls, documents, prop::option::of(text()), any::<u8>()).prop_map(
        |(question, answer, calls, documents, thought, kind)| {
            let question = match kind % 4 {
                0 => json!([{"type": "text", "text": question}, {"type": "text", "text": "b"}]),
                1 => json!([{"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}, {"type": "text", "text": question}]),
                _ => json!(question),
            };
            let mut user = json!({"role": "user", "content": question});
            if kind & 16 > 0 {
                user["name"] = json!("ann");
            }
            if kind & 32 > 0 && !documents.is_empty() {
                let documents = documents.into_iter().map(|(text, id)| json!({"id": format!("d{id}"), "text": text, "score": 0.5}));
                user["documents"] = documents.collect();
            }
            let mut messages = vec![user];
            if !calls.is_empty() {
                let made = calls.iter().enumerate().map(|(at, (arguments, _))| {
                    json!({"id": format!("c{at}"), "type": "function", "function": {"name": "f", "arguments": arguments}})
                });
                messages.push(json!({"role": "assistant", "content": null, "tool_calls": made.collect::<Vec<_>>()}));
                let results = calls.iter().enumerate();
                messages.extend(results.map(|(at, (_, text))| json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": text})));
            }
            let mut reply = json!({"role": "assistant", "content": answer});
            if let Some(thought) = thought {
                reply["reasoning_content"] = json!(thought);
            }
            messages.push(reply);
            messages
        },
    )
}

/// Returns a model, an introduction of documents, and a session.
fn session() -> impl Strategy<Value = (String, String, Value)> {
    const MODELS: [&str; 6] = [
        "gpt-4o",
        "claude-haiku-5-5",
        "claude-sonnet-4-5",
        "gemini-2.5-flash",
        "deepseek-chat",
        "no-such-model",
    ];
    let documents = prop::collection::vec((text(), 0u8..9), 0..6);
    (
        prop::sample::select(&MODELS[..]),
        prop::collection::vec(turn(), 0..4),
        (text(), prop::option::of(text()), prop::option::of(text()), prop::option::of(text())),
        (documents, prop_oneof![2 => Just(String::new()), 1 => text()]),
        30u64..900,
    )
        .prop_map(
            |(model, turns, (question, system, focus, state), (documents, introduction), budget)| {
                let system = system.map(|text| json!({"role": "system", "content": text}));
                let question = json!({"role": "user", "content": question});
                let messages: Vec<Value> =
                    system.into_iter().chain(turns.into_iter().flatten()).chain([question]).collect();
                let rag: Vec<Value> = documents
                    .into_iter()
                    .enumerate()
                    .map(|(at, (text, score))| json!({"id": format!("r{at}"), "text": text, "score": score}))
                    .collect();
                let mut session =
                    json!({"messages": messages, "rag": rag, "limits": {"prompt_budget": budget}});
                if let Some(focus) = focus {
                    session["focus"] = json!(focus);
                }
                if let Some(state) = state {
                    session["state"] = json!([{"id": "clock", "text": state}]);
                }
                (model.to_owned(), introduction, session)
            },
        )
}

fn options(introduction: &str) -> Config {
    // Clipping and clearing depend on bytes and positions inside a text, not only on tokens.
    let mut config = Config::default();
    config.conversation.tool_results = ToolResults::Keep;
    config.rag.template.introduction = introduction.into();
    // Redacted texts are not compared with each other.
    (config.rag.near_duplicates, config.rag.repeats, config.rag.join_chunks) = (0, 0, false);
    config
}

fn manager(model: &str, config: Config) -> ContextWindowManager {
    match model {
        "no-such-model" => {
            ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), config).unwrap()
        }
        model => ContextWindowManager::configured(Model::named(model).unwrap(), config).unwrap(),
    }
}

/// Returns each row with its tokens, and the excluded rows.
fn rows(plan: &ContextPlan) -> Vec<String> {
    let row = |row: &context_window::PlannedItem| {
        format!("{} {:?} {}", row.id, row.section, row.token_estimate.tokens)
    };
    let out = |row: &context_window::ExcludedItem| format!("- {} {:?}", row.id, row.section);
    plan.included.iter().map(row).chain(plan.excluded.iter().map(out)).collect()
}

/// Returns the rows of a session and of its redacted form, or `None` if it is no session.
fn both(model: &str, introduction: &str, session: &Value) -> Option<(Vec<String>, Vec<String>)> {
    let manager = manager(model, options(introduction));
    let session = Session::from_json(&session.to_string()).ok()?;
    let plan = manager.build_plan(&session.request()).ok()?;
    let json = session_json(&manager, &session.request(), SessionTexts::Redacted).unwrap();
    let redacted = Session::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let written = Config::from_toml(redacted.options.as_deref().unwrap_or_default(), "options").unwrap();
    // The introduction is an option, and a text all the same.
    assert!(introduction.trim().is_empty() || written.rag.template.introduction != introduction, "{json}");
    let again = self::manager(model, written);
    let again = again.build_plan(&redacted.request()).unwrap_or_else(|error| panic!("{error}: {json}"));
    Some((rows(&plan), rows(&again)))
}

#[test]
fn redacted_sessions_have_the_same_rows_and_tokens() {
    let cases = if generate::is_full() { 20_000 } else { 300 };
    let config = ProptestConfig { failure_persistence: None, ..generate::cases(1, 1) };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let (mut planned, mut different) = (0, Vec::new());
    for _ in 0..cases {
        let (model, introduction, session) = session().new_tree(&mut runner).unwrap().current();
        let Some((own, redacted)) = both(&model, &introduction, &session) else { continue };
        planned += 1;
        if own != redacted {
            different.push(format!("{model} {introduction:?} {session}\n  {own:?}\n  {redacted:?}"));
        }
    }
    eprintln!("{planned} sessions, {} differ", different.len());
    assert!(planned > cases / 2);
    let shown: Vec<&String> = different.iter().take(6).collect();
    assert!(different.is_empty(), "{} of {planned} differ: {shown:#?}", different.len());
}

#[test]
fn short_texts_and_odd_arguments_keep_their_tokens() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "not json"}});
    let answered = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "user", "content": "q"},
    ]);
    let asked = json!([{"role": "user", "content": "q"}]);
    let documents: Vec<Value> = (b'a'..=b'j')
        .map(|c| json!({"id": char::from(c).to_string(), "text": char::from(c).to_string(), "score": 0.5}))
        .collect();
    for session in [
        json!({"messages": answered}),
        json!({"messages": asked, "focus": "x"}),
        json!({"messages": asked, "rag": documents}),
    ] {
        for model in ["gpt-4o", "claude-haiku-5-5", "gemini-2.5-flash", "no-such-model"] {
            let (own, redacted) = both(model, "", &session).unwrap();
            assert_eq!(redacted, own, "{model} {session}");
        }
    }
}

/// Rules of the user are found in texts that a redacted file does not have. It has them as rules of their
/// own.
#[test]
fn rules_of_the_user_are_redacted_and_still_sent() {
    let mut config = Config::default();
    config.compaction.rules = RulePolicy::Keep;
    let manager =
        ContextWindowManager::new(Model::named("gpt-4o").unwrap(), TokenCounter::chars_per_4(), config)
            .unwrap();
    let turn = |at: usize| {
        let done = format!("Part {at} is done.");
        [json!({"role": "assistant", "content": done}), json!({"role": "user", "content": "Go on."})]
    };
    let first = json!({"role": "user", "content": "Fix the tests. Never touch the zebra folder."});
    let messages: Vec<Value> = [first].into_iter().chain((0..40).flat_map(turn)).collect();
    let rules = json!([{"id": "tone", "text": "Prefer giraffes."}]);
    let session = Session::from_json(&json!({"messages": messages, "rules": rules}).to_string()).unwrap();
    let limits = RequestLimits::prompt_budget(300);
    let first = manager.build_plan(&session.request().with_limits(limits)).unwrap();
    let request = session.request().with_limits(limits).with_previous(first.anchor());
    let plan = manager.build_plan(&request).unwrap();
    assert_eq!(plan.included.iter().filter(|row| row.kind == ItemKind::Rule).count(), 2);
    let json = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
    assert!(!json.contains("zebra") && !json.contains("giraffes") && !json.contains("Never"), "{json}");
    let read = Session::from_json(&json).unwrap();
    let other = ContextWindowManager::new(
        Model::named("gpt-4o").unwrap(),
        TokenCounter::chars_per_4(),
        Config::default(),
    );
    assert_eq!(rows(&other.unwrap().build_plan(&read.request()).unwrap()), rows(&plan));
}

/// A label belongs to a document with its text, which a redacted file replaces.
#[test]
fn redacted_documents_keep_their_forms_and_requirements() {
    let mut config = Config::default();
    config.rag.labels = true;
    config.rag.placement = context_window::config::Placement::WithQuestion;
    config.rag.question_limit = 1000;
    let manager =
        ContextWindowManager::new(Model::named("gpt-4o").unwrap(), TokenCounter::chars_per_4(), config)
            .unwrap();
    let zebra = |times: usize| "The zebra eats grass. ".repeat(times);
    let variants = json!([{"name": "summary", "text": zebra(4)}, {"name": "title", "text": zebra(1)}]);
    let rag = json!([
        {"id": "a", "score": 0.9, "text": zebra(30), "variants": variants},
        {"id": "b", "score": 0.8, "text": zebra(2) + "It is late.", "requires": ["a"], "variants": null},
    ]);
    let session = Session::from_json(&json!({"query": "How?", "rag": rag}).to_string()).unwrap();
    let forms = |plan: &ContextPlan| {
        let documents = plan.included.iter().filter(|row| row.kind == ItemKind::Document);
        documents
            .map(|row| (row.id.to_string(), row.form().map(str::to_owned), row.token_estimate.tokens))
            .collect::<Vec<_>>()
    };
    let limits = RequestLimits::prompt_budget(95);
    let request = session.request().with_limits(limits);
    let plan = manager.build_plan(&request).unwrap();
    assert_eq!(forms(&plan)[0].1.as_deref(), Some("summary"), "{:?}", forms(&plan));
    let json = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
    assert!(!json.contains("zebra"), "{json}");
    let read = Session::from_json(&json).unwrap();
    assert_eq!((read.rag[0].variants.len(), read.rag[1].requires.len()), (2, 1));
    assert_eq!(forms(&manager.build_plan(&read.request().with_limits(limits)).unwrap()), forms(&plan));
    // With its texts it is read back as it was.
    let whole = session_json(&manager, &request, SessionTexts::Kept).unwrap();
    assert_eq!(Session::from_json(&whole).unwrap().rag, session.rag);
    // A form that was sent before is found again.
    let mut log = session.log.clone();
    log.push_reply(&plan, context_window::Message::assistant("So."), None);
    log.push(context_window::Message::user("And?"));
    let limits = RequestLimits::prompt_budget(400);
    let request = context_window::PlanRequest::new(&log).with_rag(session.rag.to_vec()).with_limits(limits);
    let plan = manager.build_plan(&request).unwrap();
    assert_eq!(forms(&plan)[0].1.as_deref(), Some("summary"), "{:?}", forms(&plan));
    let json = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
    let read = Session::from_json(&json).unwrap();
    assert_eq!(forms(&manager.build_plan(&read.request().with_limits(limits)).unwrap()), forms(&plan));
}

#[test]
fn redacted_documents_keep_their_labels() {
    let mut config = Config::default();
    config.rag.labels = true;
    let manager =
        ContextWindowManager::new(Model::named("gpt-4o").unwrap(), TokenCounter::chars_per_4(), config)
            .unwrap();
    let document = |id: &str| json!({"id": id, "score": 0.5, "text": format!("The zebra eats page {id}.")});
    let session = |ids: &[&str], messages: Value| {
        let documents: Vec<Value> = ids.iter().map(|id| document(id)).collect();
        Session::from_json(&json!({"messages": messages, "rag": documents}).to_string()).unwrap()
    };
    let question = json!({"role": "user", "content": "How?"});
    let first = session(&["a", "b"], json!([question]));
    let sent = manager.build_plan(&first.request()).unwrap();
    let labels = |plan: &ContextPlan| {
        plan.citations().labels().map(|(label, id)| (label, id.to_string())).collect::<Vec<_>>()
    };
    let all = [(2, "b".to_owned()), (3, "c".to_owned())];

    // The anchor is that of the request.
    let next =
        json!([question, {"role": "assistant", "content": "So."}, {"role": "user", "content": "And?"}]);
    let next = session(&["c", "b"], next);
    let request = next.request().with_previous(sent.anchor());
    assert_eq!(labels(&manager.build_plan(&request).unwrap()), all);
    let json = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
    assert!(!json.contains("zebra"), "{json}");
    let read = Session::from_json(&json).unwrap();
    assert_eq!(labels(&manager.build_plan(&read.request()).unwrap()), all);

    // The anchor is that of the conversation.
    let mut log = first.log.clone();
    log.push_reply(&sent, Message::assistant("So."), None);
    log.push(Message::user("And?"));
    let request = PlanRequest::new(&log).with_retrieved(next.rag.clone());
    let json = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
    let read = Session::from_json(&json).unwrap();
    assert_eq!(labels(&manager.build_plan(&read.request()).unwrap()), all);
}
