//! Input values of any length give no long error, notice or note (rule V4).

use crate::support::generate::is_full;
use context_window::{
    Config, ContextWindowManager, Conversation, Error, Message, Model, RequestLimits, TokenCounter, ToolCall,
    WireFormat,
    config::{ConfigLayers, LoadedConfig},
    provider::Registry,
    render,
    usage::CacheLife,
};
use context_window_formats::{
    FieldMap, Session, SessionFile, SessionTexts, push_json, session_json, tools_from_json,
};
use serde_json::{Value, json};
use std::fmt::Display;

/// Maximum length of an error, notice or note, in characters.
const LONGEST: usize = 2_000;

/// Returns values of a megabyte: of letters, of text that readers write around a value, of control sequences,
/// of wide characters.
fn long_values() -> Vec<String> {
    let bytes = if is_full() { 1_000_000 } else { 20_000 };
    ["x", "`, expected \"", "\u{1b}[31m\n\"", "é🦀"]
        .into_iter()
        .map(|text| text.repeat(bytes / text.len()) + "END")
        .collect()
}

/// Fails if a sentence is too long.
fn assert_short(what: &str, said: impl Display) {
    let said = said.to_string();
    let count = said.chars().count();
    let start: String = said.chars().take(300).collect();
    assert!(count <= LONGEST, "{what}: {count} characters: {start}");
}

/// Returns a session with every key set that holds a value.
fn session() -> Value {
    json!({
        "id": "one", "model": "gpt-4o", "provider": "openai", "system": "Be brief.", "query": "Where?",
        "focus": "kettles", "state": {"cart": "empty"}, "tool_choice": "auto",
        "pinned": [{"id": "note", "text": "A note.", "priority": "high", "ttl": 2}],
        "rag": [{"id": "doc", "text": "A document.", "score": 0.5, "origin": "doc.md"}],
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}},
            {"type": "web_search", "name": "search"}
        ],
        "limits": {"prompt_budget": 400},
        "messages": [
            {"role": "system", "id": "s", "content": "Be kind."},
            {"role": "user", "id": "a", "name": "ida", "content": [{"type": "text", "text": "Hello?"}, {"type": "strange", "x": "y"}]},
            {"role": "assistant", "id": "b", "content": null, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"a\": 1}"}},
                {"id": "c", "type": "function", "function": {"name": "look", "arguments": "[]"}},
                {"id": "d", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ]},
            {"role": "user", "id": "e", "content": "Wait.", "priority": "low", "pinned": true, "ttl": 1, "contents": "?"},
            {"role": "tool", "id": "f", "tool_call_id": "c", "content": "Found."},
            {"role": "assistant", "id": "g", "content": "Yes.", "reasoning_content": "Hm."},
            {"role": "user", "id": "h", "content": [{"type": "context_compaction", "summary": "So far.", "first_active": "g"}]},
            {"role": "user", "id": "last", "content": "And now?"}
        ]
    })
}

/// Returns provider bodies, a written session, transcripts, and invalid replies.
fn bodies() -> Vec<(String, Vec<Value>)> {
    let mut log = Conversation::from([
        Message::user("Hello?"),
        Message::assistant("").with_tool_calls([ToolCall::new("c", "look", "{}")]),
        Message::tool("c", "Found."),
        Message::assistant("Yes."),
    ]);
    log.start_fresh();
    log.push(Message::user("And now?"));
    let mut all = vec![
        ("session".to_owned(), vec![session()]),
        (
            "ids used twice".into(),
            vec![
                json!({"messages": [{"role": "user", "id": "q", "content": "a"}, {"role": "user", "id": "q", "content": "b"}]}),
            ],
        ),
        (
            "ids of two kinds".into(),
            vec![
                json!({"messages": [{"role": "user", "id": "q", "content": "a"}], "pinned": [{"id": "q", "text": "b"}]}),
            ],
        ),
        (
            "two sessions".into(),
            ["p", "q"].map(|id| json!({"id": id, "messages": [{"role": "user", "content": id}]})).into(),
        ),
    ];
    let request = context_window::PlanRequest::new(&log);
    for wire_format in
        [WireFormat::OpenAiChat, WireFormat::OpenAiResponses, WireFormat::Anthropic, WireFormat::Gemini]
    {
        let manager = manager(wire_format);
        let plan = manager.build_plan(&request).unwrap();
        let body = render::body(&plan, wire_format).with_breakpoints(CacheLife::FiveMinutes);
        all.push((wire_format.name().to_owned(), vec![serde_json::to_value(&body).unwrap()]));
        let written = session_json(&manager, &request, SessionTexts::Kept).unwrap();
        all.push((format!("written, {}", wire_format.name()), vec![serde_json::from_str(&written).unwrap()]));
    }
    for name in ["claude_code.jsonl", "codex.jsonl", "sharegpt.json"] {
        let path = format!("{}/tests/transcripts/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let events = serde_json::Deserializer::from_str(&text).into_iter();
        all.push((name.into(), events.map(Result::unwrap).collect()));
    }
    all
}

fn manager(wire_format: WireFormat) -> ContextWindowManager {
    let model = Model::custom("m").with_wire_format(wire_format);
    ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap()
}

/// Collects the strings of a value, including keys, each once.
fn strings(value: &Value, found: &mut Vec<String>) {
    let mut add = |text: &str| {
        if !found.iter().any(|known| known == text) {
            found.push(text.to_owned());
        }
    };
    match value {
        Value::String(text) => add(text),
        Value::Array(list) => list.iter().for_each(|value| strings(value, found)),
        Value::Object(object) => {
            object.keys().for_each(|key| add(key));
            object.values().for_each(|value| strings(value, found));
        }
        _ => {}
    }
}

/// Returns a value with every occurrence of one string replaced.
fn replaced(value: &Value, old: &str, new: &str) -> Value {
    let text = |text: &str| if text == old { new.to_owned() } else { text.to_owned() };
    match value {
        Value::String(one) => Value::String(text(one)),
        Value::Array(list) => list.iter().map(|value| replaced(value, old, new)).collect(),
        Value::Object(object) => {
            object.iter().map(|(key, value)| (text(key), replaced(value, old, new))).collect()
        }
        other => other.clone(),
    }
}

/// Returns every error, note and notice of a file: read, and planned for two kinds of provider.
fn sentences(text: &str, long: &str) -> Vec<String> {
    let file = match SessionFile::new("file", text.as_bytes().to_vec()) {
        Ok(file) => file,
        Err(error) => return vec![error.to_string()],
    };
    let mut said = Vec::new();
    said.extend(file.session(Some(long)).err().map(|error| error.to_string()));
    said.extend(file.session(None).err().map(|error| error.to_string()));
    for session in file.sessions() {
        let session = match session {
            Ok(session) => session,
            Err(error) => {
                said.push(error.to_string());
                continue;
            }
        };
        said.extend(session.ignored().iter().map(ToString::to_string));
        for wire_format in [WireFormat::OpenAiChat, WireFormat::Anthropic] {
            match planner(&session, wire_format, long) {
                Ok(manager) => said.extend([120, 100_000_000].into_iter().flat_map(|budget| {
                    let request = session.request().with_limits(RequestLimits::prompt_budget(budget));
                    match manager.build_plan(&request) {
                        Ok(plan) => plan.notices.into_iter().map(|notice| notice.text).collect(),
                        Err(error) => vec![error.to_string()],
                    }
                })),
                Err(error) => said.push(error.to_string()),
            }
        }
    }
    said
}

/// Builds a planner with the options and, for the first kind of provider, the model that a session names.
fn planner(session: &Session, wire_format: WireFormat, long: &str) -> Result<ContextWindowManager, Error> {
    let options = session.options.as_deref();
    let config = options.map_or_else(|| Ok(Config::default()), |text| Config::from_toml(text, "options"))?;
    let model = match session.model.as_deref().filter(|_| wire_format == WireFormat::OpenAiChat) {
        Some(name) => Model::named(name)?,
        None => Model::custom(long).with_wire_format(wire_format),
    };
    ContextWindowManager::new(model, TokenCounter::chars_per_4(), config)
}

#[test]
fn no_long_value_of_a_file_makes_a_long_sentence() {
    let values = long_values();
    let (mut nth, mut number) = (0, 0);
    for (name, documents) in bodies() {
        let mut all = Vec::new();
        documents.iter().for_each(|value| strings(value, &mut all));
        for old in &all {
            // One of the values for each string, or all of them for each if there is time.
            nth += 1;
            for (at, long) in values.iter().enumerate() {
                if !is_full() && at != nth % values.len() {
                    continue;
                }
                let texts: Vec<String> =
                    documents.iter().map(|value| replaced(value, old, long).to_string()).collect();
                for said in sentences(&texts.join("\n"), long) {
                    assert_short(&format!("{name}, {old}"), said);
                    number += 1;
                }
            }
        }
    }
    assert!(nth > 300 && number > 300, "{number} sentences on {nth} strings");
}

#[test]
fn no_long_value_of_a_configuration_makes_a_long_sentence() {
    for long in long_values() {
        let quoted = |text: &str| Value::String(text.into()).to_string();
        let (key, from) = (quoted(&long), "config.toml");
        for text in [
            format!("{key} = 1"),
            format!("[{key}]\na = 1"),
            format!("[conversation]\n{key} = 1"),
            format!("preset = {key}"),
            format!("[compaction.models.{key}]\nstrategy = 1"),
            format!("[compaction.models.{key}]\nstrategy = {key}"),
            format!("{key} = 1\n{key} = 2"),
            format!("a = {long}"),
        ] {
            let loaded = ConfigLayers::new().with_text(from, &*text).load();
            loaded.err().into_iter().for_each(|error| assert_short("options", error));
            Config::from_toml(&text, from).err().into_iter().for_each(|error| assert_short("options", error));
        }
        for key in LoadedConfig::keys() {
            let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
            let table = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
            let text = format!("{table}{name} = {}", quoted(&long));
            Config::from_toml(&text, from).err().into_iter().for_each(|error| assert_short(key, error));
            let variable = format!("CONTEXT_WINDOW_{}", key.replace('.', "__").to_uppercase());
            let layers = ConfigLayers::new().with_environment([(variable.as_str(), long.as_str())]);
            layers.load().err().into_iter().for_each(|error| assert_short(key, error));
        }
        let pairs = ConfigLayers::new().with_pairs("flag ", [(long.as_str(), "1")]);
        pairs.load().err().into_iter().for_each(|error| assert_short("flag", error));
        let variable = format!("CONTEXT_WINDOW_{long}");
        let layers = ConfigLayers::new().with_environment([(variable.as_str(), "1")]);
        layers.load().err().into_iter().for_each(|error| assert_short("variable", error));

        let model = format!("[[model]]\nname = {0}\nprovider = {0}\n", quoted(&long));
        for text in [model.repeat(2), format!("[[model]]\n{} = 1", quoted(&long)), model] {
            Registry::from_toml(&text, from)
                .err()
                .into_iter()
                .for_each(|error| assert_short("registry", error));
        }
        for text in [json!([{"model": 1, "provider": long}]), json!({"x": long}), json!(long)] {
            let read = Registry::default().import(&text.to_string(), "prices.json", "2026-01-01");
            read.err().into_iter().for_each(|error| assert_short("catalogue", error));
        }
        TokenCounter::named(&long).err().into_iter().for_each(|error| assert_short("tokenizer", error));
    }
}

#[test]
fn no_long_value_of_a_call_makes_a_long_sentence() {
    for long in long_values() {
        let mut log = Conversation::from([Message::user("Hello?")]);
        assert_short("rewind", log.rewind_before(long.as_str()).unwrap_err());
        assert_short("pin", log.pin_message(long.as_str(), context_window::Priority::High).unwrap_err());
        assert_short("ttl", log.set_ttl(long.as_str(), context_window::Ttl::turns(1)).unwrap_err());
        assert_short("section", long.parse::<context_window::Section>().unwrap_err());
        assert_short("priority", long.parse::<context_window::Priority>().unwrap_err());
        let manager = manager(WireFormat::OpenAiChat);
        let request = context_window::PlanRequest::new(&log);
        assert_short("explain", manager.explainer(&request).explain(&long).unwrap_err());
        for wire_format in [WireFormat::OpenAiChat, WireFormat::Anthropic, WireFormat::Gemini] {
            for message in [
                json!({"role": long, "content": "x"}),
                json!({"role": "user", "content": [{"type": long}]}),
                json!(long),
            ] {
                let read = push_json(&mut log, &message.to_string(), wire_format);
                read.err().into_iter().for_each(|error| assert_short("pushed", error));
            }
        }
        for tools in [json!([{"type": long}]), json!([{"name": long, "parameters": long}]), json!(long)] {
            tools_from_json(&tools.to_string())
                .err()
                .into_iter()
                .for_each(|error| assert_short("tools", error));
        }
        for hits in
            [json!(long), json!({long.as_str(): 1}), json!([{"text": 1, long.as_str(): long}]), json!([long])]
        {
            FieldMap::new()
                .read_hits(&hits.to_string())
                .err()
                .into_iter()
                .for_each(|error| assert_short("hits", error));
        }
    }
}
