//! Session files: real ones and full ones, and sessions refused by both schema and reader.

use super::{Schema, data, inside, json_files, object, root, sessions, with};
use context_window::{Config, ContextWindowManager, Model};
use context_window_formats::{Session, SessionTexts};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs};

#[test]
fn every_session_matches_its_schema() {
    let schema = Schema::named("session");
    for (name, session, _) in sessions() {
        schema.expect(&session, &name);
    }
    for (name, anchor) in json_files("examples").into_iter().filter(|(name, _)| name.ends_with("anchor")) {
        schema.expect(&json!({"query": "?", "previous": anchor}), &name);
    }
    let page = fs::read_to_string(root("docs/reference/session.md")).unwrap();
    let shown = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    schema.expect(&serde_json::from_str(shown).unwrap(), "docs/reference/session.md");
    // The written output of a prompt can be read back.
    for (name, session, fixture) in sessions() {
        let Ok(read) = Session::from_json(&session.to_string()) else { continue };
        let manager = ContextWindowManager::configured(Model::custom("default"), Config::default()).unwrap();
        let mut limits = read.limits;
        limits.prompt_budget = fixture["budget"].as_u64();
        let Ok(plan) = manager.build_plan(&read.request().with_limits(limits)) else { continue };
        let anchor = serde_json::to_value(plan.anchor()).unwrap();
        schema.expect(&json!({"query": "?", "previous": anchor}), &name);
    }
}

/// Writes every session with `session_json`, with its texts and without.
#[test]
fn written_sessions_match_the_schema() {
    let schema = Schema::named("session");
    let mut count = 0;
    for (name, session, _) in sessions() {
        let Ok(read) = Session::from_json(&session.to_string()) else { continue };
        let manager = ContextWindowManager::configured(Model::custom("default"), Config::default()).unwrap();
        for texts in [SessionTexts::Kept, SessionTexts::Redacted] {
            let written = context_window_formats::session_json(&manager, &read.request(), texts).unwrap();
            schema.expect(&serde_json::from_str(&written).unwrap(), &name);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn every_real_session_matches_its_schema() {
    let schema = Schema::named("session");
    let mut count = 0;
    for file in data::texts(&["conv_", "long_", "rag_"]) {
        for line in file.lines().step_by(8) {
            schema.expect(&serde_json::from_str(line).unwrap(), &line[..line.len().min(80)]);
            count += 1;
        }
    }
    eprintln!("{count} real sessions");
}

/// Returns sessions with every field set, one for each form of messages.
fn full_sessions() -> [Value; 4] {
    let rest = json!({
        "id": "one", "model": "gpt-4o", "focus": "kettles",
        "limits": {"context_len": 9000, "max_input": 8000, "max_completion": 500, "safety_buffer": 9, "prompt_budget": 7000},
        "system": [{"id": "s", "text": "Answer."}, {"text": "Briefly."}],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
            {"type": "function", "name": "g", "description": "d", "parameters": {}},
            {"name": "h", "description": "d", "input_schema": {"type": "object"}},
            {"functionDeclarations": [{"name": "i", "description": "d", "parametersJsonSchema": {}}]},
            {"type": "web_search_20250305", "name": "web_search"},
            {"google_search": {}}
        ],
        "functions": [{"name": "j", "description": "d", "parameters": {}}],
        "state": [{"id": "clock", "text": "Noon."}],
        "pinned": [{"id": "tone", "text": "Short.", "priority": "high", "ttl": {"limited": 3}, "ttl_asked": false}],
        "rag": [{"id": "r", "text": "Five days.", "score": 0.9, "source": "handbook", "ttl": "unlimited",
            "span": [40, 2000], "position": 3, "date": "2026-11-27T10:00:00Z",
            "variants": [{"name": "title", "text": "Days"}], "requires": ["q"]},
            {"id": "u", "text": "Five.", "score": 0.9, "group": "g"}, {"id": "v", "text": "Six.", "score": 0.9, "group": 7}],
        "passages": {
            "words": [{"id": "q", "text": "Six days.", "score": 1, "source": null, "ttl": "none_remaining", "date": 1795773600}],
            "meaning": [{"id": "q", "text": "Six days.", "score": 0.5, "date": "2026-11-27"}]
        },
        "query": "How long?",
        "previous": {
            "target": {"model": "gpt-4o", "provider": "openai", "wire_format": "openai_chat"},
            "limits": {"context_len": 9000}, "live": "m0", "window_start": "m0", "rag": ["r"], "cleared_before": "m1",
            "rag_forms": [[0, "title"]], "rag_format": "native", "rag_released": true, "labels": {"last": 7, "given": [[2, "r", "0123456789abcdef"]]},
            "prompt": [["s", "abc", 7], ["m0", "abd", 9]]
        }
    });
    let and = |more: Value| {
        let mut session = rest.clone();
        session.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        session
    };
    [
        and(json!({"messages": [
            {"role": "user", "content": "hi", "name": "Ann", "id": "u", "pinned": true, "priority": "low", "ttl": {"limited": 1}, "ttl_asked": true},
            {"role": "assistant", "content": null, "reasoning_content": "hm", "audio": {"id": "a"}, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}}
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "done"}]},
            {"role": "assistant", "content": null, "function_call": {"name": "j", "arguments": "{}"}},
            {"role": "function", "name": "j", "content": "done"},
            {"role": "user", "content": [
                "a", {"type": "text", "text": "b"}, {"type": "image_url", "image_url": "http://x/y.png"},
                {"type": "image_url", "image_url": {"url": "http://x/z.png", "detail": "low"}}, {"type": "new", "data": 1}
            ]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c3", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c3", "content": "done", "is_error": false}]}
        ]})),
        and(json!({"systemInstruction": {"parts": [{"text": "Answer."}]}, "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true, "thoughtSignature": "s"},
                {"functionCall": {"id": "c", "name": "f", "args": {}}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}}
            ]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}}]}
        ]})),
        and(json!({"instructions": "Answer.", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
            {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
            {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "done"}]},
            {"type": "web_search_call", "id": "w", "status": "completed"},
            {"role": "assistant", "content": "bye"}
        ]})),
        and(json!({"tools": "[{\"name\": \"f\"}]", "conversations": [
            {"from": "human", "value": "hi"},
            {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {}}"},
            {"from": "observation", "value": "done"},
            {"from": "gpt", "value": "bye"}
        ]})),
    ]
}

/// Replaces every value of a full session by values of every kind: the schema refuses all that the reader
/// refuses.
#[test]
fn a_wrong_type_in_a_session_is_refused_by_both() {
    let schema = Schema::named("session");
    let kinds = [
        json!(null),
        json!(true),
        json!(987),
        json!(-3),
        json!(1.5),
        json!("zzz"),
        json!([]),
        json!({}),
        json!([7]),
        json!({"zzz": 1}),
        json!([{"zzz": 1}]),
    ];
    let (mut cases, mut stricter) = (0, BTreeSet::new());
    for session in full_sessions() {
        schema.expect(&session, "the full session");
        Session::from_json(&session.to_string()).unwrap();
        for (place, _) in inside(&session).into_iter().skip(1) {
            for kind in &kinds {
                let changed = with(&session, &place, kind.clone());
                let read = Session::from_json(&changed.to_string());
                let taken = schema.takes(&changed);
                if let Err(error) = &read {
                    // No schema can express that a value holds conversation text (rule J3).
                    let is_law = error.to_string().contains("(--lenient ");
                    assert!(is_law || !taken, "{place} = {kind}: the reader says: {error}");
                } else if !taken {
                    stricter.insert(format!("{place} = {kind}"));
                }
                cases += 1;
            }
        }
        for (place, value) in inside(&session) {
            for key in value.as_object().into_iter().flatten().map(|(key, _)| key) {
                let mut less = session.clone();
                object(&mut less, &place).shift_remove(key);
                if let Err(error) = Session::from_json(&less.to_string()) {
                    let is_law = error.to_string().contains("(--lenient ");
                    assert!(
                        is_law || !schema.takes(&less),
                        "{place} without {key}: the reader says: {error}"
                    );
                }
            }
        }
    }
    assert!(cases > 3_000, "{cases}");
    // Serde accepts a list for an object in which every key is optional.
    let lists: Vec<&String> =
        stricter.iter().filter(|case| !case.ends_with("[]") && !case.ends_with("[7]")).collect();
    assert!(lists.is_empty(), "the schema is stricter than the reader: {lists:#?}");
}

#[test]
fn invalid_session_is_refused_by_reader_and_schema() {
    let schema = Schema::named("session");
    for (name, fixture) in
        json_files("tests/fixtures").into_iter().filter(|(name, _)| name.starts_with("error_"))
    {
        let Some(session) = fixture.get("session").filter(|_| fixture.get("config").is_none()) else {
            continue;
        };
        assert!(Session::from_json(&session.to_string()).is_err(), "{name}");
        assert!(!schema.takes(session), "{name}");
    }
    for text in [
        "{}",
        "3",
        "null",
        "\"hi\"",
        "[3]",
        r#"{"pinned":[]}"#,
        r#"{"messages":{}}"#,
        r#"[{"content":"hi"}]"#,
    ] {
        assert!(!schema.takes(&serde_json::from_str(text).unwrap()), "{text}");
        assert!(Session::from_json(text).is_err(), "{text}");
    }
    // Logs use keys of these names for other purposes, and editors add `$schema`.
    let log = json!({"$schema": "urn:context-window:session:1", "input": 3, "contents": 4, "instructions": [], "zzz": 5,
        "messages": [{"role": "user", "content": "hi", "usage": {}}]});
    schema.expect(&log, "a log");
    Session::from_json(&log.to_string()).unwrap();
}

#[test]
fn questions_schema_describes_the_example() {
    let schema = Schema::named("questions");
    let text = fs::read_to_string(root("examples/questions.jsonl")).unwrap();
    for line in text.lines() {
        schema.expect(&serde_json::from_str(line).unwrap(), "examples/questions.jsonl");
    }
    for wrong in [
        json!({"messages": []}),
        json!({"questions": [{"evidence": ["m0"]}]}),
        json!({"questions": [{"text": " ", "evidence": []}]}),
        json!({"questions": [{"text": "Why?", "evidence": [1]}]}),
    ] {
        assert!(!schema.takes(&wrong), "{wrong}");
    }
}
