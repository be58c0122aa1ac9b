//! Provider output is sent back to that provider unchanged. Data that only it can read is never assistant
//! text for another one (rule H6).

use context_window::{
    Config, ContextPlan, ContextWindowManager, Model, PlanRequest, Role, TokenCounter, WireFormat,
    plan::NoticeCode, provider::Registry, render,
};
use context_window_formats::{Session, SessionTexts, session_json};
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Plans a body for a model with room for all of it. Returns the sent body and the codes of the notices.
fn sent(body: &str, model: &str) -> (String, Vec<NoticeCode>) {
    let session = Session::from_json(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let mut model = Model::named(model).unwrap();
    // Like the tool, this plans a body for the wire format that it is in.
    if model.name == RESPONSES {
        model.wire_format = WireFormat::OpenAiResponses;
    }
    let wire_format = model.wire_format;
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let request = PlanRequest::new(&session.log).with_tools(&session.tools);
    let plan = manager.build_plan(&request).unwrap();
    let codes = plan.notices.iter().map(|notice| notice.code).collect();
    (render::body(&plan, wire_format).to_string(), codes)
}

/// Returns the values under a key of a body with their original spelling.
fn values(body: &str, key: &str) -> Vec<String> {
    let body: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(body).unwrap();
    let list: Vec<Box<RawValue>> = serde_json::from_str(body[key].get()).unwrap();
    list.iter().map(|value| value.get().to_owned()).collect()
}

const RESPONSES: &str = "gpt-6.2-sol";
const ANTHROPIC: &str = "claude-opus-5";
const CHAT: &str = "gpt-4o";

fn responses(items: &[String]) -> String {
    format!(r#"{{"model":"{RESPONSES}","input":[{}]}}"#, items.join(","))
}

fn anthropic(messages: &[String]) -> String {
    format!(r#"{{"model":"{ANTHROPIC}","messages":[{}]}}"#, messages.join(","))
}

/// Generates a value with numbers that a parsed value would spell differently.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1e2".to_owned()),
        Just("0.10".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("null".to_owned()),
        Just(r#""\u00e9 \"{""#.to_owned()),
        Just(r#"{"b":[1.0,{"a":-0}],"a":[]}"#.to_owned()),
        "[a-z ]{0,12}".prop_map(|text| format!("{text:?}")),
    ]
}

/// Generates additional keys of an object in any order, none of them one that is read.
fn extras() -> impl Strategy<Value = Vec<(String, String)>> {
    let key = prop::sample::select(vec!["zeta", "alpha", "status", "phase", "agent", "caller", "é"]);
    prop::collection::btree_map(key, value(), 0..4)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Returns an object of these keys, in an order that `order` chooses.
fn object(mut keys: Vec<(String, String)>, order: u64) -> String {
    let mut state = order;
    for at in (1..keys.len()).rev() {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        keys.swap(at, (state >> 33) as usize % (at + 1));
    }
    let pairs: Vec<String> = keys.iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
    format!("{{{}}}", pairs.join(","))
}

fn keys(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Generates a step of a model in Responses: items of any type, calls with their results.
fn step(nth: usize) -> impl Strategy<Value = Vec<String>> {
    let kind = prop::sample::select(vec![
        "function",
        "custom_tool",
        "shell",
        "frob",
        "local_frob",
        "computer",
        "approval",
        "hosted",
        "reference",
        "said",
        "spoken",
    ]);
    (kind, extras(), any::<u64>(), any::<bool>()).prop_map(move |(kind, extras, order, thinks)| {
        let id = format!("\"call_{nth}\"");
        let item = |pairs: &[(&str, &str)]| {
            let mut all = keys(pairs);
            all.extend(extras.clone());
            object(all, order)
        };
        let quoted = |text: &str| format!("{text:?}");
        let mut items = Vec::new();
        if thinks {
            let seal = quoted(&format!("seal{nth}"));
            items.push(item(&[
                ("type", "\"reasoning\""),
                ("id", &quoted(&format!("rs_{nth}"))),
                ("summary", r#"[{"type":"summary_text","text":"Hm."}]"#),
                ("encrypted_content", &seal),
            ]));
        }
        match kind {
            "hosted" => items.push(item(&[
                ("type", "\"frob_search_call\""),
                ("id", &quoted(&format!("fs_{nth}"))),
                ("queries", "[\"tide\"]"),
            ])),
            "reference" => items.push(item(&[("type", "\"item_reference\""), ("id", "\"msg_1\"")])),
            "said" => items.push(item(&[
                ("type", "\"message\""),
                ("role", "\"assistant\""),
                ("id", &quoted(&format!("msg_{nth}"))),
                ("content", r#"[{"type":"output_text","text":"Tide at six.","annotations":[{"at":1.0}]},{"type":"refusal","refusal":"No."}]"#),
            ])),
            "spoken" => items.push(item(&[("role", "\"assistant\""), ("content", "\"Low tide.\"")])),
            "approval" => {
                let id = quoted(&format!("mcpr_{nth}"));
                items.push(item(&[
                    ("type", "\"mcp_approval_request\""),
                    ("id", &id),
                    ("name", "\"sail\""),
                    ("arguments", "\"{}\""),
                    ("server_label", "\"boats\""),
                ]));
                items.push(item(&[
                    ("type", "\"mcp_approval_response\""),
                    ("approval_request_id", &id),
                    ("approve", "true"),
                ]));
            }
            "function" => {
                items.push(item(&[
                    ("type", "\"function_call\""),
                    ("call_id", &id),
                    ("id", &quoted(&format!("fc_{nth}"))),
                    ("name", "\"tide\""),
                    ("arguments", r#""{\"at\": 1e0}""#),
                ]));
                items.push(item(&[
                    ("type", "\"function_call_output\""),
                    ("call_id", &id),
                    ("output", r#"[{"type":"input_text","text":"RESULT"}]"#),
                ]));
            }
            "custom_tool" => {
                items.push(item(&[
                    ("type", "\"custom_tool_call\""),
                    ("call_id", &id),
                    ("name", "\"patch\""),
                    ("input", "\"*** Begin\\n\""),
                ]));
                items.push(item(&[
                    ("type", "\"custom_tool_call_output\""),
                    ("call_id", &id),
                    ("output", "\"RESULT\""),
                ]));
            }
            "computer" => {
                items.push(item(&[
                    ("type", "\"computer_call\""),
                    ("call_id", &id),
                    ("id", &quoted(&format!("cu_{nth}"))),
                    ("action", r#"{"type":"click","x":1e1}"#),
                    ("pending_safety_checks", "[]"),
                ]));
                items.push(item(&[
                    ("type", "\"computer_call_output\""),
                    ("call_id", &id),
                    ("output", r#"{"type":"computer_screenshot","image_url":"https://example.com/s.png"}"#),
                ]));
            }
            kind => {
                items.push(item(&[
                    ("type", &quoted(&format!("{kind}_call"))),
                    ("call_id", &id),
                    ("id", &quoted(&format!("x_{nth}"))),
                    ("action", r#"{"commands":["ls"],"timeout":1.50}"#),
                ]));
                let output = r#"[{"stdout":"RESULT","stderr":"","outcome":{"type":"exit","exit_code":0}}]"#;
                items.push(item(&[
                    ("type", &quoted(&format!("{kind}_call_output"))),
                    ("call_id", &id),
                    ("output", output),
                ]));
            }
        }
        items
    })
}

fn conversation() -> impl Strategy<Value = Vec<String>> {
    let steps = (0..6usize).prop_flat_map(|steps| (0..steps).map(step).collect::<Vec<_>>());
    steps.prop_map(|steps| {
        let user = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
        let mut items = vec![user("When is low tide?")];
        items.extend(steps.into_iter().flatten());
        items.push(user("And tomorrow?"));
        items
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("FULL").is_some() { 20_000 } else { 300 }))]

    /// In the same wire format, the items stay the same byte for byte except white space, in the same order.
    #[test]
    fn items_of_any_type_round_trip_unchanged(items in conversation()) {
        let (body, _) = sent(&responses(&items), RESPONSES);
        prop_assert_eq!(values(&body, "input"), items);
    }

    /// A session file written by this crate keeps the provider's output.
    #[test]
    fn a_written_session_sends_the_same_items(items in conversation()) {
        let session = Session::from_json(&responses(&items)).unwrap();
        let mut model = Model::named(RESPONSES).unwrap();
        model.wire_format = WireFormat::OpenAiResponses;
        let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
        let request = PlanRequest::new(&session.log).with_tools(&session.tools);
        let plan = manager.build_plan(&request).unwrap();
        let file = session_json(&manager, &request, SessionTexts::Kept).unwrap();
        let again = Session::from_json(&file).unwrap();
        let plan_again = manager.build_plan(&PlanRequest::new(&again.log).with_tools(&again.tools)).unwrap();
        prop_assert_eq!(plan.fingerprint(), plan_again.fingerprint());
        prop_assert_eq!(values(&render::openai_responses(&plan_again).to_string(), "input"), items);
        let file = session_json(&manager, &request, SessionTexts::Redacted).unwrap();
        prop_assert!(!file.contains("RESULT") && !file.contains("Tide at six"), "{}", file);
        let redacted = Session::from_json(&file).unwrap();
        let redacted = manager.build_plan(&PlanRequest::new(&redacted.log)).unwrap();
        let rows = |plan: &ContextPlan| -> Vec<(String, u64)> {
            plan.included.iter().map(|item| (item.id.to_string(), item.token_estimate.tokens)).collect()
        };
        prop_assert_eq!(rows(&plan), rows(&redacted));
    }

    /// In another wire format, the assistant messages have no invented text, and every text result is
    /// present.
    #[test]
    fn other_providers_get_no_invented_text(items in conversation(), model in prop::sample::select(vec![CHAT, ANTHROPIC, "gemini-2.5-pro"])) {
        let session = Session::from_json(&responses(&items)).unwrap();
        let (body, notices) = sent(&responses(&items), model);
        let manager = ContextWindowManager::new(Model::named(model).unwrap(), TokenCounter::chars_per_4(), Config::default()).unwrap();
        let plan = manager.build_plan(&PlanRequest::new(&session.log)).unwrap();
        for message in plan.messages().iter().filter(|message| message.role() == Role::Assistant) {
            for text in message.texts().filter(|text| message.tool_calls().iter().all(|call| call.name != *text && call.arguments != *text)) {
                prop_assert!(["", "Tide at six.", "No.", "Low tide.", "Hm."].contains(&text), "{text:?} in {body}");
            }
        }
        let results = items.iter().filter(|item| item.contains("RESULT")).count();
        prop_assert_eq!(body.matches("RESULT").count(), results, "{}", body);
        let hosted = items.iter().any(|item| item.contains("frob_search_call") || item.contains("item_reference"));
        let foreign = notices.contains(&NoticeCode::ForeignMessage);
        prop_assert!(!hosted || foreign || notices.contains(&NoticeCode::PartReplaced), "{:?}", notices);
    }

    /// Anthropic blocks in any order and with any additional keys stay unchanged and in place.
    #[test]
    fn blocks_of_a_message_keep_their_order(
        blocks in prop::collection::vec((0..7u8, extras(), any::<u64>()), 1..6), string in any::<bool>(),
    ) {
        let mut said = Vec::new();
        let mut results = Vec::new();
        for (nth, (kind, extras, order)) in blocks.into_iter().enumerate() {
            let block = |pairs: &[(&str, &str)]| {
                let mut all = keys(pairs);
                all.extend(extras.clone());
                object(all, order)
            };
            let id = format!("\"toolu_{nth}\"");
            let one = match kind {
                0 => block(&[("type", "\"text\""), ("text", "\"Tide.\""), ("citations", r#"[{"start":1.0}]"#)]),
                1 => block(&[("type", "\"thinking\""), ("thinking", "\"Hm.\""), ("signature", "\"sig\"")]),
                2 => block(&[("type", "\"redacted_thinking\""), ("data", "\"sealed\"")]),
                3 => {
                    let content = if string { "\"RESULT\"" } else { r#"[{"type":"text","text":"RESULT"},{"type":"tool_reference","tool_name":"tide"}]"# };
                    results.push(block(&[("type", "\"tool_result\""), ("tool_use_id", &id), ("content", content)]));
                    block(&[("type", "\"tool_use\""), ("id", &id), ("name", "\"tide\""), ("input", r#"{"at":1.50,"a":[]}"#)])
                }
                4 => {
                    let call = block(&[("type", "\"server_tool_use\""), ("id", &id), ("name", "\"web_search\""), ("input", "{}")]);
                    let result = block(&[("type", "\"web_search_tool_result\""), ("tool_use_id", &id), ("content", "[]")]);
                    said.push(call);
                    result
                }
                5 => block(&[("type", "\"fallback\""), ("from", "\"a\""), ("to", "\"b\"")]),
                _ => block(&[("type", "\"mcp_frob_listing\""), ("tools", "[1e2]")]),
            };
            said.push(one);
        }
        // Reasoning is sent back during its turn, as long as results are returned.
        if results.is_empty() {
            said.retain(|block| !block.contains("thinking\""));
            results.push(r#"{"type":"text","text":"And then?"}"#.to_owned());
        }
        let assistant = format!(r#"{{"role":"assistant","content":[{}]}}"#, said.join(","));
        let user = format!(r#"{{"role":"user","content":[{}]}}"#, results.join(","));
        let first = r#"{"role":"user","content":[{"type":"text","text":"When?"}]}"#.to_owned();
        let messages = [first, assistant, user];
        let (body, _) = sent(&anthropic(&messages), ANTHROPIC);
        if !said.is_empty() {
            prop_assert_eq!(values(&body, "messages"), messages);
        }
    }
}

/// Blocks in the renderer's usual form keep their order by themselves.
#[test]
fn usual_blocks_keep_their_order() {
    let messages = [
        r#"{"role":"user","content":[{"type":"text","text":"When?"}]}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"tool_use","id":"toolu_1","name":"tide","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"Six."}]}"#,
    ];
    let (body, _) = sent(&anthropic(&messages.map(str::to_owned)), ANTHROPIC);
    assert_eq!(values(&body, "messages"), messages);
}

#[test]
fn item_is_excluded_with_its_reasoning() {
    // The model accepts no earlier reasoning, so the item after it would be refused.
    let items = [
        r#"{"role":"user","content":"Search."}"#,
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"seal"}"#,
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"tide"}}"#,
        r#"{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"Six.","annotations":[]}]}"#,
        r#"{"role":"user","content":"Thanks?"}"#,
    ];
    let body = format!(r#"{{"model":"gpt-4.1","input":[{}]}}"#, items.join(","));
    let session = Session::from_json(&body).unwrap();
    let sent_with = |reasoning: &str| {
        let entry = format!(
            "[[model]]\nname = \"m\"\nwire_format = \"openai_responses\"\nconstraints = {{ reasoning = \"{reasoning}\" }}\n"
        );
        let model = Registry::from_toml(&entry, "own.toml").unwrap().model("m");
        let manager =
            ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
        let plan = manager.build_plan(&PlanRequest::new(&session.log)).unwrap();
        render::openai_responses(&plan).to_string()
    };
    let never = sent_with("never");
    assert!(["rs_1", "ws_1", "msg_1"].iter().all(|id| !never.contains(id)), "{never}");
    assert!(never.contains("Six."), "{never}");
    // An item keeps its reasoning, even if older reasoning is left out.
    let live = sent_with("live");
    assert!(["rs_1", "ws_1", "msg_1", "Six."].iter().all(|text| live.contains(text)), "{live}");
    // Another provider's reasoning removes no other item.
    let other = sent_to_chat(&body);
    assert!(other.contains("Six.") && !other.contains("ws_1") && !other.contains("left out"), "{other}");
}

fn sent_to_chat(body: &str) -> String {
    sent(body, CHAT).0
}

#[test]
fn tool_fields_round_trip_or_are_reported() {
    let tool = r#"{"name":"book","strict":true,"description":"Books a boat.","input_schema":{"type":"object","properties":{"boat":{"type":"string"}}},"defer_loading":true,"input_examples":[{"boat":"Otter","at":1.0}]}"#;
    let body = format!(
        r#"{{"model":"{ANTHROPIC}","messages":[{{"role":"user","content":"Book."}}],"tools":[{tool}]}}"#
    );
    let (own, _) = sent(&body, ANTHROPIC);
    assert_eq!(values(&own, "tools"), [tool]);
    let (other, notices) = sent(&body, CHAT);
    assert!(!other.contains("input_examples") && other.contains("Books a boat."), "{other}");
    assert!(notices.contains(&NoticeCode::ToolFieldsLeftOut), "{notices:?}");
}

#[test]
fn a_deferred_tool_costs_its_name_and_description() {
    let tokens = |defer: bool| {
        let long = "plank ".repeat(200);
        let tool = format!(
            r#"{{"name":"book","description":"Books.","input_schema":{{"type":"object","properties":{{"boat":{{"type":"string","description":"{long}"}}}}}},"defer_loading":{defer}}}"#
        );
        let body = format!(
            r#"{{"model":"{ANTHROPIC}","messages":[{{"role":"user","content":"Book."}}],"tools":[{tool}]}}"#
        );
        let session = Session::from_json(&body).unwrap();
        let model = Model::named(ANTHROPIC).unwrap();
        let manager =
            ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
        let request = PlanRequest::new(&session.log).with_tools(&session.tools);
        manager.build_plan(&request).unwrap().estimated_tokens_total.tokens
    };
    assert!(tokens(false) > tokens(true) + 250, "{} {}", tokens(false), tokens(true));
}

#[test]
fn every_key_of_a_chat_message_round_trips() {
    let messages = [
        r#"{"content":"Where?","role":"user"}"#,
        r#"{"role":"assistant","content":null,"refusal":"I will not."}"#,
        r#"{"role":"user","content":"Why?"}"#,
        r#"{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"index":0,"id":"c","type":"function","function":{"arguments":"{}","name":"tide"},"extra_content":{"g":1.0}}],"annotations":[]}"#,
        r#"{"role":"tool","tool_call_id":"c","content":"Six."}"#,
        r#"{"role":"assistant","content":"Six.","refusal":null,"reasoning":"Simple."}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"So.","phase":1e0}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"And?"},{"type":"file","file":{"file_id":"f"}}]}"#,
    ];
    let body = format!(r#"{{"model":"deepseek-reasoner","messages":[{}]}}"#, messages.join(","));
    let session = Session::from_json(&body).unwrap();
    let mut model = Model::custom("m");
    model.wire_format = WireFormat::OpenAiChat;
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&session.log)).unwrap();
    let sent = values(&render::openai(&plan).to_string(), "messages");
    assert_eq!(sent.len(), messages.len());
    for (sent, came) in sent.iter().zip(messages) {
        // Reasoning of earlier turns is left out if the model accepts none.
        if !came.contains("Simple.") {
            assert_eq!(sent, came);
        }
    }
    let anthropic = serde_json::to_string(&render::anthropic(&plan)).unwrap();
    assert!(anthropic.contains("I will not.") && !anthropic.contains("\"refusal\""), "{anthropic}");
}
