//! Cache breakpoints. There are at most four, they also mark the ends of the prefix that the next prompt
//! shares, and none marks a prefix below the model's minimum length or reasoning.

use context_window::{
    Config, ContextPlan, ContextWindowManager, Conversation, Message, Model, Part, PinnedItem, PlanRequest,
    RagItem, TokenCounter, Tool, ToolCall, Ttl, WireFormat, message::Reasoning, render, usage::CacheLife,
};
use serde_json::Value;

fn plan(model: &str, log: &Conversation, few: bool) -> ContextPlan {
    let mut model = Model::named(model).unwrap();
    if few {
        model = model.without_cache_rule();
    }
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let rag = [RagItem::new("d1", 1.0, "A document.")];
    let request = PlanRequest::new(log).with_rag(rag).with_state("clock", "It is noon.");
    manager.build_plan(&request).unwrap()
}

fn log(steps: usize) -> Conversation {
    let mut log = Conversation::from([
        Message::system("Be brief. ".repeat(30)),
        Message::user("The first question."),
        Message::assistant("The first answer."),
        Message::user("The second question."),
    ]);
    log.pin(PinnedItem::new("lasting", "A lasting note."));
    log.pin(PinnedItem::new("fleeting", "A note for two turns.").with_ttl(Ttl::turns(2)));
    for step in 0..steps {
        let call =
            Message::assistant("I look.").with_tool_calls([ToolCall::new(format!("c{step}"), "look", "{}")]);
        log.push(call.with_reasoning(Reasoning::signed(WireFormat::Anthropic, "Hm.", "c2ln")));
        log.push(Message::tool(format!("c{step}"), format!("result {step}")));
    }
    log
}

/// Collects the texts, calls and results with a mark, in the order of the body.
fn marked(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| marked(value, key, found)),
        Value::Object(object) => {
            if object.contains_key(key) {
                let says = ["text", "content", "name"].iter().find_map(|key| object.get(*key)?.as_str());
                found.push(says.unwrap_or("?").chars().take(30).collect());
            }
            // Visits the keys in the order of the body; `serde_json` sorts them alphabetically.
            for name in ["system", "messages", "input", "content", "output"] {
                if let Some(value) = object.get(name) {
                    marked(value, key, found);
                }
            }
        }
        _ => {}
    }
}

fn marks(body: &impl serde::Serialize, key: &str) -> Vec<String> {
    let mut found = Vec::new();
    marked(&serde_json::to_value(body).unwrap(), key, &mut found);
    found
}

fn anthropic(plan: &ContextPlan) -> Vec<String> {
    marks(&render::anthropic(plan).with_breakpoints(CacheLife::OneHour), "cache_control")
}

#[test]
fn ends_of_the_lasting_prefix_are_marked() {
    // Expected marks: the end of the lasting instructions (the note with a TTL of two turns comes after it),
    // the end of the earlier turns, and the question without the state merged into it.
    let short = plan("claude-sonnet-5", &log(0), true);
    assert_eq!(anthropic(&short), ["A lasting note.", "The first answer.", "The second question."]);
    let working = plan("claude-sonnet-5", &log(2), true);
    assert_eq!(anthropic(&working), ["A lasting note.", "The first answer.", "result 1"]);
    // If the live turn is longer than the provider's lookback, one more mark is set inside it.
    let long = plan("claude-sonnet-5", &log(12), true);
    assert_eq!(anthropic(&long), ["A lasting note.", "The first answer.", "result 2", "result 11"]);
    assert!(marks(&render::anthropic(&long), "cache_control").is_empty(), "only on request");
}

#[test]
fn prefix_below_the_models_minimum_is_not_marked() {
    // The minimum of Claude Sonnet 5 is 1,024 tokens, and this counter counts a quarter token per character.
    let small = plan("claude-sonnet-5", &log(0), false);
    assert!(anthropic(&small).is_empty());
    let mut large = log(0);
    large.push_system("long", "x".repeat(4_000));
    large.push(Message::user("y".repeat(400)));
    let large = plan("claude-sonnet-5", &large, false);
    let marked = anthropic(&large);
    assert_eq!(marked.len(), 3, "{marked:?}");
}

#[test]
fn cache_ttl_is_sent_if_it_is_not_the_default() {
    let plan = plan("claude-sonnet-5", &log(0), true);
    let five =
        serde_json::to_string(&render::anthropic(&plan).with_breakpoints(CacheLife::FiveMinutes)).unwrap();
    assert!(five.contains(r#""cache_control":{"type":"ephemeral"}"#) && !five.contains("ttl"));
    let hour = serde_json::to_string(&render::anthropic(&plan).with_breakpoints(CacheLife::OneHour)).unwrap();
    assert!(hour.contains(r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#));
}

/// A provider accepts at most four marks. Marks inside parts and tools that come from another prompt are not
/// sent.
#[test]
fn marks_of_another_prompt_are_not_sent() {
    const MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;
    let source =
        r#""source":{"type":"content","content":[{"type":"text","text":"d","cache\u005fcontrol":{}}]}"#;
    let document = Part::Opaque {
        wire_format: WireFormat::Anthropic,
        json: format!(r#"{{"type":"document",{MARK},{source}}}"#),
    };
    let log = Conversation::from([Message::user("Read.").with_parts(vec![document; 5])]);
    let search = format!(r#"{{"type":"web_search_20250305","name":"web_search",{MARK}}}"#);
    let tools = [Tool::hosted("web_search", WireFormat::Anthropic, search)];
    let mut model = Model::named("claude-sonnet-5").unwrap();
    model = model.without_cache_rule();
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let plan = manager.build_plan(&PlanRequest::new(&log).with_tools(&tools)).unwrap();
    let body = serde_json::to_value(render::anthropic(&plan)).unwrap();
    assert!(!body.to_string().contains("cache_control"), "{body:#}");
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 6);
    assert_eq!(body["tools"][0]["type"], "web_search_20250305");
    let marked = serde_json::to_value(render::anthropic(&plan).with_breakpoints(CacheLife::OneHour)).unwrap();
    assert_eq!(marked.to_string().matches("cache_control").count(), 1, "our own");
    assert_eq!(
        marked["messages"][0]["content"][5]["cache_control"]["ttl"], "1h",
        "at the end of the question"
    );
    assert!(plan.notices.is_empty(), "{:?}", plan.notices);
}

/// GPT-5.6 accepts marks in input items, not in its own messages. Older models accept none.
#[test]
fn openai_marks_only_input_items() {
    const KEY: &str = "prompt_cache_breakpoint";
    let plan_of = |model: &str| plan(model, &log(2), true);
    let new = plan_of("gpt-5.6");
    let expected = ["A lasting note.", "The first question.", "result 1"];
    assert_eq!(marks(&render::openai(&new).with_breakpoints(CacheLife::FiveMinutes), KEY), expected);
    let mut model = Model::named("gpt-5.6").unwrap().with_wire_format(WireFormat::OpenAiResponses);
    model = model.without_cache_rule();
    let manager = ContextWindowManager::new(model, TokenCounter::chars_per_4(), Config::default()).unwrap();
    let log = log(2);
    let responses = manager.build_plan(&PlanRequest::new(&log)).unwrap();
    assert_eq!(
        marks(&render::openai_responses(&responses).with_breakpoints(CacheLife::FiveMinutes), KEY),
        expected
    );
    let old = plan_of("gpt-4o");
    assert!(marks(&render::openai(&old).with_breakpoints(CacheLife::FiveMinutes), KEY).is_empty());
}
