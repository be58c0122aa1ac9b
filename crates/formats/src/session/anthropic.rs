//! Content blocks of Anthropic Messages, which may occur in the messages of any session.

use super::{content::Content, wire::Name};
use crate::error::Error;
use context_window::{
    Message, Part, Role, ToolCall, WireFormat,
    message::{PieceKind, Reasoning},
    render::keep_as_written,
    text::{object::Object, plain::compact_json},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// A tool call. Like the types below, it lists only the fields that are read; blocks of other types stay raw
/// JSON.
#[derive(Deserialize)]
#[serde(expecting = "a tool call: an object with id and name")]
struct Call {
    id: Name,
    name: String,
    #[serde(default)]
    input: Option<Box<RawValue>>,
}

/// A boolean, or any other value.
#[derive(Deserialize)]
#[serde(untagged)]
enum IgnoredOr {
    Bool(bool),
    Other(IgnoredAny),
}

impl IgnoredOr {
    fn is_true(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            Self::Other(_) => false,
        }
    }
}

#[derive(Deserialize)]
#[serde(expecting = "a tool result: an object with tool_use_id")]
struct Answer {
    /// True for a failed call. SDKs write null for false.
    is_error: Option<IgnoredOr>,
    tool_use_id: Name,
    #[serde(default)]
    content: Content,
}

#[derive(Deserialize)]
#[serde(expecting = "reasoning: an object with thinking")]
struct Thinking {
    thinking: String,
    signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "reasoning: an object with data")]
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
    /// A file stored by the provider, or a source of a new kind.
    #[serde(other)]
    Other,
}

/// The contribution of a block to a message.
pub(crate) enum Piece {
    Part(Part),
    Call(ToolCall),
    Reasoning(Reasoning),
    /// A tool result, which becomes a message of its own.
    Result {
        id: String,
        content: Content,
        failed: bool,
    },
}

impl Piece {
    /// Returns the kind of a piece. Returns `None` for a result, because it is a message of its own.
    pub(crate) fn kind(&self) -> Option<PieceKind> {
        Some(match self {
            Self::Part(_) => PieceKind::Part,
            Self::Call(_) => PieceKind::Call,
            Self::Reasoning(_) => PieceKind::Reasoning,
            Self::Result { .. } => return None,
        })
    }
}

/// Reads a block of one of Anthropic's types. Returns `None` for any other type or shape.
pub(crate) fn piece(json: &str, kind: Option<&str>) -> Option<Piece> {
    let kind = kind?;
    if is_own(kind, json) {
        return Some(Piece::Part(opaque(json)));
    }
    let piece = match kind {
        "tool_use" => serde_json::from_str(json).map(|Call { id, name, input }| {
            let arguments = input.map_or_else(|| "{}".into(), |input| compact_json(input.get()));
            Piece::Call(ToolCall::new(id.into_text(), name, arguments))
        }),
        "tool_result" => serde_json::from_str(json).map(|Answer { is_error, tool_use_id, content }| {
            let failed = is_error.is_some_and(|value| value.is_true());
            Piece::Result { id: tool_use_id.into_text(), content, failed }
        }),
        "thinking" => serde_json::from_str(json).map(|Thinking { thinking, signature }| {
            Piece::Reasoning(match signature {
                Some(signature) => Reasoning::signed(WireFormat::Anthropic, thinking, signature),
                None => Reasoning::text(thinking),
            })
        }),
        "redacted_thinking" => serde_json::from_str(json).map(|Redacted { data }| {
            Piece::Reasoning(Reasoning::signed(WireFormat::Anthropic, "", data).into_redacted())
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
    // A block of one of these types in another shape is not Anthropic's, so other formats may read it.
    piece.ok()
}

/// Returns a block as a part with its raw JSON.
fn opaque(json: &str) -> Part {
    Part::Opaque { wire_format: WireFormat::Anthropic, json: json.to_owned() }
}

/// Returns true for a type of block that only Anthropic has and that stays raw JSON.
fn is_own(kind: &str, json: &str) -> bool {
    const ANTHROPIC_KINDS: [&str; 5] =
        ["document", "server_tool_use", "mcp_tool_use", "search_result", "container_upload"];
    // Cohere has documents too, but without a source.
    let is_other = kind == "document" && !json.contains("\"source\"");
    ANTHROPIC_KINDS.contains(&kind) && !is_other
        || kind.ends_with("_tool_result") && json.contains("\"tool_use_id\"")
}

/// Returns true for a text with citations, which only Anthropic writes beside the text.
pub(crate) fn is_cited_text(json: &str) -> bool {
    let is_list = |list: &str| serde_json::from_str(list).is_ok_and(|list: Vec<Object>| !list.is_empty());
    json.contains("\"citations\"")
        && Object::parse(json).is_some_and(|text| text.get("citations").is_some_and(is_list))
}

/// Converts one wire message to messages of the log: each tool result as a message, then the rest if there is
/// any. `nested` reads the content of a result. `wire_format` is the format of a message without content
/// specific to Anthropic.
pub(crate) fn split_results(
    role: Role,
    pieces: Vec<Piece>,
    raws: &[Box<RawValue>],
    wire_format: WireFormat,
    nested: &dyn Fn(Content) -> Result<Nested, Error>,
) -> Result<Vec<Message>, Error> {
    let (mut results, mut rest) = (Vec::new(), MessageBuilder::default());
    for (piece, raw) in pieces.into_iter().zip(raws) {
        match piece {
            Piece::Result { id, content, failed } => {
                let around = around(raw.get(), &content);
                let inner = nested(content)?;
                let result = Message::tool(id, inner.message.text());
                let result = if failed { result.into_failed() } else { result };
                let parts = inner.message.parts();
                let result = if parts.is_empty() { result } else { result.with_parts(parts.to_vec()) };
                let mut written = vec![(PieceKind::Around, around.as_deref())];
                written.extend(inner.pieces.iter().map(|(kind, json)| (*kind, json.as_deref())));
                results.push(keep_as_written(result, WireFormat::Anthropic, &written));
            }
            piece => rest.add(piece, raw.get()),
        }
    }
    if !rest.pieces.is_empty() || results.is_empty() {
        // Results come first, as Anthropic requires them at the start of a user message.
        results.push(rest.into_message(role, wire_format));
    }
    Ok(results)
}

/// The content of a result, and its pieces as raw JSON.
pub(crate) struct Nested {
    pub(crate) message: Message,
    pub(crate) pieces: Vec<(PieceKind, Option<String>)>,
}

/// Returns the block of a result with its content emptied.
fn around(json: &str, content: &Content) -> Option<String> {
    let mut around = Object::parse(json)?;
    match content {
        Content::Null => {}
        Content::Text(_) => around.set_text("content", ""),
        Content::Parts(_) => around.set("content", "[]".into()),
    }
    Some(around.to_json())
}

/// The blocks of a message that are not results, in their order.
#[derive(Default)]
struct MessageBuilder {
    parts: Vec<Part>,
    calls: Vec<ToolCall>,
    reasonings: Vec<Reasoning>,
    pieces: Vec<(PieceKind, String)>,
    is_of_anthropic: bool,
}

impl MessageBuilder {
    fn add(&mut self, piece: Piece, json: &str) {
        let Some(kind) = piece.kind() else { return };
        self.pieces.push((kind, json.to_owned()));
        match piece {
            Piece::Part(part) => {
                // Texts and images occur in every format. Only raw JSON of Anthropic identifies its format.
                let own = matches!(&part, Part::Opaque { wire_format: WireFormat::Anthropic, .. });
                self.is_of_anthropic |= own || is_cited_text(json);
                self.parts.push(part);
            }
            Piece::Call(call) => self.calls.push(call),
            Piece::Reasoning(reasoning) => self.reasonings.push(reasoning),
            Piece::Result { .. } => {}
        }
    }

    fn into_message(self, role: Role, wire_format: WireFormat) -> Message {
        // Chat servers write reasoning blocks of the same type, so these alone do not make a message
        // Anthropic's.
        let is_own = |reasoning: &Reasoning| reasoning.wire_format != Some(WireFormat::OpenAiChat);
        let is_of_anthropic =
            self.is_of_anthropic || !self.calls.is_empty() || self.reasonings.iter().any(is_own);
        let wire_format = if is_of_anthropic { WireFormat::Anthropic } else { wire_format };
        let mut message = Message::new(role, "").with_parts(self.parts);
        for reasoning in self.reasonings {
            message = message.with_reasoning(reasoning);
        }
        if !self.calls.is_empty() {
            message = message.with_tool_calls(self.calls);
        }
        let pieces: Vec<_> = self.pieces.iter().map(|(kind, json)| (*kind, Some(json.as_str()))).collect();
        keep_as_written(message, wire_format, &pieces)
    }
}
