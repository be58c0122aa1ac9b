//! Bodies of servers with much of the form of `OpenAI` Chat: Ollama (0.6.3), Mistral (3.7.0) and Cohere
//! (7.3.1).

use super::{ALL, Called, Event, Keeps, Shape};
use context_window_formats::FileFormat;
use serde_json::{Value, json};

pub fn shapes() -> Vec<Shape> {
    let keeps = Keeps { failures: false, late_system: true, ..ALL };
    let by_name = Keeps { ids: false, ..keeps };
    let of_cohere_1 = Keeps { thoughts: false, images: false, ids: false, late_system: true, ..keeps };
    let of_entries = Keeps { late_system: false, ..keeps };
    vec![
        Shape { name: "ollama", format: FileFormat::Ollama, write: ollama, keeps: by_name },
        Shape { name: "mistral", format: FileFormat::Mistral, write: |events| mistral(events, true), keeps },
        Shape {
            name: "mistral-names",
            format: FileFormat::Mistral,
            write: |events| mistral(events, false),
            keeps: by_name,
        },
        Shape { name: "mistral-entries", format: FileFormat::Mistral, write: entries, keeps: of_entries },
        Shape { name: "cohere-1", format: FileFormat::Cohere, write: cohere_1, keeps: of_cohere_1 },
        Shape { name: "cohere-2", format: FileFormat::Cohere, write: cohere_2, keeps },
    ]
}

fn ollama(events: &[Event]) -> String {
    let message = |event: &Event| match event {
        Event::System(text) => json!({ "role": "system", "content": text }),
        Event::User { text, image: None } => json!({ "role": "user", "content": text }),
        Event::User { text, image: Some(data) } => {
            json!({ "role": "user", "content": text, "images": [data] })
        }
        Event::Assistant { thought, text, calls } => {
            let mut message = json!({ "role": "assistant", "content": text.as_deref().unwrap_or_default() });
            if let Some(thought) = thought {
                message["thinking"] = json!(thought);
            }
            if !calls.is_empty() {
                let call =
                    |call: &Called| json!({ "function": { "name": call.name, "arguments": call.arguments } });
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            message
        }
        Event::Result { call, text, .. } => {
            json!({ "role": "tool", "content": text, "tool_name": call.name })
        }
    };
    let messages: Vec<Value> = events.iter().map(message).collect();
    json!({ "model": "qwen3:8b", "messages": messages, "options": { "num_ctx": 8192 }, "think": true })
        .to_string()
}

fn mistral(events: &[Event], has_ids: bool) -> String {
    let message = |event: &Event| match event {
        Event::System(text) => json!({ "role": "system", "content": text }),
        Event::User { text, image: None } => json!({ "role": "user", "content": text }),
        Event::User { text, image: Some(data) } => json!({ "role": "user", "content": [
            { "type": "text", "text": text },
            { "type": "image_url", "image_url": format!("data:image/png;base64,{data}") }] }),
        Event::Assistant { thought, text, calls } => {
            let mut message = json!({ "role": "assistant", "content": text, "prefix": false });
            if let Some(thought) = thought {
                let mut chunks =
                    vec![json!({ "type": "thinking", "thinking": [{ "type": "text", "text": thought }] })];
                chunks.extend(text.as_ref().map(|text| json!({ "type": "text", "text": text })));
                message["content"] = json!(chunks);
            }
            if !calls.is_empty() {
                let call = |(nth, call): (usize, &Called)| {
                    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
                    let id = if has_ids { &*call.id } else { "null" };
                    json!({ "function": function, "id": id, "type": "function", "index": nth })
                };
                message["tool_calls"] = calls.iter().enumerate().map(call).collect();
            }
            message
        }
        Event::Result { call, text, .. } => {
            let mut message = json!({ "role": "tool", "name": call.name, "content": text });
            if has_ids {
                message["tool_call_id"] = json!(call.id);
            }
            message
        }
    };
    let messages: Vec<Value> = events.iter().map(message).collect();
    json!({ "model": "mistral-large-latest", "messages": messages, "max_tokens": 300 }).to_string()
}

fn entries(events: &[Event]) -> String {
    let mut inputs = Vec::new();
    let mut body =
        json!({ "model": "mistral-medium-latest", "completion_args": { "max_tokens": 300 }, "store": false });
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::System(text) => body["instructions"] = json!(text),
            Event::User { text, image } => {
                let mut chunks = vec![json!({ "type": "text", "text": text })];
                chunks.extend(image.as_ref().map(|data| {
                    json!({ "type": "image_url", "image_url": format!("data:image/png;base64,{data}") })
                }));
                inputs.push(json!({ "object": "entry", "type": "message.input", "role": "user", "content": chunks }));
            }
            Event::Assistant { thought, text, calls } => {
                let mut chunks = Vec::new();
                chunks.extend(thought.as_ref().map(|text| {
                    json!({ "type": "thinking", "thinking": [{ "type": "text", "text": text }] })
                }));
                chunks.extend(text.as_ref().map(|text| json!({ "type": "text", "text": text })));
                if !chunks.is_empty() {
                    inputs.push(json!({ "object": "entry", "type": "message.output", "role": "assistant",
                        "id": format!("msg_{at}"), "content": chunks }));
                }
                inputs.extend(calls.iter().map(|call| {
                    json!({ "object": "entry", "type": "function.call", "tool_call_id": call.id, "name": call.name,
                        "arguments": call.arguments.to_string() })
                }));
            }
            Event::Result { call, text, .. } => inputs.push(
                json!({ "object": "entry", "type": "function.result", "tool_call_id": call.id, "result": text }),
            ),
        }
    }
    body["inputs"] = json!(inputs);
    body.to_string()
}

fn cohere_1(events: &[Event]) -> String {
    let mut history: Vec<Value> = Vec::new();
    let mut body = json!({ "model": "command-r-plus", "prompt_truncation": "AUTO" });
    let Some((Event::User { text: question, .. }, before)) = events.split_last() else {
        unreachable!("ends with a question")
    };
    for (at, event) in before.iter().enumerate() {
        match event {
            Event::System(text) if at == 0 => body["preamble"] = json!(text),
            Event::System(text) => history.push(json!({ "role": "SYSTEM", "message": text })),
            Event::User { text, .. } => history.push(json!({ "role": "USER", "message": text })),
            Event::Assistant { text, calls, .. } => {
                let calls: Vec<_> = calls
                    .iter()
                    .map(|call| json!({ "name": call.name, "parameters": call.arguments }))
                    .collect();
                let text = text.as_deref().unwrap_or_default();
                history.push(json!({ "role": "CHATBOT", "message": text, "tool_calls": calls }));
            }
            Event::Result { call, text, .. } => {
                let call = json!({ "name": call.name, "parameters": call.arguments });
                let result = json!({ "call": call, "outputs": [{ "result": text }] });
                match history.last_mut().filter(|last| last["role"] == "TOOL") {
                    Some(last) => last["tool_results"].as_array_mut().unwrap().push(result),
                    None => history.push(json!({ "role": "TOOL", "tool_results": [result] })),
                }
            }
        }
    }
    body["chat_history"] = json!(history);
    body["message"] = json!(question);
    body.to_string()
}

fn cohere_2(events: &[Event]) -> String {
    let message = |event: &Event| match event {
        Event::System(text) => json!({ "role": "system", "content": text }),
        Event::User { text, image: None } => json!({ "role": "user", "content": text }),
        Event::User { text, image: Some(data) } => json!({ "role": "user", "content": [
            { "type": "text", "text": text },
            { "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{data}") } }] }),
        Event::Assistant { thought, text, calls } if calls.is_empty() => {
            let mut parts = Vec::new();
            parts.extend(thought.as_ref().map(|text| json!({ "type": "thinking", "thinking": text })));
            parts.extend(text.as_ref().map(|text| json!({ "type": "text", "text": text })));
            json!({ "role": "assistant", "content": parts })
        }
        Event::Assistant { thought, text, calls } => {
            let call = |call: &Called| {
                json!({ "id": call.id, "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments.to_string() } })
            };
            let mut message =
                json!({ "role": "assistant", "tool_calls": calls.iter().map(call).collect::<Vec<_>>() });
            if let Some(thought) = thought {
                message["tool_plan"] = json!(thought);
            }
            if let Some(text) = text {
                message["content"] = json!([{ "type": "text", "text": text }]);
            }
            message
        }
        Event::Result { call, text, .. } => {
            json!({ "role": "tool", "tool_call_id": call.id, "content": text })
        }
    };
    let messages: Vec<Value> = events.iter().map(message).collect();
    let document = json!({ "id": "d1", "data": { "title": "Rules", "snippet": "Wear a vest." } });
    json!({ "model": "command-a-03-2025", "messages": messages, "documents": [document], "max_tokens": 300 })
        .to_string()
}
