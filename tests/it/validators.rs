//! Tests of the validators: for each rule visible in one body, a valid body passes. A body that breaks the
//! rule is reported with its number and no other, unless a rule cannot be broken alone.

use crate::rules::{Form, Target, chat_template::control_tokens_in_content, check};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the rule numbers reported for a body, each once.
fn labels(target: &Target, body: &Value) -> Vec<String> {
    let found = check(target, body);
    let labels: BTreeSet<String> =
        found.iter().map(|line| line.split_once(": ").unwrap().0.to_owned()).collect();
    labels.into_iter().collect()
}

fn passes(target: &Target, body: &Value) {
    let found = check(target, body);
    assert!(found.is_empty(), "{body:#}\n{found:#?}");
}

/// A rule with the rules broken together with it, its target, a valid body and an invalid one.
struct Case {
    rule: u8,
    also: &'static [&'static str],
    target: Target,
    sound: Value,
    broken: Value,
}

fn case(rule: u8, target: &Target, sound: &Value, broken: Value) -> Case {
    Case { rule, also: &[], target: target.clone(), sound: sound.clone(), broken }
}

fn with(also: &'static [&'static str], case: Case) -> Case {
    Case { also, ..case }
}

fn run(cases: Vec<Case>) {
    for Case { rule, also, target, sound, broken } in cases {
        passes(&target, &sound);
        let expected: BTreeSet<String> =
            also.iter().map(|label| (*label).to_owned()).chain([rule.to_string()]).collect();
        let found = check(&target, &broken);
        let got: BTreeSet<String> = labels(&target, &broken).into_iter().collect();
        assert_eq!(got, expected, "rule {rule}: {found:#?}");
    }
}

/// Checks bodies that break no numbered rule but have a shape that the API refuses.
fn misshapen(target: &Target, wrap: impl Fn(&Value) -> Value, wrong: &[Value]) {
    for body in wrong.iter().map(wrap) {
        assert_eq!(labels(target, &body), ["shape"], "{body:#}\n{:#?}", check(target, &body));
    }
}

#[test]
fn malformed_bodies_are_reported() {
    let odd = json!([null, 7, "x", [], {}, {"role": 7}, {"type": []}, {"content": {}}, {"parts": 7}]);
    let nested = json!({"role": "user", "type": "message", "content": odd, "parts": odd, "tool_calls": odd});
    let list = json!([odd, nested, {"role": "assistant", "content": odd}, {"role": "tool"}]);
    let body =
        json!({"messages": [nested, list], "input": list, "contents": list, "tools": odd, "system": odd});
    for form in [Form::OpenAiChat, Form::OpenAiResponses, Form::Anthropic, Form::Gemini, Form::ChatTemplate] {
        let target = Target { thinking: Some(true), thought_signatures: true, ..Target::new(form) };
        for body in [&body, &list, &json!(null)] {
            assert!(!check(&target, body).is_empty(), "{form:?}");
        }
    }
}

#[test]
fn every_rule_that_shows_in_a_body_has_a_case() {
    let cases = [chat(), responses(), anthropic(), gemini(), template()];
    let shown: BTreeSet<u8> = cases.iter().flatten().map(|case| case.rule).collect();
    let hidden = [7, 25, 27, 41];
    assert_eq!(shown, (1..=45).filter(|rule| !hidden.contains(rule)).collect());
}

#[test]
fn openai_chat_rules() {
    run(chat());
}

#[test]
fn openai_responses_rules() {
    run(responses());
}

#[test]
fn anthropic_rules() {
    run(anthropic());
}

#[test]
fn gemini_rules() {
    run(gemini());
}

#[test]
fn chat_template_rules() {
    run(template());
}

fn list(messages: &[&Value]) -> Value {
    json!({"messages": messages})
}

/// Returns a tool call in the form of OpenAI Chat.
fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "boil", "arguments": "{\"litres\": 2}"}})
}

fn calls(ids: &[&str]) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(|id| call(id)).collect::<Vec<_>>()})
}

fn answer(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn says(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn chat() -> Vec<Case> {
    let strict = Target::new(Form::OpenAiChat);
    let (system, user, said) = (says("system", "Be brief."), says("user", "Tea?"), says("assistant", "Yes."));
    let developer = says("developer", "Be brief.");
    let (both, a, b) = (calls(&["a", "b"]), answer("a"), answer("b"));
    let sound = list(&[&system, &user, &both, &b, &a, &said, &user]);
    let marked = |many: usize| {
        let part = json!({"type": "text", "text": "Tea?", "prompt_cache_breakpoint": {"mode": "explicit"}});
        json!({"messages": [{"role": "user", "content": vec![part; many]}]})
    };
    let new = Target { breakpoints: true, ..strict.clone() };
    let mut parsed = calls(&["a"]);
    parsed["tool_calls"][0]["function"]["arguments"] = json!({"litres": 2});
    let mut on_tool = marked(1);
    on_tool["tools"] =
        json!([{"type": "function", "function": {"name": "boil"}, "prompt_cache_breakpoint": {}}]);
    let on_assistant =
        json!([{"type": "text", "text": "Yes.", "prompt_cache_breakpoint": {"mode": "explicit"}}]);
    let on_assistant = list(&[&user, &json!({"role": "assistant", "content": on_assistant})]);
    vec![
        case(1, &strict, &sound, list(&[&user, &both, &a, &b, &answer("c")])),
        case(1, &strict, &sound, list(&[&user, &calls(&["a"]), &a, &user, &answer("z"), &said])),
        case(2, &strict, &sound, list(&[&user, &both, &a, &user])),
        case(2, &strict, &sound, list(&[&user, &both, &a])),
        with(&["1"], case(2, &strict, &sound, list(&[&user, &calls(&["a"]), &user, &a]))),
        case(3, &strict, &sound, list(&[&user, &both, &a, &b, &a])),
        with(&["2"], case(3, &strict, &sound, list(&[&user, &both, &a, &a]))),
        with(&["2"], case(3, &strict, &sound, list(&[&user, &calls(&["a", "a"]), &a]))),
        with(&["1"], case(4, &strict, &sound, list(&[&system, &a, &user]))),
        case(5, &strict, &sound, list(&[&user, &json!({"role": "assistant", "content": null}), &user])),
        case(5, &strict, &sound, list(&[&user, &says("assistant", ""), &user])),
        case(5, &strict, &sound, list(&[&user, &parsed, &a])),
        case(6, &strict, &sound, list(&[&system, &system, &user])),
        case(6, &strict, &sound, list(&[&user, &system])),
        case(6, &strict, &sound, list(&[&developer, &user])),
        case(12, &new, &marked(4), marked(5)),
        case(12, &strict, &list(&[&user]), marked(1)),
        case(12, &new, &marked(1), on_tool),
        case(12, &new, &marked(1), on_assistant),
    ]
}

#[test]
fn openai_chat_flags_allow_their_features() {
    let (system, user) = (says("system", "Be brief."), says("user", "Tea?"));
    let many = Target { many_system: true, developer_role: true, ..Target::default() };
    passes(&many, &list(&[&system, &system, &user, &says("developer", "In verse."), &user]));
    let thought = json!({"role": "assistant", "content": "Yes.", "reasoning_content": "Why not?"});
    let thinks = Target { reasoning_content: true, ..Target::default() };
    passes(&thinks, &list(&[&user, &thought]));
    assert_eq!(labels(&Target::default(), &list(&[&user, &thought])), ["shape"]);
}

#[test]
fn openai_chat_shapes() {
    let target = Target::default();
    let picture = |url: &str| json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
    let parts = |role: &str, part: Value| json!({"role": role, "content": [part]});
    let wrap = |message: &Value| match message["role"].as_str() {
        Some("tool") => list(&[&says("user", "Tea?"), &calls(&["a"]), message]),
        _ if message.get("tool_calls").is_some() => list(&[message, &answer("a")]),
        _ => list(&[message]),
    };
    for sound in [
        parts("user", picture("data:image/png;base64,iVBORw0=")),
        parts("user", picture("https://example.org/tea.png")),
        parts("assistant", json!({"type": "refusal", "refusal": "No."})),
        json!({"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": ""}]}),
        json!({"role": "user", "name": "Zoë_1", "content": "Tea?"}),
        json!({"role": "assistant", "content": "", "refusal": null, "tool_calls": [call("a")]}),
    ] {
        passes(&target, &wrap(&sound));
    }
    let changed = |pointer: &str, value: Value| {
        let mut message = calls(&["a"]);
        *message.pointer_mut(pointer).unwrap() = value;
        message
    };
    let tool = |content: Value| json!({"role": "tool", "tool_call_id": "a", "content": content});
    let wrong = [
        says("robot", "Beep."),
        json!("Tea?"),
        json!({"role": "user"}),
        json!({"role": "user", "content": null}),
        json!({"role": "user", "content": []}),
        json!({"role": "user", "content": 7}),
        json!({"role": "user", "content": "Tea?", "id": "m1"}),
        json!({"role": "user", "content": "Tea?", "tool_call_id": "a"}),
        json!({"role": "user", "content": "Tea?", "name": "Tea Drinker"}),
        json!({"role": "user", "content": "Tea?", "name": ""}),
        json!({"role": "user", "content": "Tea?", "name": "x".repeat(65)}),
        parts("user", json!({"type": "text", "text": "Tea?", "cache_control": {"type": "ephemeral"}})),
        parts("user", json!({"type": "text"})),
        parts("user", json!({"type": "input_text", "text": "Tea?"})),
        parts("user", picture("data:image/png;base64,iVBORw0")),
        parts(
            "user",
            json!({"type": "image_url", "image_url": {"url": "https://a.b/c.png", "detail": "fine"}}),
        ),
        parts("user", picture("tea.png")),
        json!({"role": "assistant", "content": "Yes.", "refusal": 7}),
        parts("system", picture("https://example.org/tea.png")),
        tool(json!([picture("https://example.org/tea.png")])),
        tool(json!(null)),
        changed("/tool_calls/0/type", json!("custom")),
        changed("/tool_calls/0/function/name", json!("")),
    ];
    misshapen(&target, wrap, &wrong);
    let no_id = list(&[&changed("/tool_calls/0/id", json!("")), &answer("")]);
    assert_eq!(labels(&target, &no_id), ["shape"]);
    let no_calls = list(&[&json!({"role": "assistant", "content": "Yes.", "tool_calls": []})]);
    misshapen(&target, Value::clone, &[json!({}), json!({"messages": []}), no_calls]);
    let tools = |tools: &Value| json!({"messages": [says("user", "Tea?")], "tools": tools});
    passes(
        &target,
        &tools(
            &json!([{"type": "function", "function": {"name": "boil", "parameters": {"type": "object"}}}]),
        ),
    );
    let wrong = [
        json!([]),
        json!([{"name": "boil"}]),
        json!([{"type": "function", "function": {"name": ""}}]),
        json!([{"type": "function", "function": {"name": "boil", "parameters": "{}"}}]),
        json!([{"type": "function", "function": {"name": "boil", "parameters": {"type": "dict"}}}]),
        json!([{"type": "function", "function": {"name": "boil", "parameters": {"type": "object", "properties": {"a": {"items": {"type": "any"}}}}}}]),
    ];
    misshapen(&target, tools, &wrong);
}

fn input(items: &[&Value]) -> Value {
    json!({"input": items})
}

fn function_call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "boil", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn responses() -> Vec<Case> {
    let strict = Target::new(Form::OpenAiResponses);
    let new = Target { breakpoints: true, ..strict.clone() };
    let (system, user, said) = (says("system", "Be brief."), says("user", "Tea?"), says("assistant", "Yes."));
    let (a, b, of_a, of_b) = (function_call("a"), function_call("b"), output("a"), output("b"));
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"});
    let compaction = json!({"type": "compaction", "encrypted_content": "x"});
    let pairs = input(&[&user, &a, &b, &of_b, &of_a, &said, &user]);
    let thought = input(&[&user, &reasoning, &reasoning, &a, &of_a, &reasoning, &said, &user]);
    let compacted = input(&[&system, &compaction, &user]);
    let marked = |many: usize| {
        let part =
            json!({"type": "input_text", "text": "Tea?", "prompt_cache_breakpoint": {"mode": "explicit"}});
        json!({"input": [{"role": "user", "content": vec![part; many]}]})
    };
    let mut on_tool = marked(1);
    on_tool["tools"] = json!([{"type": "function", "name": "boil", "prompt_cache_breakpoint": {}}]);
    let part =
        json!({"type": "output_text", "text": "Yes.", "prompt_cache_breakpoint": {"mode": "explicit"}});
    let on_assistant = json!({"input": [user, {"role": "assistant", "content": [part]}]});
    let instructed =
        json!({"instructions": [{"text": "Be brief.", "prompt_cache_breakpoint": {}}], "input": [user]});
    vec![
        case(8, &strict, &pairs, input(&[&user, &a, &b, &of_a, &user])),
        with(&["9"], case(8, &strict, &pairs, input(&[&user, &of_a, &a]))),
        case(9, &strict, &pairs, input(&[&user, &a, &of_a, &of_b])),
        case(9, &strict, &pairs, input(&[&user, &a, &of_a, &of_a])),
        case(10, &strict, &thought, input(&[&user, &reasoning])),
        case(10, &strict, &thought, input(&[&user, &reasoning, &user])),
        case(10, &strict, &thought, input(&[&user, &a, &reasoning, &of_a, &said])),
        case(11, &strict, &compacted, input(&[&user, &compaction, &user])),
        case(11, &strict, &compacted, input(&[&compaction, &compaction, &user])),
        case(12, &new, &marked(4), marked(5)),
        case(12, &strict, &input(&[&user]), marked(1)),
        case(12, &new, &marked(1), on_tool),
        case(12, &new, &marked(1), on_assistant),
        with(&["shape"], case(12, &new, &marked(1), instructed)),
    ]
}

#[test]
fn openai_responses_shapes() {
    let target = Target::new(Form::OpenAiResponses);
    let message = |role: &str, part: Value| json!({"type": "message", "role": role, "content": [part]});
    let wrap = |item: &Value| match item["type"].as_str() {
        Some("function_call_output") => input(&[&function_call("a"), item]),
        Some("function_call") => input(&[item, &output("a")]),
        Some("reasoning") => input(&[item, &says("assistant", "Yes.")]),
        _ => input(&[item]),
    };
    for sound in [
        message(
            "user",
            json!({"type": "input_image", "image_url": "https://example.org/tea.png", "detail": "low"}),
        ),
        message("developer", json!({"type": "input_file", "file_id": "file-1"})),
        message("assistant", json!({"type": "output_text", "text": "Yes.", "annotations": []})),
        message("assistant", json!({"type": "refusal", "refusal": "No."})),
        json!({"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "done"}]}),
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Why not?"}]}),
        json!({"type": "item_reference", "id": "msg_1"}),
    ] {
        passes(&target, &wrap(&sound));
    }
    let wrong = [
        json!({"type": "tool", "content": "done"}),
        json!({"type": "message", "content": "Tea?"}),
        says("tool", "done"),
        json!({"role": "user", "content": null}),
        json!({"role": "user", "content": []}),
        json!({"role": "user", "content": "Tea?", "name": "Zoë"}),
        message("user", json!({"type": "text", "text": "Tea?"})),
        message("user", json!({"type": "output_text", "text": "Tea?"})),
        message("user", json!({"type": "input_image", "image_url": {"url": "https://example.org/tea.png"}})),
        message("user", json!({"type": "input_file"})),
        message("assistant", json!({"type": "input_text", "text": "Yes."})),
        message("assistant", json!({"type": "output_text"})),
        json!({"type": "function_call", "call_id": "a", "name": "", "arguments": "{}"}),
        json!({"type": "function_call", "call_id": "a", "name": "boil", "arguments": {}}),
        json!({"type": "function_call", "call_id": "a", "name": "boil", "arguments": "{}", "id": ""}),
        json!({"type": "function_call_output", "call_id": "a", "output": null}),
        json!({"type": "function_call_output", "call_id": "a", "output": "done", "name": "boil"}),
        json!({"type": "reasoning", "summary": []}),
        json!({"type": "reasoning", "id": "rs_1"}),
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "text", "text": "Why not?"}]}),
        json!({"type": "compaction"}),
        json!({"type": "item_reference"}),
    ];
    misshapen(&target, wrap, &wrong);
    let implicit =
        json!({"type": "input_text", "text": "Tea?", "prompt_cache_breakpoint": {"mode": "implicit"}});
    let new = Target { breakpoints: true, ..target.clone() };
    assert_eq!(labels(&new, &wrap(&message("user", implicit))), ["shape"]);
    let tools =
        |tools: &Value| json!({"input": [says("user", "Tea?")], "instructions": "Be brief.", "tools": tools});
    passes(
        &target,
        &tools(
            &json!([{"type": "function", "name": "boil", "parameters": {"type": "object"}}, {"type": "web_search"}]),
        ),
    );
    misshapen(
        &target,
        tools,
        &[
            json!({}),
            json!([{"type": "function", "function": {"name": "boil"}}]),
            json!([{"type": "function", "name": "boil", "parameters": 7}]),
            json!([{"type": "function", "name": "boil", "parameters": {"type": "dict", "properties": {}}}]),
        ],
    );
    misshapen(&target, Value::clone, &[json!({"input": []}), json!({"input": "Tea?"})]);
}

/// Returns an Anthropic message of blocks.
fn blocks(role: &str, blocks: Value) -> Value {
    json!({"role": role, "content": blocks})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "boil", "input": {}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn marked(mut block: Value, ttl: &str) -> Value {
    block["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
    block
}

fn anthropic() -> Vec<Case> {
    let strict = Target::new(Form::Anthropic);
    let prefill = Target { trailing_assistant: true, ..strict.clone() };
    let inside = Target { system_inside: true, ..strict.clone() };
    let (on, off) = (
        Target { thinking: Some(true), ..strict.clone() },
        Target { thinking: Some(false), ..strict.clone() },
    );
    let (system, user, said) = (says("system", "In verse."), says("user", "Tea?"), says("assistant", "Yes."));
    let plain = list(&[&user, &said, &user]);
    let both = blocks("assistant", json!([text("A moment."), tool_use("a"), tool_use("b")]));
    let done = blocks("user", json!([tool_result("b"), tool_result("a"), text("And?")]));
    let pairs = list(&[&user, &both, &done]);
    let results = |results: Value| list(&[&user, &both, &blocks("user", results)]);
    let (a, b) = (tool_result("a"), tool_result("b"));

    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let searched = list(&[&user, &blocks("assistant", json!([search, found, text("Yes.")])), &user]);

    let thought = json!({"type": "thinking", "thinking": "", "signature": "c2ln"});
    let once = |first: Value, id: &str| blocks("assistant", json!([first, tool_use(id)]));
    let of = |id: &str| blocks("user", json!([tool_result(id)]));
    let (thinks, speaks) = (once(thought.clone(), "a"), once(text("A moment."), "a"));
    let next = blocks("assistant", json!([tool_use("b")]));
    let looped = list(&[&user, &thinks, &of("a"), &next, &of("b")]);

    let boil = json!({"name": "boil", "input_schema": {"type": "object"}});
    let body = |tools: Value, system: Value, last: Value| json!({"tools": tools, "system": system, "messages": [{"role": "user", "content": last}]});
    let (long, short) = (marked(text("Tea?"), "1h"), marked(text("Tea?"), "5m"));
    let cached = body(json!([marked(boil.clone(), "1h")]), json!([long]), json!([long, short]));
    let automatic = |mut body: Value, ttl: &str| {
        body["cache_control"] = json!({"type": "ephemeral", "ttl": ttl});
        body
    };
    let mut deferred = marked(boil, "5m");
    deferred["defer_loading"] = json!(true);
    let nested = |inner: Value| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [inner]});
        list(&[&user, &speaks, &blocks("user", json!([marked(result, "5m")]))])
    };
    let pairs_with = |content: &str| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": content});
        list(&[&user, &speaks, &blocks("user", json!([result]))])
    };
    let many = |count: usize| {
        let messages: Vec<&Value> = [&user, &said].into_iter().cycle().take(count).collect();
        list(&messages)
    };
    vec![
        case(13, &strict, &plain, list(&[&said, &user])),
        case(14, &strict, &plain, list(&[&user, &user])),
        case(14, &strict, &plain, list(&[&user, &said, &said, &user])),
        case(15, &strict, &pairs, results(json!([a]))),
        case(15, &strict, &pairs, list(&[&user, &both, &user])),
        case(15, &prefill, &pairs, list(&[&user, &both])),
        with(&["17"], case(15, &strict, &pairs, list(&[&user, &speaks, &user, &said, &of("a")]))),
        case(16, &strict, &pairs, results(json!([a, text("And?"), b]))),
        case(17, &strict, &pairs, results(json!([a, b, tool_result("c")]))),
        case(17, &strict, &pairs, list(&[&of("a"), &said, &user])),
        case(18, &strict, &pairs, results(json!([a, b, a]))),
        case(19, &strict, &searched, list(&[&user, &blocks("assistant", json!([found, search])), &user])),
        case(19, &strict, &searched, list(&[&user, &blocks("assistant", json!([found])), &user])),
        case(19, &strict, &searched, list(&[&user, &blocks("assistant", json!([search])), &user])),
        case(20, &strict, &plain, list(&[&blocks("user", json!([text(" \n")]))])),
        case(20, &strict, &plain, list(&[&says("user", "")])),
        case(20, &strict, &plain, list(&[&blocks("user", json!([]))])),
        case(20, &strict, &plain, json!({"system": " ", "messages": [user]})),
        case(20, &strict, &plain, json!({"system": [text("")], "messages": [user]})),
        case(20, &strict, &pairs_with("done"), pairs_with("")),
        case(20, &strict, &nested(text("done")), nested(text("\u{a0}"))),
        case(21, &prefill, &list(&[&user, &said]), list(&[&user, &says("assistant", "Yes. ")])),
        case(
            21,
            &prefill,
            &list(&[&user, &said]),
            list(&[&user, &blocks("assistant", json!([text("Yes.\n")]))]),
        ),
        case(22, &strict, &plain, list(&[&user, &said])),
        case(23, &strict, &plain, list(&[&user, &system, &said, &user])),
        with(&["13"], case(23, &inside, &list(&[&user, &system]), list(&[&system, &said, &user]))),
        case(23, &inside, &list(&[&user, &system, &said, &user]), list(&[&user, &system, &system])),
        case(23, &inside, &list(&[&user, &system, &said, &user]), list(&[&user, &system, &user])),
        case(
            23,
            &inside,
            &list(&[&user, &blocks("assistant", json!([search])), &system]),
            list(&[&user, &said, &system]),
        ),
        with(
            &["15", "17"],
            case(
                23,
                &inside,
                &list(&[&user, &speaks, &of("a"), &system]),
                list(&[&user, &speaks, &system, &of("a")]),
            ),
        ),
        case(24, &on, &looped, list(&[&user, &speaks, &of("a"), &next, &of("b")])),
        case(24, &on, &list(&[&user, &speaks, &of("a"), &said, &user]), list(&[&user, &speaks, &of("a")])),
        case(24, &on, &looped, list(&[&user, &speaks, &of("a"), &once(thought.clone(), "b"), &of("b")])),
        case(26, &off, &list(&[&user, &thinks, &of("a"), &said, &user]), list(&[&user, &thinks, &of("a")])),
        case(28, &strict, &cached, body(json!([]), json!(vec![&short; 2]), json!(vec![&short; 3]))),
        case(28, &strict, &body(json!([]), json!(vec![&short; 3]), json!([text("Tea?")])), {
            automatic(body(json!([]), json!(vec![&short; 4]), json!([text("Tea?")])), "5m")
        }),
        case(29, &strict, &cached, body(json!([]), json!([short]), json!([long]))),
        case(29, &strict, &automatic(body(json!([]), json!([]), json!([long])), "1h"), {
            automatic(body(json!([]), json!([]), json!([long])), "5m")
        }),
        case(29, &strict, &automatic(body(json!([]), json!([short]), json!([text("Tea?")])), "5m"), {
            automatic(body(json!([]), json!([short]), json!([text("Tea?")])), "1h")
        }),
        with(
            &["20"],
            case(30, &strict, &cached, body(json!([]), json!([]), json!([marked(text(""), "5m")]))),
        ),
        case(30, &strict, &cached, {
            list(&[&user, &blocks("assistant", json!([marked(thought, "5m"), text("Yes.")])), &user])
        }),
        case(
            30,
            &strict,
            &cached,
            body(json!([deferred]), json!([text("Be brief.")]), json!([text("Tea?")])),
        ),
        case(31, &strict, &many(99_999), many(100_001)),
    ]
}

#[test]
fn anthropic_shapes() {
    let target = Target::new(Form::Anthropic);
    let user = says("user", "Tea?");
    let source = |kind: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}});
    let wrap = |message: &Value| match message["role"].as_str() {
        Some("assistant") => {
            let uses = message["content"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|block| block["type"] == "tool_use");
            let results: Vec<Value> = uses.map(|block| tool_result(block["id"].as_str().unwrap())).collect();
            let next = if results.is_empty() { user.clone() } else { blocks("user", json!(results)) };
            list(&[&user, message, &next])
        }
        _ if message["content"][0]["type"] == "tool_result" => {
            list(&[&user, &blocks("assistant", json!([tool_use("a")])), message])
        }
        _ => list(&[message]),
    };
    let image = source("image/png", "iVBORw0=");
    let result = |content: Value, error: bool| {
        blocks(
            "user",
            json!([{"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": error}]),
        )
    };
    for sound in [
        blocks("user", json!([image, text("What is this?")])),
        blocks(
            "user",
            json!([{"type": "image", "source": {"type": "url", "url": "https://example.org/tea.png"}}]),
        ),
        blocks(
            "user",
            json!([
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Tea."}},
            ]),
        ),
        blocks(
            "user",
            json!([{"type": "search_result", "source": "a", "title": "b", "content": [text("c")]}]),
        ),
        blocks("user", json!([{"type": "container_upload", "file_id": "f"}])),
        blocks("user", json!([{"type": "tool_result", "tool_use_id": "a"}])),
        blocks("user", json!([marked(text("Tea?"), "1h")])),
        result(json!([image.clone(), text("done")]), true),
        result(json!([]), false),
        blocks("assistant", json!([{"type": "redacted_thinking", "data": "x"}, text("Yes.")])),
    ] {
        passes(&target, &wrap(&sound));
    }
    let used = |id: &str, name: &str, input: Value| {
        blocks("assistant", json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
    };
    let wrong = [
        json!({"role": "user", "content": null}),
        json!({"role": "user", "content": "Tea?", "name": "Zoë"}),
        blocks("user", json!([{"type": "input_text", "text": "Tea?"}])),
        blocks("user", json!([{"type": "text", "text": "Tea?", "id": 1}])),
        blocks("user", json!([{"type": "text"}])),
        blocks("user", json!([{"type": "thinking", "thinking": "", "signature": "x"}, text("Tea?")])),
        blocks(
            "user",
            json!([{"type": "text", "text": "Tea?", "cache_control": {"type": "ephemeral", "ttl": "2h"}}]),
        ),
        blocks("user", json!([{"type": "text", "text": "Tea?", "cache_control": {"type": "lasting"}}])),
        blocks("user", json!([{"type": "text", "text": "Tea?", "cache_control": null}])),
        blocks("user", json!([source("image/svg+xml", "iVBORw0=")])),
        blocks("user", json!([source("image/png", "iVBORw0")])),
        blocks("user", json!([{"type": "image", "source": {"type": "url", "url": "tea.png"}}])),
        blocks(
            "user",
            json!([
                {"type": "document", "source": {"type": "base64", "media_type": "text/html", "data": "AAAA"}},
            ]),
        ),
        blocks("assistant", json!([image])),
        blocks("assistant", json!([{"type": "thinking", "thinking": "Why not?"}, text("Yes.")])),
        blocks("assistant", json!([{"type": "redacted_thinking"}, text("Yes.")])),
        blocks("assistant", json!([{"type": "thinking", "thinking": "", "signature": "x"}])),
        used("a.1", "boil", json!({})),
        used("a", "", json!({})),
        used("a", "boil", json!("{}")),
        result(json!([]), true),
        blocks("user", json!([{"type": "search_result", "source": "a", "title": "b", "content": []}])),
        blocks("user", json!([{"type": "image", "source": {"type": "file", "file_id": "f"}}])),
        blocks("user", json!([{"type": "tool_result", "tool_use_id": "a", "is_error": "no"}])),
        blocks("assistant", json!([{"type": "thinking", "signature": "x"}, text("Yes.")])),
        result(json!([json!({"type": "thinking"})]), false),
        result(json!(7), false),
    ];
    misshapen(&target, wrap, &wrong);
    let (use_, of) = (blocks("assistant", json!([tool_use("a")])), blocks("user", json!([tool_result("a")])));
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s"});
    misshapen(
        &target,
        Value::clone,
        &[
            json!({}),
            json!({"messages": []}),
            json!({"system": 7, "messages": [user]}),
            json!({"system": [source("image/png", "iVBORw0=")], "messages": [user]}),
            list(&[&user, &use_, &of, &use_, &of]),
            list(&[&user, &says("tool", "done"), &user]),
            list(&[&user, &blocks("assistant", json!([search, found])), &user]),
        ],
    );
    let tools = |tools: &Value| json!({"messages": [user], "tools": tools});
    let boil = json!({"name": "boil", "input_schema": {"type": "object"}});
    passes(&target, &tools(&json!([boil, {"type": "web_search_20250305", "name": "web_search"}])));
    misshapen(&target, tools, &[json!({}), json!([{"name": "boil"}]), json!([boil, boil])]);
}

#[test]
fn anthropic_counts_a_mark_inside_a_result() {
    let mark = |count: usize| {
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": vec![marked(text("done"), "5m"); count]});
        let (use_, of) = (blocks("assistant", json!([tool_use("a")])), blocks("user", json!([result])));
        list(&[&says("user", "Tea?"), &use_, &of])
    };
    passes(&Target::new(Form::Anthropic), &mark(4));
    assert_eq!(labels(&Target::new(Form::Anthropic), &mark(5)), ["28"]);
}

fn contents(contents: &[&Value]) -> Value {
    json!({"contents": contents})
}

fn turn(role: &str, parts: Value) -> Value {
    json!({"role": role, "parts": parts})
}

fn function(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn response(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "done"}}})
}

fn signed(mut part: Value) -> Value {
    part["thoughtSignature"] = json!("c2ln");
    part
}

fn gemini() -> Vec<Case> {
    let strict = Target::new(Form::Gemini);
    let three = Target { thought_signatures: true, ..strict.clone() };
    let (user, model) = (turn("user", json!([{"text": "Tea?"}])), turn("model", json!([{"text": "Yes."}])));
    let both = turn("model", json!([function("boil"), function("pour")]));
    let done = turn("user", json!([response("boil"), response("pour")]));
    let (one, other) = (turn("user", json!([response("boil")])), turn("user", json!([response("pour")])));
    let plain = contents(&[&user, &model, &user]);
    let pairs = contents(&[&user, &both, &done, &both, &done]);
    let part = |part: Value| contents(&[&turn("user", json!([part]))]);
    let step = |parts: &[Value]| {
        contents(&[&user, &both, &done, &model, &user, &turn("model", json!(parts)), &done])
    };
    let signed_step = step(&[signed(function("boil")), function("pour")]);
    let mut extra = plain.clone();
    extra["contents"][0]["name"] = json!("Zoë");
    let instructed = |parts: Value| json!({"systemInstruction": {"parts": parts}, "contents": [user]});
    let brief = instructed(json!([{"text": "Be brief."}]));
    let system = turn("system", json!([{"text": "Be brief."}]));
    vec![
        case(32, &strict, &plain, contents(&[])),
        case(32, &strict, &plain, json!({})),
        case(33, &strict, &plain, contents(&[&turn("user", json!([]))])),
        case(33, &strict, &plain, part(json!({}))),
        case(33, &strict, &plain, part(json!({"thought": true}))),
        case(33, &strict, &part(signed(json!({"text": ""}))), part(json!({"text": ""}))),
        case(33, &strict, &brief, instructed(json!([]))),
        case(33, &strict, &brief, instructed(json!([{"text": ""}]))),
        case(34, &strict, &plain, contents(&[&user, &user])),
        case(34, &strict, &plain, contents(&[&user, &model, &model, &user])),
        case(34, &strict, &plain, contents(&[&user, &turn("assistant", json!([{"text": "Yes."}])), &user])),
        case(35, &strict, &plain, contents(&[&model, &user])),
        with(&["35"], case(36, &strict, &pairs, contents(&[&both, &done]))),
        with(&["34"], case(36, &strict, &pairs, contents(&[&user, &model, &both, &done]))),
        case(37, &strict, &pairs, contents(&[&user, &both, &turn("user", json!([response("boil")]))])),
        case(37, &strict, &pairs, contents(&[&user, &both, &user])),
        with(&["34", "38"], case(37, &strict, &pairs, contents(&[&user, &both, &one, &other]))),
        case(38, &strict, &pairs, contents(&[&user, &model, &done])),
        case(38, &strict, &pairs, contents(&[&done, &model, &user])),
        case(39, &strict, &plain, contents(&[&user, &model])),
        case(40, &three, &signed_step, step(&[function("boil"), function("pour")])),
        case(40, &three, &signed_step, step(&[signed(function("boil")), signed(function("pour"))])),
        case(42, &strict, &plain, extra),
        case(42, &strict, &plain, part(json!({"text": "Tea?", "cache_control": {"type": "ephemeral"}}))),
        case(42, &strict, &brief, json!({"system_instruction": {"parts": []}, "contents": [user]})),
        with(&["35"], case(42, &strict, &brief, contents(&[&system, &user]))),
    ]
}

#[test]
fn gemini_shapes() {
    let target = Target::new(Form::Gemini);
    let user = turn("user", json!([{"text": "Tea?"}]));
    let part = |part: &Value| contents(&[&turn("user", json!([part]))]);
    passes(&target, &part(&json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0="}})));
    passes(&target, &part(&json!({"fileData": {"mimeType": "image/png", "fileUri": "gs://tea.png"}})));
    misshapen(
        &target,
        part,
        &[
            json!({"text": 7}),
            json!({"text": "Tea?", "thought": "yes"}),
            json!({"text": "Tea?", "thoughtSignature": ""}),
            json!({"text": "Tea?", "inlineData": {"mimeType": "image/png", "data": "iVBORw0="}}),
            json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw0"}}),
            json!({"inlineData": {"mimeType": "", "data": "iVBORw0="}}),
        ],
    );
    let call = |id: &str, name: &str| json!({"functionCall": {"name": name, "args": {}, "id": id}});
    let of = |id: &str, name: &str| json!({"functionResponse": {"name": name, "response": {}, "id": id}});
    let pair = |calls: &[Value], responses: &[Value]| {
        contents(&[&user, &turn("model", json!(calls)), &turn("user", json!(responses))])
    };
    let calls = [call("1", "boil"), call("2", "pour")];
    passes(&target, &pair(&calls, &[of("2", "pour"), of("1", "boil")]));
    misshapen(
        &target,
        Value::clone,
        &[
            part(&json!({"executableCode": "1 + 1"})),
            pair(&[call("", "boil")], &[of("", "boil")]),
            pair(&calls, &[of("1", "pour"), of("2", "boil")]),
            pair(&[function("boil"), function("pour")], &[response("pour"), response("boil")]),
            pair(&calls, &[response("boil"), response("pour")]),
            pair(&[json!({"functionCall": {"name": "boil", "args": "{}"}})], &[response("boil")]),
            pair(&[function("boil")], &[json!({"functionResponse": {"name": "boil", "response": "done"}})]),
        ],
    );
    assert_eq!(labels(&target, &pair(&calls, &[of("1", "boil"), of("3", "pour")])), ["38"]);
    assert_eq!(labels(&target, &pair(&calls, &[of("1", "boil"), of("1", "boil")])), ["37"]);
    let (asks, answers) = (turn("user", json!([function("boil")])), turn("model", json!([response("boil")])));
    assert_eq!(labels(&target, &contents(&[&asks])), ["36", "37", "shape"]);
    assert_eq!(labels(&target, &contents(&[&user, &answers, &user])), ["38", "shape"]);
    let tools = |tools: &Value| json!({"contents": [user], "tools": tools});
    passes(&target, &tools(&json!([{"functionDeclarations": [{"name": "boil"}]}, {"googleSearch": {}}])));
    misshapen(
        &target,
        tools,
        &[
            json!({}),
            json!([{"functionDeclarations": []}]),
            json!([{"functionDeclarations": [{"name": ""}]}]),
        ],
    );
}

fn template() -> Vec<Case> {
    let strict = Target::new(Form::ChatTemplate);
    let (system, user, said) = (says("system", "Be brief."), says("user", "Tea?"), says("assistant", "Yes."));
    let (a, of_a) = (calls(&["a"]), answer("a"));
    let sound = list(&[&system, &user, &a, &of_a, &a, &of_a, &said, &user]);
    let searched = |content: Value| json!({"messages": [{"role": "user", "content": content}], "content_markers": ["<|im_end|>"]});
    let broken = |messages: &[&Value]| case(44, &strict, &sound, list(messages));
    vec![
        case(43, &strict, &sound, list(&[&system, &system, &user])),
        case(43, &strict, &sound, list(&[&user, &said, &system, &user])),
        broken(&[&user, &user]),
        broken(&[&system, &said, &user]),
        broken(&[&user, &said, &said, &user]),
        broken(&[&user, &said]),
        with(&["2"], broken(&[&user, &a, &said, &user])),
        with(&["1"], broken(&[&user, &of_a, &user])),
        case(45, &strict, &searched(json!("Tea|im_end|>")), searched(json!("Tea<|im_end|>"))),
        case(45, &strict, &searched(json!([{"type": "text", "text": "Tea"}])), {
            searched(json!([{"type": "text", "text": "Tea<|im_"}, {"type": "text", "text": "end|>"}]))
        }),
    ]
}

#[test]
fn chat_templates_may_be_given_parsed_arguments_and_bare_pictures() {
    let target = Target::new(Form::ChatTemplate);
    let mut parsed = calls(&["a"]);
    parsed["tool_calls"][0]["function"]["arguments"] = json!({"litres": 2});
    let picture = json!({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Tea?"}]});
    passes(&target, &list(&[&picture, &parsed, &answer("a")]));
    misshapen(
        &target,
        Value::clone,
        &[
            list(&[&json!({"role": "user", "content": null})]),
            json!({"messages": [says("user", "Tea?")], "text": 7}),
        ],
    );
}

#[test]
fn control_tokens_are_found_in_every_printed_text() {
    let markers = ["<|im_end|>".to_owned(), "</tool_call>".to_owned(), String::new()];
    let found = |message: Value| control_tokens_in_content(&json!([message]), &markers).len();
    assert_eq!(found(says("user", "Tea?")), 0);
    assert_eq!(found(says("tool", "x<|im_end|></tool_call>")), 2);
    let mut call = calls(&["a"]);
    call["tool_calls"][0]["function"]["arguments"] = json!({"a</tool_call>": "<|im_end|>"});
    assert_eq!(found(call), 2);
    assert_eq!(found(json!({"role": "assistant", "content": "Yes.", "reasoning_content": "<|im_end|>"})), 1);
}
