//! Transcripts of coding agents and files of ShareGPT as sessions: small samples written for these tests,
//! with each event and block at least once.

use crate::foreign::said as lines_of;
use crate::support::laws::{self, Case};
use context_window::{
    Config, ContextWindowManager, Message, Model, WireFormat,
    conversation::{Entry, Event, HistoryRow},
    message::Part,
};
use context_window_formats::{Error, ErrorKind, Session, SessionFile};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write as _};

const FILES: [&str; 3] = ["claude_code.jsonl", "codex.jsonl", "sharegpt.json"];

fn text(name: &str) -> String {
    let path = crate::support::root().join("crates/formats/tests/transcripts").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn file(text: &str) -> Result<SessionFile, Error> {
    SessionFile::new("file", text.as_bytes().to_vec())
}

fn sessions(text: &str) -> Vec<Session> {
    file(text).unwrap().sessions().map(Result::unwrap).collect()
}

fn only(text: &str) -> Session {
    let mut sessions = sessions(text);
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

/// Formats the content of a message.
fn shown(message: &Message) -> String {
    let mut out = format!("{} {:?}", message.role().name(), message.text());
    for part in message.parts() {
        let _ = match part {
            Part::Text(text) => write!(out, "\n      text {text:?}"),
            other => write!(out, "\n      {other:?}"),
        };
    }
    for reasoning in message.reasoning() {
        let _ = write!(out, "\n      thought {:?} sealed {:?}", reasoning.text, reasoning.signature);
    }
    for call in message.tool_calls() {
        let _ = write!(out, "\n      call {} {} {}", call.id, call.name, call.arguments);
    }
    if let Some(call) = message.answers() {
        let _ = write!(out, "\n      answers {call}{}", if message.is_failed() { ", failed" } else { "" });
    }
    out
}

/// Formats the session that was read, as lines.
fn report(session: &Session) -> String {
    let mut out = format!("model {:?}, wire format {:?}\n", session.model, session.wire_format);
    for entry in session.log.entries() {
        if let Entry::Event(Event::SystemText { id, text }) = entry {
            let _ = writeln!(out, "  {id} system text {text:?}");
        }
    }
    for row in session.log.history() {
        let _ = match row {
            HistoryRow::Message { id, message, is_archived, .. } => {
                let sign = if is_archived { '-' } else { ' ' };
                writeln!(out, "{sign} {id} {}", shown(message))
            }
            HistoryRow::Compaction(record) => writeln!(
                out,
                "  compaction {} {:?}, {} archived, before {}, after {}, at {:?}: {:?}",
                record.number,
                record.kind,
                record.messages_archived,
                record.tokens_before,
                record.tokens_after,
                record.timestamp,
                record.summary
            ),
            HistoryRow::Rewound(before) => writeln!(out, "  rewound to before {before}"),
            _ => Ok(()),
        };
    }
    let mut messages = 0;
    for entry in session.log.entries() {
        match entry {
            Entry::Message(_) => messages += 1,
            Entry::Event(Event::Sent { usage, .. }) => {
                let _ = writeln!(out, "  reported on m{messages}: {:?}", usage.unwrap());
            }
            _ => {}
        }
    }
    for tool in &session.tools {
        let _ = writeln!(out, "  tool {} {:?} {}", tool.name, tool.description, tool.schema);
    }
    for note in session.ignored() {
        let _ = writeln!(out, "  note: {note}");
    }
    out
}

#[test]
fn each_is_read_as_it_was() {
    for name in FILES {
        let file = file(&text(name)).unwrap();
        let mut out = String::new();
        for (id, session) in file.ids().zip(file.sessions()) {
            let _ = writeln!(out, "=== {id}\n{}", report(&session.unwrap()));
        }
        insta::assert_snapshot!(name, out);
    }
}

/// Collects the texts in a JSON value, each with its key.
fn texts<'a>(key: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => found.push((key, text)),
        Value::Array(list) => list.iter().for_each(|value| texts(key, value, found)),
        Value::Object(object) => object.iter().for_each(|(key, value)| texts(key, value, found)),
        _ => {}
    }
}

/// Keys with metadata, not with content.
const ABOUT: [&str; 33] = [
    "type",
    "subtype",
    "role",
    "id",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "agentId",
    "requestId",
    "userType",
    "cwd",
    "version",
    "gitBranch",
    "timestamp",
    "stop_reason",
    "trigger",
    "originator",
    "cli_version",
    "source",
    "model_provider",
    "approval_policy",
    "mode",
    "effort",
    "from",
    "call_id",
    "tool_use_id",
    "status",
    "media_type",
    "model",
    "mode",
    "summary_type",
    "toolUseResult",
];

/// Every text of a file is in a log, or the type of its event is named in a note.
#[test]
fn every_text_is_in_the_log_or_its_event_in_a_note() {
    for name in FILES {
        let text = text(name);
        let read = sessions(&text);
        let logs: String = read.iter().map(report).collect();
        let notes: String = read.iter().flat_map(Session::ignored).cloned().collect();
        let values: Vec<Value> =
            serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
        let mut looked_at = 0;
        for event in &values {
            let kind = event["type"].as_str().unwrap_or_default();
            let inner = [&event["subtype"], &event["attachment"]["type"], &event["payload"]["type"]];
            let inner = inner.into_iter().find_map(Value::as_str);
            let named = inner.map_or_else(|| kind.to_owned(), |inner| format!("{kind}/{inner}"));
            // Only the model is read from the settings of a turn.
            if kind == "turn_context" || !kind.is_empty() && notes.contains(&format!(" {named}")) {
                continue;
            }
            let mut found = Vec::new();
            texts("", event, &mut found);
            for (_, said) in found.into_iter().filter(|(key, _)| !ABOUT.contains(key)) {
                // JSON inside a text of a call or tool may be stored as JSON.
                let plain = format!("{said:?}");
                let is_there =
                    logs.contains(plain.trim_matches('"')) || logs.contains(said) || as_json(said, &logs);
                let is_fixed = ["wire", "Conversation compacted", "narrator"].contains(&said);
                assert!(is_there || is_fixed, "{name}: {named}: {said:?} is nowhere:\n{logs}");
                looked_at += 1;
            }
        }
        assert!(looked_at > 8, "{name}: {looked_at}");
    }
}

/// Returns true if every text inside a JSON text is in the logs.
fn as_json(said: &str, logs: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(said.trim().trim_start_matches("<tool_call>")) else {
        // Calls in tags become calls, and the rest is text.
        let pieces =
            said.split(['\n', '<', '>']).filter(|piece| !piece.is_empty() && !piece.ends_with("tool_call"));
        return said.contains("<tool_call>")
            && pieces.into_iter().all(|piece| logs.contains(piece) || as_json(piece, logs));
    };
    let mut found = Vec::new();
    texts("", &value, &mut found);
    found.iter().all(|(key, text)| *key == "type" || logs.contains(text)) && !found.is_empty()
}

#[test]
fn each_plans_for_every_wire_format_at_every_budget() {
    let mut plans = 0;
    for session in FILES.iter().flat_map(|name| sessions(&text(name))) {
        for wire_format in [
            WireFormat::OpenAiChat,
            WireFormat::OpenAiResponses,
            WireFormat::Anthropic,
            WireFormat::Gemini,
            WireFormat::Plain,
        ] {
            let model = Model::custom("default").with_wire_format(wire_format);
            let manager = ContextWindowManager::configured(model, Config::default()).unwrap();
            for budget in [20, 90, 300, 4_000] {
                let mut limits = session.limits;
                limits.prompt_budget = Some(budget);
                let request = session.request().with_limits(limits);
                let plan = manager.build_plan(&request).unwrap();
                let case = Case {
                    manager: &manager,
                    request: &request,
                    messages: session.log.messages(),
                    rag: Vec::new(),
                    config: &Config::default(),
                    plan: &plan,
                };
                laws::hold(&case).unwrap_or_else(|law| panic!("{wire_format:?} at {budget}: {law}"));
                plans += 1;
            }
            for step in manager.explainer(&session.request()).replay() {
                step.unwrap();
            }
        }
    }
    assert_eq!(plans, 100);
}

/// Returns one event of a Claude Code transcript.
fn said(role: &str, uuid: &str, parent: Option<&str>, more: Value) -> Value {
    let mut event = json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s",
        "message": {"role": role, "content": uuid}});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| event.to_string() + "\n").collect()
}

fn said_in(session: &Session) -> Vec<&str> {
    session.log.messages().iter().map(Message::text).collect()
}

#[test]
fn threads_are_sessions() {
    let user = |uuid, parent, more| said("user", uuid, parent, more);
    // A resumed session continues under another id, and its events may refer to a parent that was not
    // recorded.
    let resumed = lines(&[
        json!({"type": "summary", "summary": "t", "leafUuid": "x"}),
        json!({"type": "queue-operation", "sessionId": "other"}),
        user("a", None, json!({})),
        user("b", Some("a"), json!({"sessionId": "s2"})),
        user("c", Some("lost"), json!({"sessionId": "s3"})),
        user("d", Some("c"), json!({"sessionId": "s3"})),
    ]);
    let session = only(&resumed);
    assert_eq!(said_in(&session), ["a", "b", "c", "d"]);
    assert_eq!(session.ignored(), ["2 events are not read: 1 queue-operation, 1 summary"]);
    // Two transcripts in one file are two sessions. Sub-agents are identified by their agent id or their
    // first event.
    let side = |agent: Value| json!({"isSidechain": true, "agentId": agent});
    let several = lines(&[
        user("a", None, json!({})),
        user("x", None, side(json!("agent"))),
        user("y", None, side(json!(null))),
        user("b", None, json!({"sessionId": "t"})),
        user("z", Some("y"), side(json!(null))),
        user("c", Some("a"), json!({})),
        user("w", Some("lost"), side(json!("agent"))),
    ]);
    let file = file(&several).unwrap();
    assert_eq!(file.len(), 4);
    assert_eq!(file.ids().collect::<Vec<_>>(), ["s", "agent", "y", "t"]);
    let read: Vec<Session> = file.sessions().map(Result::unwrap).collect();
    assert_eq!(
        read.iter().map(said_in).collect::<Vec<_>>(),
        [["a", "c"].as_slice(), &["x", "w"], &["y", "z"], &["b"]]
    );
    assert_eq!(file.session(Some("y")).unwrap().id.as_deref(), Some("y"));
    let error = file.session(None).unwrap_err().to_string();
    assert!(error.contains("contains 4 sessions; choose one by its id: s, agent, y, t"), "{error}");
    assert!(file.with_compaction(Some("s"), &compaction()).unwrap().is_none());
    // The transcript of a sub-agent alone.
    assert_eq!(only(&lines(&[user("x", None, side(json!("agent")))])).id.as_deref(), Some("agent"));
}

fn compaction() -> context_window::conversation::Compaction {
    let text = r#"[{"role":"user","content":"a"},{"role":"user","content":[{"type":"context_compaction","summary":"s"}]}]"#;
    Session::from_json(text).unwrap().log.compactions().next().unwrap().clone()
}

#[test]
fn boundaries_are_compactions() {
    let user = |uuid, parent, more| said("user", uuid, parent, more);
    let boundary = |more: Value| json!({"type": "system", "subtype": "compact_boundary", "uuid": "x", "compactMetadata": more});
    let summary = json!({"isCompactSummary": true});
    let kept = |more: Value| {
        let all = lines(&[
            user("a", None, json!({})),
            user("b", Some("a"), json!({})),
            boundary(more),
            user("s", Some("x"), summary.clone()),
            user("c", Some("s"), json!({})),
        ]);
        let session = only(&all);
        assert_eq!(said_in(&session), ["a", "b", "c"]);
        let record = session.log.compactions().next().unwrap().clone();
        (record.summary.unwrap(), record.messages_archived, record.tokens_before, record.tokens_after)
    };
    let all = |archived| ("s".to_owned(), archived, 0, 0);
    assert_eq!(kept(json!({"preTokens": 9, "postTokens": 4})), ("s".into(), 2, 9, 4));
    assert_eq!(kept(json!(null)), all(2));
    assert_eq!(kept(json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["b"]}})), all(1));
    assert_eq!(
        kept(json!({"preservedSegment": {"headUuid": "b", "anchorUuid": "s", "tailUuid": "b"}})),
        all(1)
    );
    assert_eq!(kept(json!({"preservedMessages": {"uuids": ["nowhere"]}})), all(2));
    // Without a summary, at the end, and a summary without a boundary.
    for (events, expected) in [
        (vec![user("a", None, json!({})), boundary(json!({})), user("b", Some("x"), json!({}))], (None, 1)),
        (vec![user("a", None, json!({})), boundary(json!({}))], (None, 1)),
        (vec![user("a", None, json!({})), user("s", Some("a"), summary.clone())], (Some("s"), 1)),
    ] {
        let session = only(&lines(&events));
        let record = session.log.compactions().next().unwrap();
        assert_eq!((record.summary.as_deref(), record.messages_archived), expected);
    }
    // A compaction that archives nothing is noted.
    let session =
        only(&lines(&[boundary(json!({})), user("s", Some("x"), summary), user("a", Some("s"), json!({}))]));
    assert!(session.ignored()[0].contains("compaction 1 is not used"), "{:?}", session.ignored());
}

/// The replacement history of a rollout: with a summary, encrypted, and absent.
#[test]
fn a_rollout_is_compacted() {
    let item = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let event = |kind: &str, payload: Value| json!({"type": kind, "payload": payload, "timestamp": "now"});
    let read = |compacted: Value| {
        let all = lines(&[
            event("session_meta", json!({"id": "r"})),
            event("response_item", item("a")),
            event("compacted", compacted),
            event("session_meta", json!({"id": "another", "base_instructions": {"text": "not ours"}})),
            event("response_item", item("b")),
        ]);
        let session = only(&all);
        assert_eq!(session.id.as_deref(), Some("r"));
        assert_eq!(session.ignored()[0], "1 event is not read: 1 session_meta");
        report(&session)
    };
    let summary = read(json!({"message": "S", "replacement_history": null}));
    assert!(
        summary
            .contains("compaction 1 Summary, 1 archived, before 0, after 0, at Some(\"now\"): Some(\"S\")"),
        "{summary}"
    );
    let sealed = read(
        json!({"message": "", "replacement_history": [item("a"), {"type": "compaction", "encrypted_content": "x"}]}),
    );
    assert!(
        sealed.contains("compaction 1 Fresh, 1 archived") && sealed.contains("encrypted_content"),
        "{sealed}"
    );
    assert!(sealed.contains("1 block is kept as its original JSON: 1 compaction"), "{sealed}");
    assert_eq!(sealed.matches("text \"a\"").count(), 2, "{sealed}");
}

/// A session with event-like keys is still read as a session. A list or a session among events is no event.
#[test]
fn no_session_is_mistaken_for_an_event() {
    let event = said("user", "u", None, json!({}));
    let session = json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "x"},
        "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(said_in(&only(&session.to_string())), ["hi"]);
    for other in [session, json!([{"role": "user", "content": "hi"}]), json!({"query": "hi"})] {
        for events in [[&event, &other], [&other, &event]] {
            let file = file(&lines(&events.map(Clone::clone))).unwrap();
            let read = file
                .sessions()
                .filter_map(Result::ok)
                .map(|session| said_in(&session).join(""))
                .collect::<String>();
            assert_eq!((file.len(), &*read), (2, "hi"), "{other}");
        }
    }
    // Events that both agents write, events that neither writes, and single messages.
    let codex =
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": "x"}});
    for events in [
        vec![event, codex],
        vec![json!({"type": "user", "message": {"role": "user"}})],
        vec![json!({"type": "message", "role": "user"})],
    ] {
        let error = file(&lines(&events)).unwrap().sessions().next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    }
}

/// An interface error is no model output, and messages shown only in the transcript were not sent to the
/// model.
#[test]
fn errors_and_transcript_only_messages_are_omitted() {
    let event = |uuid: &str, parent: &str, kind: &str, beside: Value, text: &str| {
        let mut event = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s",
            "message": {"role": kind, "content": [{"type": "text", "text": text}]}});
        event.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        event
    };
    let events = [
        event("1", "", "user", json!({}), "Is the Teal dry?"),
        event(
            "2",
            "1",
            "assistant",
            json!({"isApiErrorMessage": true, "error": "rate_limit"}),
            "API Error: 529",
        ),
        event("3", "2", "user", json!({"isVisibleInTranscriptOnly": true}), "Shown alone."),
        event("4", "3", "user", json!({}), "Go on."),
        event("5", "4", "assistant", json!({}), "It is dry."),
    ];
    let session = only(&lines(&events));
    assert_eq!(lines_of(&session), ["user: Is the Teal dry?", "user: Go on.", "assistant: It is dry."]);
    assert_eq!(
        session.ignored(),
        [
            "1 error message of the interface in place of a reply is left out",
            "1 message is only for the transcript: it is left out",
        ]
    );
}

#[test]
fn an_unknown_event_is_an_error_if_it_holds_a_text() {
    let said =
        json!({"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "hi"}});
    let meta = json!({"type": "session_meta", "payload": {"id": "s"}});
    let item = json!({"type": "response_item", "payload": {"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "hi"}]}});
    for known in [vec![said], vec![meta, item]] {
        let with = |other: Value| [&known[..], &[other]].concat();
        let empty = with(json!({"type": "weather", "at": 3, "state": "new"}));
        let session = only(&lines(&empty));
        assert_eq!(lines_of(&session), ["user: hi"]);
        assert!(session.ignored()[0].contains("1 weather"), "{:?}", session.ignored());
        for lost in [
            json!({"type": "weather", "text": "It is going to rain."}),
            json!({"type": "weather", "parts": [{"text": "It is going to rain."}]}),
            json!({"type": "weather", "message": {"role": "user", "content": "rain"}}),
            json!({"type": "weather", "tool": {"call_id": "c", "output": "rain"}}),
        ] {
            let file = file(&lines(&with(lost.clone()))).unwrap();
            let error = file.sessions().find_map(Result::err).unwrap_or_else(|| panic!("{lost}")).to_string();
            assert!(error.contains("`weather` is unknown and contains "), "{error}");
        }
    }
}

#[test]
fn undone_codex_turns_are_omitted() {
    let item = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        json!({"type": "response_item", "payload": {"type": "message", "role": role,
            "content": [{"type": kind, "text": text}]}})
    };
    let events = [
        json!({"type": "session_meta", "payload": {"id": "s"}}),
        item("user", "<environment_context>boats</environment_context>"),
        item("user", "Is the Teal dry?"),
        item("assistant", "It is."),
        item("user", "Paint it red."),
        item("assistant", "Painted."),
        json!({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}),
        item("user", "Paint it blue."),
    ];
    let session = only(&lines(&events));
    assert_eq!(
        lines_of(&session),
        [
            "user: <environment_context>boats</environment_context>",
            "user: Is the Teal dry?",
            "assistant: It is.",
            "user: Paint it blue.",
        ]
    );
    assert_eq!(session.ignored(), ["messages that the user removed are left out: 2"]);
}

/// The incomplete end after a crash is noted. In a file that is no transcript it is an error.
#[test]
fn an_unfinished_event_is_noted() {
    for name in &FILES[..2] {
        let whole = text(name);
        let lines = whole.lines().count();
        let note = format!("line {} is incomplete (9 bytes) and is not used", lines + 1);
        for session in sessions(&format!("{whole}{{\"type\": ")) {
            assert_eq!(session.ignored().last().unwrap(), &note);
        }
        assert!(file(&format!("{whole}}}")).is_err());
    }
    for text in ["{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n{\"mess", "{\"type\": "] {
        let error = file(text).unwrap_err().to_string();
        assert!(error.contains("not JSON: EOF"), "{error}");
    }
}

/// Replaces every value of every event by values of every kind, and removes every key. The result is an error
/// with file and line, or a session that plans, and never a panic.
#[test]
fn a_hostile_transcript_is_an_error_or_a_session() {
    let kinds = [
        json!(null),
        json!(true),
        json!(-3),
        json!(1e300),
        json!("\u{1b}[31m"),
        json!([]),
        json!({}),
        json!([7, {}]),
        json!({"type": 1}),
    ];
    let (mut read, mut errors) = (0, BTreeSet::new());
    for name in FILES {
        let text = text(name);
        let values: Vec<Value> =
            serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect();
        for (at, event) in values.iter().enumerate() {
            for place in places(event) {
                for kind in &kinds {
                    let mut changed = values.clone();
                    *changed[at].pointer_mut(&place).unwrap() = kind.clone();
                    check(&lines(&changed), &mut read, &mut errors);
                }
            }
            let mut less = values.clone();
            less.remove(at);
            check(&lines(&less), &mut read, &mut errors);
        }
        for end in (0..text.len()).step_by(97) {
            check(&String::from_utf8_lossy(&text.as_bytes()[..end]), &mut read, &mut errors);
        }
    }
    assert!(read > 5_000 && errors.len() > 20, "{read}, {errors:#?}");
}

/// Returns the places of all values inside a value.
fn places(value: &Value) -> Vec<String> {
    let inner =
        |key: String, value: &Value| places(value).into_iter().map(move |place| format!("/{key}{place}"));
    let mut all = vec![String::new()];
    match value {
        Value::Object(object) => all.extend(
            object.iter().flat_map(|(key, value)| inner(key.replace('~', "~0").replace('/', "~1"), value)),
        ),
        Value::Array(list) => {
            all.extend(list.iter().enumerate().flat_map(|(at, value)| inner(at.to_string(), value)))
        }
        _ => {}
    }
    all
}

fn check(text: &str, read: &mut u32, errors: &mut BTreeSet<String>) {
    let file = match file(text) {
        Ok(file) => file,
        Err(error) => {
            errors.insert(error.to_string());
            return;
        }
    };
    for session in file.sessions() {
        match session {
            Ok(session) => {
                *read += 1;
                let notes = session.ignored();
                assert!(notes.len() < 12 && notes.iter().all(|note| note.len() < 1_200), "{notes:?}");
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("file:") && error.len() < 500, "{error}");
                errors.insert(error);
            }
        }
    }
}
