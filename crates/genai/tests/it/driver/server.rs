//! A provider on the loopback interface: hand-written HTTP/1.1, answers from a script, and a record of all
//! requests.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// The wire format of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

impl Wire {
    /// Returns a model's answer that ends normally.
    pub fn answer(self, text: &str) -> Reply {
        self.ended(text, if self == Self::Anthropic { "end_turn" } else { "stop" })
    }

    /// Returns an answer that ends for the reason `why`.
    pub fn ended(self, text: &str, why: &str) -> Reply {
        Reply::Json(200, self.body(text, why))
    }

    fn body(self, text: &str, why: &str) -> Value {
        match self {
            Self::OpenAi => json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "made",
                "choices": [{
                    "index": 0, "finish_reason": why,
                    "message": {"role": "assistant", "content": text, "refusal": null}
                }],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
            }),
            Self::Anthropic => {
                let content =
                    if text.is_empty() { json!([]) } else { json!([{"type": "text", "text": text}]) };
                json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "model": "made", "content": content,
                    "stop_reason": why, "usage": {"input_tokens": 10, "output_tokens": 5}
                })
            }
            Self::Gemini => json!({
                "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
            }),
            Self::Ollama => json!({
                "model": "made", "message": {"role": "assistant", "content": text}, "done": true, "done_reason": why
            }),
        }
    }

    /// Returns an answer that breaks off in the middle.
    pub fn cut(self) -> Reply {
        let body = self.body("Half of a summary.", "stop").to_string();
        Reply::Cut(body)
    }

    /// Returns the body of an error.
    pub fn error(self, message: &str) -> Value {
        match self {
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
            }
            _ => json!({"error": {"message": message, "type": "invalid_request_error", "code": null}}),
        }
    }

    /// Returns the provider's error for a prompt that is too long, in its own words.
    pub fn overflow(self) -> Reply {
        Reply::Json(400, self.error(match self {
            Self::Anthropic => "prompt is too long: 208310 tokens > 200000 maximum",
            _ => "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        }))
    }
}

#[derive(Debug, Clone)]
pub enum Reply {
    Json(u16, Value),
    Page(u16, &'static str),
    /// A redirect to another server.
    Moved(String),
    /// No answer at all.
    Silence,
    /// A header with the full length, and half of the body.
    Cut(String),
}

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    /// The header lines, in lower case, joined by line breaks.
    pub head: String,
    pub body: Value,
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server that answers in the order of the script and repeats the last entry from then on.
    pub fn start(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                let at = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(request);
                    seen.len() - 1
                };
                let reply = script[at.min(script.len() - 1)].clone();
                std::thread::spawn(move || answer(stream, &reply));
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let path = lines[0].split(' ').nth(1)?.to_owned();
    let head: Vec<String> = lines.iter().skip(1).map(|line| line.to_lowercase()).collect();
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, head: head.join("\n"), body: serde_json::from_slice(&body).unwrap() })
}

fn answer(mut stream: TcpStream, reply: &Reply) {
    let head = |code: u16, kind: &str, length: usize| {
        format!(
            "HTTP/1.1 {code} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    let sent = match reply {
        Reply::Json(code, body) => {
            let body = body.to_string();
            head(*code, "application/json", body.len()) + &body
        }
        Reply::Moved(url) => {
            let head = "HTTP/1.1 307 X\r\nContent-Length: 0\r\nConnection: close\r\n";
            format!("{head}Location: {url}/chat/completions\r\n\r\n")
        }
        Reply::Page(code, page) => head(*code, "text/html", page.len()) + page,
        Reply::Cut(body) => head(200, "application/json", body.len()) + &body[..body.len() / 2],
        Reply::Silence => {
            // Keeps the connection open until the client closes it.
            drop(stream.read(&mut [0; 16]));
            return;
        }
    };
    // The client may already have closed the connection, which is no failure of the test.
    drop(stream.write_all(sent.as_bytes()));
}
