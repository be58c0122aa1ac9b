//! The AI SDK of Vercel (npm `ai` 4.3.19, 5.0.277, 6.0.326 and 7.0.173).

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let format = FileFormat::AiSdk;
    let keeps = Keeps { late_system: true, ..ALL };
    let of_4 = Keeps { failures: false, ..keeps };
    let body = |events: &[Event]| {
        json!({ "id": "chat-1", "messages": of_ui(events), "trigger": "submit-message" }).to_string()
    };
    let prompt = |events: &[Event]| {
        let tool = json!({ "type": "function", "name": "tide", "description": "The tide of a day.",
            "inputSchema": { "type": "object", "properties": { "day": { "type": "string" } } } });
        json!({ "prompt": of_model(events), "tools": [tool], "toolChoice": { "type": "auto" } }).to_string()
    };
    let lines = |events: &[Event]| of_ui(events).iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    vec![
        Shape { name: "ai-sdk-ui", format, write: |events| Value::from(of_ui(events)).to_string(), keeps },
        Shape { name: "ai-sdk-ui-body", format, write: body, keeps },
        Shape { name: "ai-sdk-ui-lines", format, write: lines, keeps },
        Shape {
            name: "ai-sdk-model",
            format,
            write: |events| Value::from(of_model(events)).to_string(),
            keeps,
        },
        Shape { name: "ai-sdk-prompt", format, write: prompt, keeps },
        Shape {
            name: "ai-sdk-4-ui",
            format,
            write: |events| Value::from(of_ui_4(events)).to_string(),
            keeps: of_4,
        },
        Shape {
            name: "ai-sdk-4-core",
            format,
            write: |events| Value::from(of_core(events)).to_string(),
            keeps,
        },
    ]
}

/// Returns the events of each message in the user interface: the assistant's steps and their results are one
/// message.
fn turns(events: &[Event]) -> Vec<&[Event]> {
    let is_assistant = |event: &Event| matches!(event, Event::Assistant { .. } | Event::Result { .. });
    let are_one = |one: &Event, next: &Event| is_assistant(one) && is_assistant(next);
    events.chunk_by(are_one).collect()
}

/// Returns the result of a call in the events of its turn.
fn result<'e>(events: &'e [Event], wanted: &Called) -> (&'e str, bool) {
    let found = events.iter().find_map(|event| match event {
        Event::Result { call, text, is_failed } if call == wanted => Some((text.as_str(), *is_failed)),
        _ => None,
    });
    found.unwrap()
}

fn of_ui(events: &[Event]) -> Vec<Value> {
    let message = |(at, turn): (usize, &[Event])| {
        let mut parts = Vec::new();
        let mut role = "assistant";
        for event in turn {
            match event {
                Event::System(text) => {
                    role = "system";
                    parts.push(json!({ "type": "text", "text": text }));
                }
                Event::User { text, image } => {
                    role = "user";
                    parts.push(json!({ "type": "text", "text": text }));
                    parts.extend(image.as_ref().map(|data| {
                        json!({ "type": "file", "mediaType": "image/png", "filename": "boat.png",
                            "url": format!("data:image/png;base64,{data}") })
                    }));
                }
                Event::Assistant { thought, text, calls } => {
                    parts.push(json!({ "type": "step-start" }));
                    parts.extend(thought.as_ref().map(|text| {
                        json!({ "type": "reasoning", "text": text, "state": "done",
                            "providerMetadata": { "anthropic": { "signature": "c2ln" } } })
                    }));
                    parts.extend(
                        text.as_ref().map(|text| json!({ "type": "text", "text": text, "state": "done" })),
                    );
                    parts.extend(calls.iter().enumerate().map(|(nth, call)| ui_call(turn, call, nth)));
                }
                Event::Result { .. } => {}
            }
        }
        json!({ "id": format!("m-{at}"), "role": role, "metadata": { "createdAt": 1_700_000_000 }, "parts": parts })
    };
    turns(events).into_iter().enumerate().map(message).collect()
}

fn ui_call(turn: &[Event], call: &Called, nth: usize) -> Value {
    let (text, is_failed) = result(turn, call);
    let mut part =
        json!({ "type": format!("tool-{}", call.name), "toolCallId": call.id, "input": call.arguments });
    if nth == 1 {
        part["type"] = json!("dynamic-tool");
        part["toolName"] = json!(call.name);
    }
    let (state, key) = if is_failed { ("output-error", "errorText") } else { ("output-available", "output") };
    part["state"] = json!(state);
    part[key] = json!(text);
    part
}

fn of_model(events: &[Event]) -> Vec<Value> {
    let are_results = |one: &Event, next: &Event| {
        matches!(one, Event::Result { .. }) && matches!(next, Event::Result { .. })
    };
    let message = |group: &[Event]| match &group[0] {
        Event::System(text) => json!({ "role": "system", "content": text }),
        Event::User { text, image: None } => json!({ "role": "user", "content": text }),
        Event::User { text, image: Some(data) } => json!({ "role": "user", "content": [
            { "type": "text", "text": text },
            { "type": "image", "image": format!("data:image/png;base64,{data}"), "mediaType": "image/png" }] }),
        Event::Assistant { thought, text, calls } => {
            let mut parts = Vec::new();
            parts.extend(thought.as_ref().map(|text| {
                json!({ "type": "reasoning", "text": text, "providerOptions": { "anthropic": { "signature": "c2ln" } } })
            }));
            parts.extend(text.as_ref().map(|text| json!({ "type": "text", "text": text })));
            parts.extend(calls.iter().map(|call| {
                json!({ "type": "tool-call", "toolCallId": call.id, "toolName": call.name, "input": call.arguments })
            }));
            json!({ "role": "assistant", "content": parts })
        }
        Event::Result { .. } => {
            json!({ "role": "tool", "content": group.iter().map(model_result).collect::<Vec<_>>() })
        }
    };
    events.chunk_by(are_results).map(message).collect()
}

fn model_result(event: &Event) -> Value {
    let Event::Result { call, text, is_failed } = event else { unreachable!("a group of results") };
    let output = match (is_failed, call.name.as_str()) {
        (true, _) => json!({ "type": "error-text", "value": text }),
        (false, "book") => json!({ "type": "content", "value": [{ "type": "text", "text": text }] }),
        (false, _) => json!({ "type": "text", "value": text }),
    };
    json!({ "type": "tool-result", "toolCallId": call.id, "toolName": call.name, "output": output })
}

/// Version 4 repeats the texts in `content`, and the calls in `toolInvocations`.
fn of_ui_4(events: &[Event]) -> Vec<Value> {
    let message = |(at, turn): (usize, &[Event])| {
        let (mut parts, mut said, mut invocations) = (Vec::new(), String::new(), Vec::new());
        let mut message = json!({ "id": format!("m-{at}"), "role": "assistant" });
        let mut step = 0;
        for event in turn {
            match event {
                Event::System(text) => {
                    message["role"] = json!("system");
                    said.clone_from(text);
                    parts.push(json!({ "type": "text", "text": text }));
                }
                Event::User { text, image } => {
                    message["role"] = json!("user");
                    said.clone_from(text);
                    parts.push(json!({ "type": "text", "text": text }));
                    if let Some(data) = image {
                        let url = format!("data:image/png;base64,{data}");
                        message["experimental_attachments"] =
                            json!([{ "name": "boat.png", "contentType": "image/png", "url": url }]);
                    }
                }
                Event::Assistant { thought, text, calls } => {
                    parts.push(json!({ "type": "step-start" }));
                    parts.extend(thought.as_ref().map(|text| {
                        json!({ "type": "reasoning", "reasoning": text,
                            "details": [{ "type": "text", "text": text, "signature": "c2ln" }] })
                    }));
                    if let Some(text) = text {
                        said.push_str(text);
                        parts.push(json!({ "type": "text", "text": text }));
                    }
                    for call in calls {
                        let invocation = json!({ "state": "result", "step": step, "toolCallId": call.id,
                            "toolName": call.name, "args": call.arguments, "result": result(turn, call).0 });
                        parts.push(json!({ "type": "tool-invocation", "toolInvocation": invocation }));
                        invocations.push(invocation);
                    }
                    step += 1;
                }
                Event::Result { .. } => {}
            }
        }
        message["content"] = json!(said);
        message["parts"] = json!(parts);
        if !invocations.is_empty() {
            message["toolInvocations"] = json!(invocations);
        }
        message
    };
    turns(events).into_iter().enumerate().map(message).collect()
}

/// Version 4 has `args`, `result` and `isError`, and the signature next to the reasoning text.
fn of_core(events: &[Event]) -> Vec<Value> {
    let mut messages = of_model(events);
    let parts = messages.iter_mut().filter_map(|message| message["content"].as_array_mut()).flatten();
    for part in parts {
        let object = part.as_object_mut().unwrap();
        object.remove("providerOptions").map(|_| object.insert("signature".into(), json!("c2ln")));
        if let Some(input) = object.remove("input") {
            object.insert("args".into(), input);
        }
        if let Some(output) = object.remove("output") {
            if output["type"] == "error-text" {
                object.insert("isError".into(), json!(true));
            }
            let text = output["value"].get(0).map_or(&output["value"], |part| &part["text"]);
            object.insert("result".into(), text.clone());
        }
    }
    messages
}
