//! Messages of `LangChain` (langchain-core 0.1 to 1.8, @langchain/core 1.4), in the forms that its own
//! functions write.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Map, Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::LangChain;
    let keeps = Keeps { late_system: true, ..ALL };
    let shape = |name, write| Shape { name, format, write, keeps };
    vec![
        shape("langchain-dumps", |events| list(events, Blocks::None, constructor)),
        shape("langchain-js", |events| list(events, Blocks::Standard, js_constructor)),
        shape("langchain-dict", |events| list(events, Blocks::Anthropic, in_data)),
        shape("langchain-flat", |events| list(events, Blocks::None, |_, kwargs| kwargs)),
        shape("langchain-old", |events| list(events, Blocks::Legacy, in_data)),
        shape("langchain-lines", |events| {
            let lines: Vec<String> = messages(events, Blocks::Responses)
                .into_iter()
                .map(|(class, own)| in_data(class, own).to_string())
                .collect();
            lines.join("\n")
        }),
        shape("langchain-state", |events| {
            let all: Vec<Value> = messages(events, Blocks::Standard)
                .into_iter()
                .map(|(class, own)| constructor(class, own))
                .collect();
            json!({ "messages": all }).to_string()
        }),
    ]
}

/// The positions of calls and reasoning.
#[derive(Clone, Copy, PartialEq)]
enum Blocks {
    None,
    Standard,
    Anthropic,
    Responses,
    Legacy,
}

fn list(events: &[Event], blocks: Blocks, wrap: fn(&str, Value) -> Value) -> String {
    Value::from(messages(events, blocks).into_iter().map(|(class, own)| wrap(class, own)).collect::<Vec<_>>())
        .to_string()
}

fn constructor(class: &str, kwargs: Value) -> Value {
    json!({ "lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": kwargs })
}

fn js_constructor(class: &str, mut kwargs: Value) -> Value {
    kwargs.as_object_mut().unwrap().remove("type");
    json!({ "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", class], "kwargs": kwargs })
}

fn in_data(_: &str, kwargs: Value) -> Value {
    json!({ "type": kwargs["type"], "data": kwargs })
}

fn messages(events: &[Event], blocks: Blocks) -> Vec<(&'static str, Value)> {
    events.iter().map(|event| message(event, blocks)).collect()
}

fn message(event: &Event, blocks: Blocks) -> (&'static str, Value) {
    let (class, kind, content, beside) = match event {
        Event::System(text) => ("SystemMessage", "system", json!(text), Map::new()),
        Event::User { text, image: None } => ("HumanMessage", "human", json!(text), Map::new()),
        Event::User { text, image: Some(image) } => {
            let image = match blocks {
                Blocks::Standard => json!({ "type": "image", "base64": image, "mime_type": "image/png" }),
                Blocks::Anthropic => {
                    json!({ "type": "image", "source_type": "base64", "data": image, "mime_type": "image/png" })
                }
                _ => {
                    json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{image}") } })
                }
            };
            ("HumanMessage", "human", json!([{ "type": "text", "text": text }, image]), Map::new())
        }
        Event::Assistant { thought, text, calls } => {
            let (content, beside) = reply(thought.as_deref(), text.as_deref(), calls, blocks);
            ("AIMessage", "ai", content, beside)
        }
        Event::Result { call, text, is_failed } => {
            let status = if *is_failed { "error" } else { "success" };
            let Value::Object(beside) =
                json!({ "tool_call_id": call.id, "status": status, "artifact": null })
            else {
                unreachable!()
            };
            ("ToolMessage", "tool", json!(text), beside)
        }
    };
    let mut own = json!({ "content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind,
        "name": null, "id": null });
    own.as_object_mut().unwrap().extend(beside);
    (class, own)
}

fn reply(
    thought: Option<&str>,
    text: Option<&str>,
    calls: &[Called],
    blocks: Blocks,
) -> (Value, Map<String, Value>) {
    let mut beside = Map::new();
    let own = |call: &Called| json!({ "name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call" });
    let by_openai = |call: &Called| {
        json!({ "id": call.id, "type": "function",
            "function": { "name": call.name, "arguments": call.arguments.to_string() } })
    };
    let mut list: Vec<Value> = Vec::new();
    list.extend(thought.and_then(|thought| match blocks {
        Blocks::Standard => Some(json!({ "type": "reasoning", "reasoning": thought })),
        Blocks::Anthropic => Some(json!({ "type": "thinking", "thinking": thought, "signature": "c2ln" })),
        Blocks::Responses => Some(json!({ "type": "reasoning", "id": "rs_1",
            "summary": [{ "type": "summary_text", "text": thought }] })),
        Blocks::None | Blocks::Legacy => None,
    }));
    list.extend(text.map(|text| json!({ "type": "text", "text": text })));
    list.extend(calls.iter().filter_map(|call| match blocks {
        Blocks::Standard => Some(own(call)),
        Blocks::Anthropic => {
            Some(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments }))
        }
        Blocks::Responses => Some(json!({ "type": "function_call", "call_id": call.id, "id": "fc_1",
            "name": call.name, "arguments": call.arguments.to_string() })),
        Blocks::None | Blocks::Legacy => None,
    }));
    beside.insert("invalid_tool_calls".into(), json!([]));
    let is_plain = matches!(blocks, Blocks::None | Blocks::Legacy);
    if blocks == Blocks::Legacy {
        let calls: Vec<Value> = calls.iter().map(by_openai).collect();
        beside
            .insert("additional_kwargs".into(), json!({ "tool_calls": calls, "reasoning_content": thought }));
        beside.insert("tool_calls".into(), json!([]));
    } else {
        beside.insert("tool_calls".into(), calls.iter().map(own).collect());
        if is_plain && thought.is_some() {
            beside.insert("additional_kwargs".into(), json!({ "reasoning_content": thought }));
        }
    }
    (if is_plain { json!(text.unwrap_or_default()) } else { Value::from(list) }, beside)
}
