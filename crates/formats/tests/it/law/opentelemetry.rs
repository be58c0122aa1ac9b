//! Spans and events of the conventions for generative AI of `OpenTelemetry` 1.28 to 1.41.

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Map, Value, json};

pub fn shapes() -> Vec<Shape> {
    let keeps = Keeps { failures: false, ..ALL };
    let plain = Keeps { thoughts: false, images: false, ..keeps };
    let shape = |name, write, keeps| Shape { name, format: FileFormat::OpenTelemetry, write, keeps };
    vec![
        shape(
            "otel-messages",
            |events| Value::from(messages(events)).to_string(),
            Keeps { late_system: true, ..keeps },
        ),
        shape("otel-attributes", |events| attributes(events, true).to_string(), keeps),
        shape("otel-console", |events| span(events).to_string(), keeps),
        shape("otel-otlp", |events| otlp(&attributes(events, true)), keeps),
        shape("otel-otlp-structured", |events| otlp(&attributes(events, false)), keeps),
        shape("otel-logs", logs, plain),
        shape("otel-openllmetry", |events| flat(events).to_string(), plain),
    ]
}

fn messages(events: &[Event]) -> Vec<Value> {
    events.iter().map(message).collect()
}

fn message(event: &Event) -> Value {
    let text = |text: &String| json!({ "type": "text", "content": text });
    let (role, parts): (_, Vec<Value>) = match event {
        Event::System(said) => ("system", vec![text(said)]),
        Event::User { text: said, image } => {
            let image = image.as_ref().map(|data| {
                json!({ "type": "blob", "modality": "image", "mime_type": "image/png", "content": data })
            });
            ("user", [text(said)].into_iter().chain(image).collect())
        }
        Event::Assistant { thought, text: said, calls } => {
            let thought = thought.iter().map(|text| json!({ "type": "reasoning", "content": text }));
            let call = |call: &Called| json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments });
            ("assistant", thought.chain(said.iter().map(text)).chain(calls.iter().map(call)).collect())
        }
        Event::Result { call, text, .. } => {
            ("tool", vec![json!({ "type": "tool_call_response", "id": call.id, "response": text })])
        }
    };
    json!({ "role": role, "parts": parts })
}

/// Returns the attributes of the last request. Its answer is the last message if that is the assistant's.
fn attributes(events: &[Event], are_texts: bool) -> Value {
    let (mut input, mut system, mut output) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::System(text) => system.push(json!({ "type": "text", "content": text })),
            event => input.push(message(event)),
        }
    }
    if matches!(events.last(), Some(Event::Assistant { .. })) {
        output.extend(input.pop());
    }
    let own =
        |list: Vec<Value>| if are_texts { json!(Value::from(list).to_string()) } else { Value::from(list) };
    let mut all = json!({ "gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.input.messages": own(input),
        "gen_ai.usage.input_tokens": 12 });
    for (key, list) in [("gen_ai.system_instructions", system), ("gen_ai.output.messages", output)] {
        if !list.is_empty() {
            all[key] = own(list);
        }
    }
    all
}

fn span(events: &[Event]) -> Value {
    json!({ "name": "chat gpt-4o", "context": { "trace_id": "0x5b", "span_id": "0xee" }, "kind": "SpanKind.CLIENT",
        "start_time": "2026-11-01T10:00:00.000000Z", "attributes": attributes(events, true), "events": [] })
}

fn any(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({ "boolValue": value }),
        Value::Number(value) if value.is_i64() => json!({ "intValue": value.to_string() }),
        Value::Number(value) => json!({ "doubleValue": value }),
        Value::String(text) => json!({ "stringValue": text }),
        Value::Array(all) => json!({ "arrayValue": { "values": all.iter().map(any).collect::<Vec<_>>() } }),
        Value::Object(object) => json!({ "kvlistValue": { "values": keys(object) } }),
    }
}

fn keys(object: &Map<String, Value>) -> Vec<Value> {
    object.iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect()
}

fn otlp(attributes: &Value) -> String {
    let attributes = keys(attributes.as_object().unwrap());
    json!({ "resourceSpans": [{ "resource": { "attributes": [] }, "scopeSpans": [{ "scope": { "name": "openai" },
        "spans": [{ "traceId": "5b", "spanId": "ee", "name": "chat gpt-4o", "startTimeUnixNano": "1", "attributes": attributes }] }] }] })
    .to_string()
}

fn by_openai(call: &Called) -> Value {
    json!({ "id": call.id, "type": "function",
        "function": { "name": call.name, "arguments": call.arguments.to_string() } })
}

fn logs(events: &[Event]) -> String {
    let record = |(at, event): (usize, &Event)| {
        let (name, body) = match event {
            Event::System(text) => ("gen_ai.system.message", json!({ "content": text })),
            Event::User { text, .. } => ("gen_ai.user.message", json!({ "content": text })),
            Event::Assistant { text, calls, .. } => {
                let mut body = json!({ "content": text });
                if !calls.is_empty() {
                    body["tool_calls"] = calls.iter().map(by_openai).collect();
                }
                if at + 1 == events.len() {
                    ("gen_ai.choice", json!({ "index": 0, "finish_reason": "stop", "message": body }))
                } else {
                    ("gen_ai.assistant.message", body)
                }
            }
            Event::Result { call, text, .. } => {
                ("gen_ai.tool.message", json!({ "id": call.id, "content": text }))
            }
        };
        json!({ "timeUnixNano": at.to_string(), "eventName": name, "spanId": "ee", "body": any(&body),
            "attributes": [{ "key": "gen_ai.system", "value": { "stringValue": "openai" } }] })
    };
    let records: Vec<Value> = events.iter().enumerate().map(record).collect();
    json!({ "resourceLogs": [{ "scopeLogs": [{ "scope": { "name": "openai" }, "logRecords": records }] }] })
        .to_string()
}

fn flat(events: &[Event]) -> Value {
    let mut all = json!({ "gen_ai.system": "OpenAI", "gen_ai.request.model": "gpt-4o" });
    for (at, event) in events.iter().enumerate() {
        let mut set = |key: &str, value: &str| all[format!("gen_ai.prompt.{at}.{key}")] = json!(value);
        match event {
            Event::System(text) => {
                set("role", "system");
                set("content", text);
            }
            Event::User { text, .. } => {
                set("role", "user");
                set("content", text);
            }
            Event::Assistant { text, calls, .. } => {
                set("role", "assistant");
                set("content", text.as_deref().unwrap_or_default());
                for (nth, call) in calls.iter().enumerate() {
                    set(&format!("tool_calls.{nth}.id"), &call.id);
                    set(&format!("tool_calls.{nth}.name"), &call.name);
                    set(&format!("tool_calls.{nth}.arguments"), &call.arguments.to_string());
                }
            }
            Event::Result { call, text, .. } => {
                set("role", "tool");
                set("content", text);
                set("tool_call_id", &call.id);
            }
        }
    }
    all
}
