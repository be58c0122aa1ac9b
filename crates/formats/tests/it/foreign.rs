//! Files of other tools, read one by one.

use context_window::{Message, Part, Role};
use context_window_formats::{Error, Session, SessionFile};
use std::path::Path;

mod ai_sdk;
mod bedrock;
mod chatgpt;
mod claude_ai;
mod cline;
mod dotnet_ai;
mod gemini_cli;
mod goose;
mod haystack;
mod langchain;
mod llamaindex;
mod openai_agents;
mod opencode;
mod opentelemetry;
mod pydantic_ai;
mod refused;
mod roo;
mod semantic_kernel;
mod servers;

/// Reads a sample.
pub fn sample(name: &str) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(name);
    read(name, &std::fs::read_to_string(path).unwrap())
}

/// Reads the only session of a text.
pub fn read(name: &str, text: &str) -> Session {
    try_read(name, text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn try_read(name: &str, text: &str) -> Result<Session, Error> {
    SessionFile::new(name, text.as_bytes().to_vec())?.session(None)
}

/// Returns the content of a session, one line per piece.
pub fn said(session: &Session) -> Vec<String> {
    let mut lines: Vec<String> =
        session.log.system().iter().map(|message| format!("system: {}", message.text())).collect();
    lines.extend(session.log.messages().iter().flat_map(of_message));
    lines
}

fn of_message(message: &Message) -> Vec<String> {
    let mut lines: Vec<String> =
        message.reasoning().iter().map(|reasoning| format!("thought: {}", reasoning.text)).collect();
    let who = match message.role() {
        Role::Tool => {
            let failed = if message.is_failed() { " (failed)" } else { "" };
            format!("result {}{failed}", message.answers().unwrap_or_default())
        }
        role => role.name().to_owned(),
    };
    for part in message.as_parts() {
        lines.push(match part {
            Part::Text(text) => format!("{who}: {text}"),
            Part::Image { url, .. } => format!("{who} image: {}", &url[..url.len().min(22)]),
            Part::Opaque { json, .. } => format!("{who} opaque: {json}"),
        });
    }
    let calls = message.tool_calls().iter();
    lines.extend(calls.map(|call| format!("call {} {} {}", call.id, call.name, call.arguments)));
    lines
}

/// Checks the content of a session, and the reader's notes about ignored data.
#[track_caller]
pub fn assert_says(session: &Session, lines: &[&str], notes: &[&str]) {
    assert_eq!(said(session), lines);
    assert_eq!(session.ignored(), notes);
}
