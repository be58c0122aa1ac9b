//! A streaming provider on loopback: hand-written HTTP/1.1, scripted replies, and a record of the requests.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// The wire format that the server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAi,
    Anthropic,
}

#[derive(Debug, Clone)]
pub enum Reply {
    /// Words, one per event, with a pause in milliseconds before each.
    Words(&'static str, u64),
    /// The same after reasoning with this signature (Anthropic).
    Thought(&'static str, &'static str),
    /// The stream breaks off after these words.
    Cut(&'static str),
    /// An error with this status and message.
    Error(u16, &'static str),
    /// No reply at all.
    Silence,
    /// Words without an end, or reasoning (Anthropic).
    Flood,
    /// A redirect.
    Moved(String),
    /// A complete answer without streaming, as for a summary.
    Whole(&'static str),
}

pub struct Server {
    pub url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Starts a server that replies in the order of the script and then repeats its last reply. A request
    /// without streaming gets a summary.
    pub fn start(wire: Wire, script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (seen, mut at) = (bodies.clone(), 0);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let Some(body) = read(&stream) else { continue };
                let is_stream = body["stream"] == true;
                let reply = if is_stream {
                    at += 1;
                    script[(at - 1).min(script.len() - 1)].clone()
                } else {
                    Reply::Whole("The user asked about kettles, refunds and opening hours.")
                };
                // Approximately the count of a tokenizer.
                let tokens = (body["messages"].to_string().len() / 4).max(20);
                seen.lock().unwrap().push(body);
                thread::spawn(move || answer(stream, wire, &reply, tokens));
            }
        });
        Self { url, bodies }
    }

    /// Returns the bodies of the streaming requests.
    pub fn asked(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().iter().filter(|body| body["stream"] == true).cloned().collect()
    }

    /// Waits until this number of streaming requests has arrived.
    pub fn has_asked(&self, requests: usize) {
        while self.asked().len() < requests {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the number of summary requests.
    pub fn summaries(&self) -> usize {
        self.bodies.lock().unwrap().iter().filter(|body| body["stream"] != true).count()
    }
}

fn read(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(given) = line.to_lowercase().strip_prefix("content-length: ") {
            length = given.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn answer(mut stream: TcpStream, wire: Wire, reply: &Reply, tokens: usize) {
    let whole = |code: u16, body: String| {
        format!(
            "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    // The client may be gone, so write errors are ignored.
    match reply {
        Reply::Silence => drop(stream.read(&mut [0; 16])),
        Reply::Flood => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            drop(stream.write_all(head.as_bytes()));
            if wire == Wire::Anthropic {
                // The beginning of a reasoning block.
                let events = anthropic("", Some("c2Vhb"), 100);
                let begin = events[..2].concat();
                drop(stream.write_all(format!("{:x}\r\n{begin}\r\n", begin.len()).as_bytes()));
            }
            let event = flood(wire, &"again ".repeat(10_000));
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            while stream.write_all(chunk.as_bytes()).is_ok() {}
        }
        Reply::Moved(url) => {
            let head = "HTTP/1.1 307 X\r\nContent-Length: 0\r\nConnection: close\r\n";
            drop(stream.write_all(format!("{head}Location: {url}/v1/messages\r\n\r\n").as_bytes()));
        }
        Reply::Error(code, message) => {
            let error =
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
            drop(stream.write_all(whole(*code, error.to_string()).as_bytes()));
        }
        Reply::Whole(text) => {
            let body = match wire {
                Wire::OpenAi => json!({
                    "id": "1", "object": "chat.completion", "created": 1, "model": "made",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
                }),
                Wire::Anthropic => json!({
                    "id": "1", "type": "message", "role": "assistant", "model": "made", "stop_reason": "end_turn",
                    "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 10, "output_tokens": 5}
                }),
            };
            drop(stream.write_all(whole(200, body.to_string()).as_bytes()));
        }
        Reply::Words(text, pause) => {
            streamed(&mut stream, &events_of(wire, text, None, tokens), *pause, true)
        }
        Reply::Thought(text, seal) => {
            streamed(&mut stream, &events_of(wire, text, Some(seal), tokens), 0, true)
        }
        Reply::Cut(text) => streamed(&mut stream, &events_of(wire, text, None, tokens), 0, false),
    }
}

fn events_of(wire: Wire, text: &str, seal: Option<&str>, tokens: usize) -> Vec<String> {
    match wire {
        Wire::OpenAi => openai(text, tokens),
        Wire::Anthropic => anthropic(text, seal, tokens),
    }
}

/// Sends a stream of events, completely or cut before its end.
fn streamed(stream: &mut TcpStream, events: &[String], pause: u64, is_whole: bool) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut send = |data: &str| stream.write_all(data.as_bytes()).is_ok();
    if !send(head) {
        return;
    }
    // The last three events contain the end, the stop reason and the usage.
    let end = if is_whole { events.len() } else { events.len() - 3 };
    for event in &events[..end] {
        thread::sleep(Duration::from_millis(pause));
        if !send(&format!("{:x}\r\n{event}\r\n", event.len())) {
            return;
        }
    }
    if is_whole {
        send("0\r\n\r\n");
    }
}

/// Returns one event of an endless reply.
fn flood(wire: Wire, text: &str) -> String {
    match wire {
        Wire::OpenAi => {
            let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": null});
            format!(
                "data: {}\n\n",
                json!({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})
            )
        }
        Wire::Anthropic => {
            let delta = json!({"type": "thinking_delta", "thinking": text});
            let data = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            format!("event: content_block_delta\ndata: {data}\n\n")
        }
    }
}

fn openai(text: &str, tokens: usize) -> Vec<String> {
    let event = |data: Value| format!("data: {data}\n\n");
    let chunk = |delta: Value, why: Value| {
        event(json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "made",
            "choices": [{"index": 0, "delta": delta, "finish_reason": why}]}))
    };
    let mut events: Vec<String> =
        text.split_inclusive(' ').map(|word| chunk(json!({"content": word}), Value::Null)).collect();
    events.push(chunk(json!({}), "stop".into()));
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7, "prompt_tokens_details": {"cached_tokens": 20}});
    events.push(event(json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "made", "choices": [], "usage": usage})));
    events.push("data: [DONE]\n\n".into());
    events
}

fn anthropic(text: &str, seal: Option<&str>, tokens: usize) -> Vec<String> {
    let event = |kind: &str, mut data: Value| {
        data["type"] = kind.into();
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let start = json!({"message": {"id": "1", "type": "message", "role": "assistant", "content": [], "model": "made",
        "usage": {"input_tokens": tokens - 20, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 0, "output_tokens": 1}}});
    let mut events = vec![event("message_start", start)];
    if let Some(seal) = seal {
        let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
        events.push(event("content_block_start", json!({"index": 0, "content_block": thinking})));
        events.push(event(
            "content_block_delta",
            json!({"index": 0, "delta": {"type": "thinking_delta", "thinking": "The user wants to know."}}),
        ));
        events.push(event(
            "content_block_delta",
            json!({"index": 0, "delta": {"type": "signature_delta", "signature": seal}}),
        ));
        events.push(event("content_block_stop", json!({"index": 0})));
    }
    events.push(event(
        "content_block_start",
        json!({"index": 1, "content_block": {"type": "text", "text": ""}}),
    ));
    for word in text.split_inclusive(' ') {
        events.push(event(
            "content_block_delta",
            json!({"index": 1, "delta": {"type": "text_delta", "text": word}}),
        ));
    }
    events.push(event("content_block_stop", json!({"index": 1})));
    events.push(event(
        "message_delta",
        json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}),
    ));
    events.push(event("message_stop", json!({})));
    events
}
