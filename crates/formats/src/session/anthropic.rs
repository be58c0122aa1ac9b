//! Content blocks of Anthropic Messages, which may be in any session's messages.

use super::{content::Content, wire::Name};
use crate::error::Error;
use context_window::{
    Message, Part, Role, ToolCall, WireFormat, message::Reasoning, text::plain::compact_json,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a call, a result, a thought and an image bear; what other types hold is carried as it is.
#[derive(Deserialize)]
#[serde(expecting = "a call: an object with id and name")]
struct Call {
    id: Name,
    name: String,
    #[serde(default)]
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a result: an object with tool_use_id")]
struct Answer {
    #[serde(default)]
    is_error: bool,
    tool_use_id: Name,
    #[serde(default)]
    content: Content,
}

#[derive(Deserialize)]
#[serde(expecting = "a thought: an object with thinking")]
struct Thinking {
    thinking: String,
    signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "a thought: an object with data")]
struct Redacted {
    data: String,
}

#[derive(Deserialize)]
#[serde(expecting = "an image: an object with a source")]
struct Image {
    source: Source,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 {
        media_type: String,
        data: String,
    },
    Url {
        url: String,
    },
    /// A file of the provider's, or whatever comes next.
    #[serde(other)]
    Other,
}

/// Types of blocks that only Anthropic has and that are carried as they are.
const OWN: [&str; 5] = ["document", "server_tool_use", "mcp_tool_use", "search_result", "container_upload"];

/// What a block adds to a message.
pub(super) enum Piece {
    Part(Part),
    Call(ToolCall),
    Reasoning(Reasoning),
    /// A result, which is a message of its own.
    Result {
        id: String,
        content: Content,
        failed: bool,
    },
}

/// A block of this type, if it is one of Anthropic's.
pub(super) fn piece(json: &str, kind: Option<&str>) -> Option<Piece> {
    let kind = kind?;
    if OWN.contains(&kind) || kind.ends_with("_tool_result") && kind != "tool_result" {
        return Some(Piece::Part(opaque(json)));
    }
    let piece = match kind {
        "tool_use" => serde_json::from_str(json).map(|Call { id, name, input }| {
            let arguments = input.map_or_else(|| "{}".into(), |input| compact_json(input.get()));
            Piece::Call(ToolCall::new(id.into_text(), name, arguments))
        }),
        "tool_result" => {
            serde_json::from_str(json).map(|Answer { is_error: failed, tool_use_id, content }| {
                Piece::Result { id: tool_use_id.into_text(), content, failed }
            })
        }
        "thinking" => serde_json::from_str(json).map(|Thinking { thinking, signature }| {
            Piece::Reasoning(match signature {
                Some(signature) => Reasoning::sealed(WireFormat::Anthropic, thinking, signature),
                None => Reasoning::text(thinking),
            })
        }),
        "redacted_thinking" => serde_json::from_str(json).map(|Redacted { data }| {
            Piece::Reasoning(Reasoning::sealed(WireFormat::Anthropic, "", data).into_redacted())
        }),
        "image" => serde_json::from_str(json).map(|Image { source }| {
            let url = match source {
                Source::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
                Source::Url { url } => url,
                Source::Other => {
                    return Piece::Part(opaque(json));
                }
            };
            Piece::Part(Part::Image { url, detail: None })
        }),
        _ => return None,
    };
    // A block of one of these types in another shape is not Anthropic's: it is carried as it is.
    piece.ok()
}

/// A block that is carried as it is.
fn opaque(json: &str) -> Part {
    Part::Opaque { wire_format: WireFormat::Anthropic, json: json.to_owned() }
}

/// One message of the wire as messages of the log: its results, each one by itself, and then the rest, if there is any.
/// `nested` reads what a result holds.
pub(super) fn apart(
    role: Role,
    pieces: Vec<Piece>,
    nested: &dyn Fn(Content) -> Result<Message, Error>,
) -> Result<Vec<Message>, Error> {
    let (mut results, mut parts, mut calls, mut reasonings) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Part(part) => parts.push(part),
            Piece::Call(call) => calls.push(call),
            Piece::Reasoning(reasoning) => reasonings.push(reasoning),
            Piece::Result { id, content, failed } => {
                let said = nested(content)?;
                let result = Message::tool(id, said.text());
                let result = if failed { result.into_failed() } else { result };
                let parts = said.parts();
                results.push(if parts.is_empty() { result } else { result.with_parts(parts.to_vec()) });
            }
        }
    }
    let rest = !(parts.is_empty() && calls.is_empty() && reasonings.is_empty());
    if rest || results.is_empty() {
        let mut message = Message::new(role, "").with_parts(parts);
        for reasoning in reasonings {
            message = message.with_reasoning(reasoning);
        }
        results.push(if calls.is_empty() { message } else { message.with_tool_calls(calls) });
    }
    Ok(results)
}
