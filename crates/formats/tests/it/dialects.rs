//! Bodies of Gemini and of the dialects of `OpenAI` Chat are sent back unchanged. Other providers get no
//! invented assistant text (rule H6).

use context_window::{
    Config, ContextWindowManager, Model, Part, PlanRequest, Role, TokenCounter, WireFormat, render,
};
use context_window_formats::{Session, SessionTexts, session_json};
use proptest::prelude::*;
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const GEMINI: &str = "gemini-3-pro-preview";
const CHAT: &str = "mistral-large-latest";

/// Plans a session for a wire format with room for all of it. Returns the body and the codes of the notices.
fn planned(session: &Session, model: Model) -> (String, Vec<String>) {
    let wire_format = model.wire_format;
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let request = PlanRequest::new(&session.log).with_tools(&session.tools);
    let plan = manager.build_plan(&request).unwrap();
    let notices = plan.notices.iter().map(|notice| notice.code.to_string()).collect();
    (render::body(&plan, wire_format).to_string(), notices)
}

fn sent(body: &str, model: Model) -> (String, Vec<String>) {
    let session = Session::from_json(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    planned(&session, model)
}

fn model_for(wire_format: WireFormat) -> Model {
    Model::custom("m").with_wire_format(wire_format)
}

fn value(body: &str, key: &str) -> String {
    let body: BTreeMap<String, Box<RawValue>> = serde_json::from_str(body).unwrap();
    body.get(key).map(|value| value.get().to_owned()).unwrap_or_default()
}

fn gemini(contents: &[String]) -> String {
    format!(r#"{{"model":"{GEMINI}","contents":[{}]}}"#, contents.join(","))
}

fn chat(messages: &[String]) -> String {
    format!(r#"{{"model":"{CHAT}","messages":[{}]}}"#, messages.join(","))
}

/// Checks that contents are sent back unchanged.
fn assert_contents(contents: &[&str]) {
    let contents: Vec<String> = contents.iter().map(|content| (*content).to_owned()).collect();
    let (body, _) = sent(&gemini(&contents), model_for(WireFormat::Gemini));
    assert_eq!(value(&body, "contents"), format!("[{}]", contents.join(",")));
}

/// Checks that messages are sent back unchanged.
fn assert_messages(messages: &[&str]) {
    let messages: Vec<String> = messages.iter().map(|message| (*message).to_owned()).collect();
    let (body, _) = sent(&chat(&messages), model_for(WireFormat::OpenAiChat));
    assert_eq!(value(&body, "messages"), format!("[{}]", messages.join(",")));
}

const FIRST: &str = r#"{"role":"user","parts":[{"text":"Is the Otter free?"}]}"#;
const LAST: &str = r#"{"role":"user","parts":[{"text":"Book it."}]}"#;

#[test]
fn results_and_texts_of_one_content_keep_their_order() {
    let calls = r#"{"role":"model","parts":[{"functionCall":{"name":"free","args":{"at":1.0}}},{"functionCall":{"name":"price","args":{}}}]}"#;
    let free = r#"{"functionResponse":{"name":"free","response":{"boats":1e2}}}"#;
    let price = r#"{"functionResponse":{"name":"price","response":{"output":"5 francs"}}}"#;
    let text = r#"{"text":"Well?"}"#;
    for parts in [
        [free, price, text],
        [free, text, price],
        [text, free, price],
        [price, free, text],
        [text, price, free],
    ] {
        let user = format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","));
        assert_contents(&[FIRST, calls, &user, r#"{"role":"model","parts":[{"text":"Yes."}]}"#, LAST]);
        assert_contents(&[FIRST, calls, &user]);
    }
}

#[test]
fn contents_of_one_role_stay_apart() {
    let call =
        r#"{"role":"model","parts":[{"functionCall":{"name":"free","args":{}},"thoughtSignature":"c2ln"}]}"#;
    let result =
        r#"{"role":"user","parts":[{"functionResponse":{"name":"free","response":{"output":"Otter"}}}]}"#;
    let function = r#"{"role":"function","parts":[{"functionResponse":{"name":"free","response":{}}}]}"#;
    assert_contents(&[FIRST, call, result, LAST]);
    assert_contents(&[FIRST, call, function, LAST]);
    assert_contents(&[FIRST, FIRST, r#"{"parts":[{"text":"One."}],"role":"model"}"#, LAST, LAST]);
    let model = r#"{"role":"model","parts":[{"text":"Yes."}]}"#;
    assert_contents(&[FIRST, model, model, r#"{"parts":[{"text":"Without a role."}]}"#]);
}

#[test]
fn google_parts_round_trip_unchanged() {
    let model = [
        r#"{"text":"The user asks for a boat.","thought":true,"thoughtSignature":"c2lnMQ=="}"#,
        r#"{"text":"I look.","thoughtSignature":"c2lnMg=="}"#,
        r#"{"executable_code":{"language":"PYTHON","code":"1e2"},"thought_signature":"c2lnMw=="}"#,
        r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"100"}}"#,
        r#"{"function_call":{"id":"f1","args":{"z":0.10},"name":"free","willContinue":false}}"#,
        r#"{"text":"And the price.","partMetadata":{"at":1.0}}"#,
        r#"{"functionCall":{"name":"price"},"thoughtSignature":"c2lnNA=="}"#,
        r#"{"thoughtSignature":"c2lnNQ=="}"#,
        r#"{"text":"","thoughtSignature":"c2lnNg=="}"#,
    ];
    let model = format!(r#"{{"role":"model","parts":[{}]}}"#, model.join(","));
    let inline = format!(r#"{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}"#);
    let user = [
        format!(
            r#"{{"function_response":{{"id":"f1","name":"free","response":{{"output":"Otter"}},"parts":[{inline},{{"fileData":{{"fileUri":"gs://a/b.pdf","mimeType":"application/pdf"}}}}],"scheduling":"SILENT","willContinue":true}}}}"#
        ),
        r#"{"functionResponse":{"name":"price","response":{"francs":5.0}}}"#.into(),
        format!(
            r#"{{"inline_data":{{"data":"{PNG}","mime_type":"image/png"}},"videoMetadata":{{"fps":1e0}}}}"#
        ),
        r#"{"fileData":{"fileUri":"https://example.com/boat.png","mimeType":"image/png"}}"#.into(),
        r#"{"inlineData":{"mimeType":"image/heic","data":"AAAA"}}"#.into(),
    ];
    let user = format!(r#"{{"role":"user","parts":[{}]}}"#, user.join(","));
    assert_contents(&[FIRST, &model, &user, r#"{"role":"model","parts":[{"text":"Yes."}]}"#, LAST]);
}

#[test]
fn media_of_a_result_are_parts_of_it() {
    let body = format!(
        r#"{{"contents":[{FIRST},{{"role":"model","parts":[{{"functionCall":{{"name":"look","args":{{}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"look","response":{{"output":"The quay"}},"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{PNG}"}}}}]}}}}]}}]}}"#
    );
    let session = Session::from_json(&body).unwrap();
    let result = &session.log.messages()[2];
    assert_eq!(result.role(), Role::Tool);
    assert!(matches!(result.parts(), [Part::Text(text), Part::Image { .. }] if text == "The quay"));
    let (body, _) = planned(&session, model_for(WireFormat::Anthropic));
    assert!(body.contains(r#""type":"image""#) && body.contains("The quay"), "{body}");
}

#[test]
fn options_of_the_python_sdk_hold_instructions_and_tools() {
    for system in [
        r#""Rent boats.""#,
        r#"{"parts":[{"text":"Rent boats."}]}"#,
        r#"{"text":"Rent boats."}"#,
        r#"["Rent boats."]"#,
    ] {
        let body = format!(
            r#"{{"contents":[{FIRST}],"config":{{"system_instruction":{system},"tools":[{{"function_declarations":[{{"name":"free","response":{{"type":"OBJECT"}},"behavior":"BLOCKING","parameters":{{"type":"OBJECT","properties":{{"at":{{"minimum":1.0,"type":"NUMBER"}}}}}}}}]}}]}}}}"#
        );
        let (body, _) = sent(&body, model_for(WireFormat::Gemini));
        assert_eq!(value(&body, "systemInstruction"), r#"{"parts":[{"text":"Rent boats."}]}"#);
        assert_eq!(
            value(&body, "tools"),
            r#"[{"functionDeclarations":[{"name":"free","response":{"type":"OBJECT"},"behavior":"BLOCKING","parameters":{"type":"OBJECT","properties":{"at":{"minimum":1.0,"type":"NUMBER"}}}}]}]"#
        );
    }
}

#[test]
fn function_declarations_keep_the_other_tools_of_their_object() {
    let tools = r#"[{"googleSearch":{},"functionDeclarations":[{"name":"free","description":"Lists boats.","parametersJsonSchema":{"type":"object"}}]},{"urlContext":{}}]"#;
    let body = format!(r#"{{"contents":[{FIRST}],"tools":{tools}}}"#);
    assert_eq!(value(&sent(&body, model_for(WireFormat::Gemini)).0, "tools"), tools);
    let tools = r#"[{"urlContext":{}},{"functionDeclarations":[{"name":"free","parametersJsonSchema":{"type":"object","properties":{}}}]},{"googleSearch":{}}]"#;
    let body = format!(r#"{{"contents":[{FIRST}],"tools":{tools}}}"#);
    assert_eq!(value(&sent(&body, model_for(WireFormat::Gemini)).0, "tools"), tools);
}

const ASKED: &str = r#"{"role":"user","content":"Is the Otter free?"}"#;

#[test]
fn server_reasoning_round_trips_under_its_key() {
    for reply in [
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"THOUGHT"}],"closed":true},{"type":"text","text":"Yes."}]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"Yes."},{"type":"thinking","thinking":[{"type":"text","text":"THOUGHT"}]},{"type":"thinking","thinking":[{"type":"text","text":"THOUGHT too"}]}]}"#,
        r#"{"role":"assistant","content":"Yes.","reasoning":"THOUGHT","reasoning_details":[{"type":"reasoning.text","text":"THOUGHT","index":0.0,"signature":"s"}]}"#,
        r#"{"role":"assistant","reasoning_details":[{"type":"reasoning.summary","summary":"THOUGHT"},{"type":"reasoning.encrypted","data":"e"}],"content":"Yes."}"#,
        r#"{"role":"assistant","content":"Yes.","reasoning":"THOUGHT"}"#,
        r#"{"role":"assistant","content":"Yes.","thinking":"THOUGHT"}"#,
        r#"{"role":"assistant","reasoning_content":"","content":"Yes."}"#,
        r#"{"role":"assistant","reasoning_content":"","reasoning":"THOUGHT","content":"Yes."}"#,
        r#"{"role":"assistant","reasoning":"","tool_plan":"THOUGHT","content":"Yes."}"#,
        r#"{"role":"assistant","content":"Yes."}"#,
    ] {
        assert_messages(&[ASKED, reply, r#"{"role":"user","content":"Book it."}"#]);
        let body = format!(r#"{{"messages":[{ASKED},{reply},{ASKED}]}}"#);
        let session = Session::from_json(&body).unwrap();
        let thoughts = session.log.messages()[1].reasoning();
        assert_eq!(!thoughts.is_empty() && thoughts[0].text.contains("THOUGHT"), reply.contains("THOUGHT"));
        for wire_format in [WireFormat::Anthropic, WireFormat::Gemini, WireFormat::OpenAiResponses] {
            let (other, notices) = planned(&session, model_for(wire_format));
            assert!(!other.contains("THOUGHT") && other.contains("Yes."), "{other}");
            assert!(!reply.contains("THOUGHT") || !notices.is_empty(), "{reply}");
        }
    }
}

#[test]
fn cohere_plan_round_trips_with_its_calls() {
    assert_messages(&[
        ASKED,
        r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"free","arguments":"{\"at\": 1.0}"}}],"tool_plan":"I look."}"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"Otter"}"#,
    ]);
}

#[test]
fn ollama_messages_round_trip_unchanged() {
    let asked = format!(r#"{{"role":"user","content":"Which boat is this?","images":["{PNG}","{PNG}"]}}"#);
    let messages = [
        asked.as_str(),
        r#"{"role":"assistant","content":"","thinking":"I look.","tool_calls":[{"function":{"name":"look","arguments":{"at":1.0}}}]}"#,
        r#"{"role":"tool","content":"Otter","tool_name":"look"}"#,
    ];
    assert_messages(&messages);
    assert_messages(&[
        r#"{"role":"user","content":"Which boat is this?","images":["/tmp/boat.png"]}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_9","function":{"index":0,"name":"look","arguments":{"at":1.0}}}]}"#,
        r#"{"role":"tool","content":"Otter","tool_call_id":"call_9"}"#,
    ]);
    let session = Session::from_json(&format!(r#"{{"messages":[{asked}]}}"#)).unwrap();
    let images = |part: &&Part| matches!(part, Part::Image { .. });
    assert_eq!(session.log.messages()[0].parts().iter().filter(images).count(), 2);
    for wire_format in [WireFormat::Anthropic, WireFormat::Gemini, WireFormat::OpenAiResponses] {
        let (body, _) = planned(&session, model_for(wire_format));
        assert_eq!(body.matches(PNG).count(), 2, "{body}");
    }
}

/// Generates a number, text or object with a spelling that a parsed value would change.
fn any_value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "1e2",
        "0.10",
        "12345678901234567890123",
        "null",
        r#""é \" {""#,
        r#"{"b":[1.0,{"a":-0}],"a":[]}"#,
    ])
}

/// Generates a part of model output: its JSON, and the name and spelling of its call.
fn model_part(nth: usize) -> impl Strategy<Value = (String, Option<(String, bool)>)> {
    (0..8u8, any_value(), any::<bool>(), any::<bool>()).prop_map(move |(kind, value, snake, is_signed)| {
        let key = |camel: &'static str, snaked: &'static str| if snake { snaked } else { camel };
        let signature = key("thoughtSignature", "thought_signature");
        let signature = if is_signed { format!(r#","{signature}":"c2ln{nth}""#) } else { String::new() };
        let part = match kind {
            0 => format!(r#"{{"text":"Said {nth}."{signature}}}"#),
            1 => format!(r#"{{"thought":true,"text":"Thought {nth}."{signature}}}"#),
            2 => format!(
                r#"{{"{}":{{"code":"x","language":"PYTHON","at":{value}}}{signature}}}"#,
                key("executableCode", "executable_code")
            ),
            3 => format!(r#"{{"text":"Said {nth}.","partMetadata":{value}{signature}}}"#),
            4 => format!(r#"{{"toolCall":{{"id":"t{nth}","args":{value}}}}}"#),
            kind => {
                let id = if kind == 5 { String::new() } else { format!(r#","id":"call_{nth}""#) };
                let call = key("functionCall", "function_call");
                let json =
                    format!(r#"{{"{call}":{{"name":"tool_{nth}","args":{{"at":{value}}}{id}}}{signature}}}"#);
                return (json, Some((format!(r#""name":"tool_{nth}"{id}"#), snake)));
            }
        };
        (part, None)
    })
}

/// Generates model output, and the results of its calls with a text at any position among them.
fn step() -> impl Strategy<Value = Vec<String>> {
    let parts = (1..6usize).prop_flat_map(|many| (0..many).map(model_part).collect::<Vec<_>>());
    (parts, any_value(), any::<bool>(), any::<u8>(), prop::option::of(any::<u8>())).prop_map(
        |(parts, value, is_text, turned, text)| {
            let own: Vec<&str> = parts.iter().map(|(json, _)| json.as_str()).collect();
            let model = format!(r#"{{"role":"model","parts":[{}]}}"#, own.join(","));
            let mut results: Vec<String> = parts
                .iter()
                .filter_map(|(_, call)| call.as_ref())
                .map(|(call, snake)| {
                    let key = if *snake { "function_response" } else { "functionResponse" };
                    let response = if is_text {
                        r#"{"output":"RESULT"}"#.into()
                    } else {
                        format!(r#"{{"RESULT":{value}}}"#)
                    };
                    format!(r#"{{"{key}":{{{call},"response":{response}}}}}"#)
                })
                .collect();
            if results.is_empty() {
                return vec![model, FIRST.into()];
            }
            let many = results.len();
            results.rotate_left(turned as usize % many);
            if let Some(at) = text {
                results.insert(at as usize % (many + 1), r#"{"text":"Well?"}"#.into());
            }
            vec![model, format!(r#"{{"role":"user","parts":[{}]}}"#, results.join(","))]
        },
    )
}

fn contents() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(step(), 1..5).prop_map(|steps| {
        let first = [FIRST.to_owned()].into_iter();
        let last = [r#"{"role":"model","parts":[{"text":"Done."}]}"#.to_owned(), LAST.to_owned()];
        first.chain(steps.into_iter().flatten()).chain(last).collect()
    })
}

/// Returns the assistant texts in a body of `OpenAI` Chat.
fn said(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let replies =
        body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant");
    let texts = replies.flat_map(|message| match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str().map(Into::into)).collect()
        }
        _ => Vec::new(),
    });
    texts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("FULL").is_some() { 20_000 } else { 300 }))]

    /// Contents are sent back byte for byte.
    #[test]
    fn google_contents_round_trip_unchanged(contents in contents()) {
        let (body, _) = sent(&gemini(&contents), model_for(WireFormat::Gemini));
        prop_assert_eq!(value(&body, "contents"), format!("[{}]", contents.join(",")));
    }

    /// A session file written by this crate keeps them.
    #[test]
    fn a_written_session_sends_the_same_contents(contents in contents()) {
        let session = Session::from_json(&gemini(&contents)).unwrap();
        let manager =
            ContextWindowManager::new(model_for(WireFormat::Gemini), TokenCounter::chars_per_4(), Config::default()).unwrap();
        let request = PlanRequest::new(&session.log).with_tools(&session.tools);
        let written = session_json(&manager, &request, SessionTexts::Kept).unwrap();
        let (body, _) = sent(&written, model_for(WireFormat::Gemini));
        prop_assert_eq!(value(&body, "contents"), format!("[{}]", contents.join(",")));
    }

    /// Other providers get the assistant's own texts and every result.
    #[test]
    fn google_contents_are_sent_to_no_other_provider(contents in contents()) {
        let (body, _) = sent(&gemini(&contents), model_for(WireFormat::OpenAiChat));
        for text in said(&body) {
            let rest = text.split("\n\n").filter(|text| !text.starts_with("Said ") && *text != "Done.");
            prop_assert_eq!(rest.collect::<String>(), "");
        }
        let came = contents.join("").matches("RESULT").count();
        prop_assert_eq!(body.matches("RESULT").count(), came);
    }
}
