//! No data is lost on reading: the content of a session file is in the log, or a note reports its omission.

use context_window::{Message, Role, conversation::HistoryRow};
use context_window_formats::{FileFormat, ReadOptions, Session, SessionFile};
use std::fmt::Write as _;

fn session(messages: &str) -> Session {
    Session::from_json(&format!("{{\"messages\": [{messages}]}}")).unwrap()
}

/// Formats a message in one line: its id, its role and its content.
fn line(at: usize, message: &Message) -> String {
    let id = message.id().map_or_else(|| format!("m{at}"), ToString::to_string);
    let mut line = format!("{id} {}:{}", message.role().name(), message.text());
    for part in message.parts() {
        let _ = write!(line, " {part:?}");
    }
    for call in message.tool_calls() {
        let _ = write!(line, " {}({})", call.name, call.arguments);
    }
    line
}

fn lines(session: &Session) -> Vec<String> {
    session.log.messages().iter().enumerate().map(|(at, message)| line(at, message)).collect()
}

const COMPACTION: &str = r#"{"type":"context_compaction","summary":"Kettles."}"#;

#[test]
fn parts_next_to_a_compaction_become_a_message_after_it() {
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let image = r#"{"type":"image_url","image_url":"http://x/y.png"}"#;
    let (before, after) = (text("before"), text("after"));
    let read = session(&format!(
        r#"{{"role":"user","content":"old"}},
        {{"role":"user","id":"u","content":[{before},{COMPACTION},{image},{after}]}},
        {{"role":"user","content":"new"}}"#
    ));
    assert_eq!(
        lines(&read),
        [
            "m0 user:old",
            "u user: Text(\"before\") Image { url: \"http://x/y.png\", detail: None } Text(\"after\")",
            "m2 user:new"
        ]
    );
    let record = read.log.compactions().next().unwrap();
    assert_eq!((record.messages_archived, record.first_active.as_ref()), (1, None));
    let active = read.log.active().filter(|entry| matches!(entry, HistoryRow::Message { .. })).count();
    assert_eq!(active, 2);
    assert!(read.ignored().is_empty(), "{:?}", read.ignored());

    // Calls and results next to it, and a second compaction, which has nothing left to archive.
    let read = session(&format!(
        r#"{{"role":"user","content":"old"}},
        {{"role":"assistant","content":[{COMPACTION},{COMPACTION},{{"type":"tool_use","id":"c","name":"f","input":{{}}}}]}},
        {{"role":"user","content":[{COMPACTION},{{"type":"tool_result","tool_use_id":"c","content":"done"}}]}},
        {{"role":"assistant","content":[{COMPACTION}],"reasoning_content":"hm"}}"#
    ));
    assert_eq!(lines(&read)[1], "m1 assistant: f({})");
    assert_eq!(lines(&read)[2], "m2 tool:done");
    assert_eq!(read.log.messages()[3].reasoning()[0].text, "hm");
    let told = read.ignored().iter().filter(|note| note.contains("is not used")).count();
    assert_eq!(told + read.log.compactions().count(), 4, "{:?}", read.ignored());

    // A compaction alone is still no message.
    let read =
        session(&format!(r#"{{"role":"user","content":"old"}},{{"role":"user","content":[{COMPACTION}]}}"#));
    assert_eq!((read.log.messages().len(), read.log.compactions().count()), (1, 1));
    let error =
        Session::from_json(&format!(r#"[{{"role":"user","content":[{COMPACTION},3]}}]"#)).unwrap_err();
    assert!(error.to_string().contains("messages[0].content: expected a part"), "{error}");
}

/// A compaction may be next to a message's content, next to the messages, or in parts of the AI SDK.
#[test]
fn compaction_is_read_at_any_position() {
    let compaction = r#"{"compaction_number":1,"summary":"Kettles.","first_active":"u2"}"#;
    let own = r#"{"type":"context_compaction","compaction_number":1,"summary":"Kettles."}"#;
    for text in [
        format!(
            r#"{{"messages":[{{"role":"user","content":"old"}},{{"role":"assistant","content":"said"}},
            {{"role":"user","id":"u2","content":"new","compaction":{compaction}}}]}}"#
        ),
        format!(
            r#"{{"compaction":{compaction},"messages":[{{"role":"user","content":"old"}},
            {{"role":"assistant","content":"said"}},{{"role":"user","id":"u2","content":"new"}}]}}"#
        ),
        format!(
            r#"[{{"id":"u0","role":"user","parts":[{{"type":"text","text":"old"}}]}},
            {{"id":"a1","role":"assistant","parts":[{{"type":"text","text":"said"}}]}},
            {{"id":"c","role":"user","parts":[{own}]}},
            {{"id":"u2","role":"user","parts":[{{"type":"text","text":"new"}}]}}]"#
        ),
        format!(
            r#"{{"messages":[{{"id":"u0","role":"user","parts":[{{"type":"text","text":"old"}}]}},
            {{"id":"a1","role":"assistant","parts":[{{"type":"text","text":"said"}}]}},
            {{"id":"u2","role":"user","parts":[{{"type":"text","text":"new"}}],"compaction":{compaction}}}]}}"#
        ),
    ] {
        let read = Session::from_json(&text).unwrap();
        assert!(read.ignored().is_empty(), "{:?}\n{text}", read.ignored());
        let record = read.log.compactions().next().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((record.messages_archived, record.summary.as_deref()), (2, Some("Kettles.")), "{text}");
        let texts: Vec<&str> = read.log.messages().iter().map(Message::text).collect();
        assert_eq!(texts, ["old", "said", "new"], "{text}");
    }
    let read = session(r#"{"role":"user","content":"old"},{"role":"user","content":"new"}"#);
    assert_eq!(read.log.compactions().count(), 0);
    let without = r#"{"compaction":{"summary":"Kettles."},"messages":[{"role":"user","content":"old"}]}"#;
    let read = Session::from_json(without).unwrap();
    assert!(read.ignored()[0].contains("does not specify `first_active`"), "{:?}", read.ignored());
}

#[test]
fn a_time_of_serde_is_a_time() {
    let read = |time: &str| {
        session(&format!(
            r#"{{"role":"user","content":"old"}},
            {{"role":"user","content":[{{"type":"context_compaction","summary":"s","timestamp":{time}}}]}}"#
        ))
    };
    let timestamp = |time: &str| read(time).log.compactions().next().unwrap().timestamp.clone();
    for (time, expected) in [
        (r#"{"secs_since_epoch":1795253400,"nanos_since_epoch":0}"#, Some("2026-11-21T09:30:00Z")),
        (r#"{"nanos_since_epoch":250000000,"secs_since_epoch":1795253400}"#, Some("2026-11-21T09:30:00.25Z")),
        (r#""yesterday""#, Some("yesterday")),
        ("null", None),
    ] {
        assert_eq!(timestamp(time).as_deref(), expected, "{time}");
    }
    for wrong in [
        r#"{"secs_since_epoch":1}"#,
        r#"{"secs_since_epoch":-1,"nanos_since_epoch":0}"#,
        r#"{"secs_since_epoch":1,"nanos_since_epoch":1000000000}"#,
        "17",
    ] {
        let session = read(wrong);
        assert_eq!(session.log.compactions().count(), 0, "{wrong}");
        assert!(session.ignored()[0].contains("secs_since_epoch"), "{wrong}: {:?}", session.ignored());
    }
    let written =
        serde_json::to_string(&timestamp("{\"secs_since_epoch\":0,\"nanos_since_epoch\":0}")).unwrap();
    assert_eq!(written, "\"1970-01-01T00:00:00Z\"");
}

fn refused(messages: &str) -> String {
    Session::from_json(&format!("{{\"messages\": [{messages}]}}")).unwrap_err().to_string()
}

/// Reads messages in lenient mode.
fn lenient(messages: &str) -> Session {
    let text = format!("{{\"messages\": [{messages}]}}");
    let file = SessionFile::with_options("session", text.into_bytes(), ReadOptions::new().lenient()).unwrap();
    file.session(None).unwrap()
}

#[test]
fn unread_key_with_text_is_an_error() {
    let at = "is unknown and contains";
    for (messages, expected) in [
        (r#"{"role":"user","contnt":"hi"}"#, "messages[0].contnt: {at} text; did you mean `content`?"),
        (
            r#"{"role":"user","content":"hi"},{"role":"assistant","text":"hello"}"#,
            "messages[1].text: {at} text; did you mean `content`?",
        ),
        (
            r#"{"role":"assistant","content":"c","tool_cals":[{"function":{"name":"f"}}]}"#,
            "messages[0].tool_cals: {at} a tool call or a tool result",
        ),
        (
            r#"{"role":"user","content":"hi","parts":[{"type":"text","text":"more words"}]}"#,
            "messages[0].content: contains text that is in no part of the message",
        ),
        (r#"{"role":"user","mine":"some words"}"#, "messages[0].mine: {at} text"),
        (r#"{"role":"tool","tool_call_id":"c","result":"some words"}"#, "messages[0].result: {at} text"),
        (
            r#"{"role":"user","content":[{"words":"some words"}]}"#,
            "messages[0].content[0]: has no `type` and contains text",
        ),
    ] {
        let error = refused(&format!(r#"{{"role":"user","content":"first"}},{messages}"#));
        let moved = expected.replace("messages[1]", "messages[2]").replace("messages[0]", "messages[1]");
        let expected = format!("session:1: {}", moved.replace("{at}", at));
        assert!(error.starts_with(&expected), "{error}\n{expected}");
        let read = lenient(&format!(r#"{{"role":"user","content":"first"}},{messages}"#));
        assert_eq!(lines(&read)[0], "m0 user:first");
        let is_sent = messages.contains("words\":\"some");
        assert!(is_sent || read.ignored()[0].starts_with("left out: messages["), "{:?}", read.ignored());
    }
    let whole = r#"{"system":"s","history":[{"role":"user","content":"hi"}]}"#;
    let error = Session::from_json(whole).unwrap_err().to_string();
    assert!(
        error.starts_with("session:1: history: is not read and contains messages; did you mean `messages`?"),
        "{error}"
    );
}

#[test]
fn a_misspelt_key_of_a_message_is_named() {
    let read = session(
        r#"{"role":"user","content":"hi"},{"role":"assistant","id":"a","content":"c","pined":true},
        {"role":"assistant","content":"c","tool_cals":[]},{"role":"assistant","content":"c","pined":true}"#,
    );
    assert_eq!(
        read.ignored(),
        [
            "the key `pined` of messages[1] (`a`), and of 1 more messages, is not read; did you mean `pinned`?",
            "the key `tool_cals` of messages[2] is not read; did you mean `tool_calls`?",
        ]
    );
    // Keys that only the log uses, and a similar name next to the correct key.
    let read = session(
        r#"{"role":"user","content":"hi","text":"hi","contents":3,"usage":{},"ts":1,"timestamp":"x","refusal":null,
        "session":"s","metadata":{},"cache_control":{},"annotations":[]}"#,
    );
    assert!(read.ignored().is_empty(), "{:?}", read.ignored());
    // A thousand misspelt keys do not give a thousand lines.
    let slips: Vec<String> =
        (0..1_000).map(|at| format!(r#"{{"role":"user","content":"x","pinned{}":true}}"#, at % 10)).collect();
    let read = session(&slips.join(","));
    assert_eq!(read.ignored().len(), 9, "{:?}", read.ignored());
    assert!(read.ignored()[8].starts_with("200 more keys"), "{:?}", read.ignored());
}

#[test]
fn packed_file_is_reported_as_packed() {
    let error = SessionFile::new("talk.json.gz", vec![0x1f, 0x8b, 8, 0, 0]).unwrap_err().to_string();
    assert!(
        error.contains("talk.json.gz") && error.contains("gzip") && error.contains("decompress"),
        "{error}"
    );
}

/// No real session has a key that looks misspelt.
#[test]
fn real_sessions_have_no_suspected_typos() {
    for file in crate::support::data::files(&["conv_", "long_", "rag_"]) {
        for session in file.sessions() {
            let session = session.unwrap();
            let slips: Vec<&String> =
                session.ignored().iter().filter(|note| note.contains("did you mean")).collect();
            assert!(slips.is_empty(), "{:?}: {slips:?}", session.id);
        }
    }
}

#[test]
fn the_turns_of_sharegpt_are_messages() {
    let turns = r#"[{"from":"human","value":"Is the Wren there?"},
        {"from":"function_call","value":"[{\"name\":\"stock\",\"arguments\":{\"item\":\"Wren\"}},{\"name\":\"price\",\"arguments\":{}}]"},
        {"from":"observation","value":"3"},{"from":"tool","value":"29"},
        {"from":"function_call","value":"no JSON"},{"from":"gpt","value":"<tool_call>{broken</tool_call>"},
        {"from":"observation","value":"late"},{"from":"narrator","value":""},{"from":"narrator","value":" "}]"#;
    let read = Session::from_json(&format!(r#"{{"system":"S","conversations":{turns}}}"#)).unwrap();
    assert_eq!(
        lines(&read),
        [
            "m0 user:Is the Wren there?",
            r#"m1 assistant: stock({"item":"Wren"}) price({})"#,
            "m2 tool:3",
            "m3 tool:29",
            "m4 assistant:no JSON",
            "m5 assistant:<tool_call>{broken</tool_call>",
            "m6 tool:late",
        ]
    );
    let answers: Vec<_> = read.log.messages().iter().filter_map(Message::answers).collect();
    let calls: Vec<_> = read.log.messages()[1].tool_calls().iter().map(|call| &*call.id).collect();
    assert_eq!((&answers[..2], answers[2]), (&calls[..], "call_of_6"));
    assert_eq!(
        read.ignored(),
        [
            "2 turns are not read: their speakers are unknown: 2 narrator",
            "1 tool result has no tool call in the file: providers reject it"
        ]
    );
    assert_eq!(read.unread_keys(), []);
    let said = format!(r#"{{"conversations":{}}}"#, turns.replace(r#""value":" ""#, r#""value":"A pause.""#));
    let error = Session::from_json(&said).unwrap_err().to_string();
    assert!(error.contains("conversations[8]: has the unknown speaker `narrator`"), "{error}");

    // One of several forms: a list of sessions, JSON lines, one object; and input that is not ShareGPT.
    let one = r#"{"id":"a","conversations":[{"from":"user","value":"x"}]}"#;
    for (text, ids) in [
        (format!("[{one},\n {}]", one.replace("\"id\":\"a\",", "")), vec!["a", "2"]),
        (format!("{one}\n{}", one.replace("\"a\"", "\"b\"")), vec!["a", "b"]),
        (one.to_owned(), vec!["a"]),
    ] {
        let file = SessionFile::new("f", text.clone().into_bytes()).unwrap();
        assert_eq!(file.ids().collect::<Vec<_>>(), ids, "{text}");
        for session in file.sessions() {
            assert_eq!(session.unwrap().log.messages()[0].role(), Role::User);
        }
    }
    let own = |value: &str| Session::from_json(&format!(r#"{{"query":"q","conversations":{value}}}"#));
    for value in ["3", "[]", "[3]", r#"[{"role":"user"}]"#, r#"{"from":"human"}"#] {
        let session = own(value).unwrap();
        assert_eq!(session.log.messages().len(), 1, "{value}");
    }
    let beside =
        r#"{"messages":[{"role":"user","content":"m"}],"conversations":[{"from":"human","value":"c"}]}"#;
    let error = Session::from_json(beside).unwrap_err().to_string();
    assert!(error.starts_with("session:1: conversations: is not read and contains messages"), "{error}");
    let options = ReadOptions::new().lenient();
    let file = SessionFile::with_options("session", beside.as_bytes().to_vec(), options).unwrap();
    assert_eq!(file.session(None).unwrap().log.messages()[0].text(), "m");
    for (value, expected) in [
        (r#"[{"from":"human","value":"a"},{"from":"gpt"}]"#, "conversations[1]: has no value"),
        (r#"[{"from":"human","value":"a"},{"value":"b"}]"#, "conversations[1]: missing field `from`"),
        (r#"[{"from":"human","value":3}]"#, "conversations[0]: invalid type"),
    ] {
        let error = own(value).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("session:1"), "{error}");
    }
    let tools = r#"{"query":"q","tools":"[{\"name\":\"f\"}]"}"#;
    assert_eq!(Session::from_json(tools).unwrap().tools[0].name, "f");
    for wrong in ["\"f\"", "\"{}\"", "3"] {
        let error =
            Session::from_json(&format!("{{\"query\":\"q\",\"tools\":{wrong}}}")).unwrap_err().to_string();
        assert!(error.contains("tools: ") && error.contains("an array of tools"), "{error}");
    }
}

/// Regression tests: each of these files once lost data without a message.
#[test]
fn silent_losses_are_read_or_refused() {
    // An empty refusal counts as absent.
    let read = session(r#"{"role":"user","content":"q"},{"role":"assistant","content":"yes","refusal":""}"#);
    assert_eq!(lines(&read)[1], "m1 assistant:yes");
    let manager = context_window::ContextWindowManager::for_model("gpt-4o").unwrap();
    let plan = manager.build_plan(&read.request()).unwrap();
    let said = context_window::render::openai(&plan).to_string();
    assert!(said.contains(r#""content":"yes""#), "{said}");
    // One word under another name of the content, if there is no other content.
    assert!(refused(r#"{"role":"assistant","content":"","text":"Yes"}"#).contains("messages[0].text"));
    assert!(refused(r#"{"role":"tool","tool_call_id":"c","output":"Yes"}"#).contains("messages[0].output"));
    // Results without calls, and a second result for one call.
    let call = r#"{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"c","content":"done"}"#;
    let note = "1 tool result has no tool call in the file: providers reject it";
    assert_eq!(session(&format!("{call},{result},{result}")).ignored(), [note]);
    assert_eq!(session(result).ignored(), [note]);
    assert!(session(&format!("{call},{result}")).ignored().is_empty());
    // A result of Anthropic with nulls, as an SDK dumps it.
    let read = session(
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"done","is_error":null}]}"#,
    );
    assert_eq!(lines(&read)[1], "m1 tool:done");
    // A call of Gemini next to an empty text, and next to a text.
    let gemini = |text: &str| {
        Session::from_json(&format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"q"}}]}},
            {{"role":"model","parts":[{{"text":"{text}","functionCall":{{"id":"","name":"f","args":{{}}}}}}]}},
            {{"role":"user","parts":[{{"functionResponse":{{"id":"","name":"f","response":{{"output":"done"}}}}}}]}}]}}"#
        ))
    };
    let read = gemini("").unwrap();
    assert_eq!(lines(&read)[1..], ["m1 assistant: f({})", "m2 tool:done"]);
    assert!(gemini("words").unwrap_err().to_string().contains("a text in addition to a tool call"));
    // Messages of two conversations.
    let of = |id: &str| format!(r#"{{"role":"user","content":"q","session_id":"{id}"}}"#);
    assert_eq!(session(&format!("{},{}", of("a"), of("a"))).log.messages().len(), 2);
    assert!(
        refused(&format!("{},{}", of("a"), of("b"))).contains("messages[1].session_id: belongs to another")
    );
    // If no session can be read, an id does not help.
    let file = SessionFile::new("f", b"{\"a\":1}\n{\"b\":2}".to_vec()).unwrap();
    let error = file.session(None).unwrap_err().to_string();
    assert!(error.starts_with("f:1: is an empty session"), "{error}");
}

/// Application data next to a message of another tool: short values are noted, longer ones refused.
#[test]
fn metadata_of_other_tools_is_noted_or_refused() {
    let read = |beside: &str| {
        let text = format!(r#"[{{"role":"user","content":[{{"text":"Is the Heron free?"}}],{beside}}}]"#);
        Session::read_as(&text, FileFormat::Bedrock)
    };
    for beside in [
        r#""title":"Looking up boats""#,
        r#""created_at":"Fri Nov 27 2026 10:00:00 GMT""#,
        r#""author_name":"Bo Miller","feedback":"thumbs up there""#,
    ] {
        let session = read(beside).unwrap();
        assert_eq!(lines(&session), ["m0 user:Is the Heron free?"], "{beside}");
        let key = beside.split('"').nth(1).unwrap();
        assert_eq!(session.ignored()[0], format!("keys `{key}` are not read; the first contains text"));
    }
    let long = "plank and rope ".repeat(20);
    for beside in [
        format!(r#""source":"{long}""#),
        format!(r#""user":{{"data":"{long}"}}"#),
        r#""status":{"name":"f","arguments":{"n":1}}"#.to_owned(),
        r#""nickname":"Looking up boats""#.to_owned(),
    ] {
        let error = read(&beside).unwrap_err().to_string();
        let key = beside.split('"').nth(1).unwrap();
        assert!(error.contains(&format!("[0].{key}: is unknown and contains")), "{error}");
    }
}

/// A text found only in unread keys has a note, for any number of occurrences. A text that was also read has
/// none.
#[test]
fn a_text_of_two_unread_keys_is_noted() {
    let read = |beside: &str| {
        let text =
            format!(r#"{{{beside},"messages":[{{"role":"user","content":"Is the \"Heron\" free?"}}]}}"#);
        Session::from_json(&text).unwrap().ignored().len()
    };
    assert_eq!(read(r#""aside":"words of a log","more":"words of a log""#), 2);
    assert_eq!(read(r#""aside":"Is the \"Heron\" free?""#), 0);
    let twice = r#"{"system_prompt":"Be kind to boats.","note":"Be kind to boats.","messages":[{"role":"user","content":"q"}]}"#;
    let error = Session::from_json(twice).unwrap_err().to_string();
    assert!(
        error.contains("system_prompt: is not read and contains text; did you mean `system`?"),
        "{error}"
    );
    // A message that contains a quotation twice.
    let part = r#"{"role":"user","content":[{"type":"text","text":"\"Heron\" or \"Otter\""}],"text":"\"Heron\" or \"Otter\""}"#;
    assert!(session(part).ignored().is_empty());
}

/// A result that names another tool than the open calls is matched with none, at any position.
#[test]
fn a_result_of_another_tool_is_no_answer_by_its_place() {
    let call = |name: &str| format!(r#"{{"function":{{"name":"{name}","arguments":{{}}}}}}"#);
    let read = session(&format!(
        r#"{{"role":"user","content":"q"}},{{"role":"assistant","content":"","tool_calls":[{},{}]}},
        {{"role":"tool","tool_name":"moon","content":"FULL"}},{{"role":"tool","tool_name":"wind","content":"WIND"}},
        {{"role":"tool","content":"TIDE"}}"#,
        call("tide"),
        call("wind"),
    ));
    let calls: Vec<&str> = read.log.messages()[1].tool_calls().iter().map(|call| &*call.id).collect();
    let answers: Vec<&str> = read.log.messages().iter().skip(2).filter_map(Message::answers).collect();
    assert_eq!(answers, ["call_of_moon", calls[1], calls[0]]);
    assert_eq!(read.ignored(), ["1 tool result has no tool call in the file: providers reject it"]);
    // Of two results without a name, the first is matched by a guess.
    let read = session(&format!(
        r#"{{"role":"assistant","content":"","tool_calls":[{},{}]}},
        {{"role":"tool","content":"TIDE"}},{{"role":"tool","content":"WIND"}}"#,
        call("tide"),
        call("wind"),
    ));
    assert_eq!(read.ignored(), ["1 tool result has no id and no name: it is assigned to the next tool call"]);
}

/// The first messages may not identify the format: a file that is no session is examined as a whole.
#[test]
fn a_shape_that_later_messages_show_is_found() {
    let mut messages = vec![r#"{"role":"user","content":"word"}"#.to_owned(); 12];
    messages.push(
        r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"f","input":{}}]}"#
            .into(),
    );
    messages.push(
        r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"f",
        "output":{"type":"text","value":"done"}}]}"#
            .into(),
    );
    let read = Session::from_json(&format!("[{}]", messages.join(","))).unwrap();
    assert_eq!(lines(&read)[12..], ["m12 assistant: f({})", "m13 tool:done"]);
}
