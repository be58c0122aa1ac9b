//! A conversation of another tool, in terms common to all tools.

use super::node::{Fault, Node, Reading};
use crate::session::compacted::{self, Block};
use context_window::{
    Message, Part, RagItem, Role, Tool, WireFormat, message::Reasoning, provider::StatedLimits,
};

/// A conversation of another tool.
#[derive(Default)]
pub(crate) struct Talk {
    /// The conversation's id in the file.
    pub(crate) id: Option<String>,
    /// The name of the model.
    pub(crate) model: Option<String>,
    /// The system texts outside the messages.
    pub(crate) system: Vec<String>,
    /// The tool definitions.
    pub(crate) tools: Vec<Tool>,
    /// The documents for the next user message.
    pub(crate) rag: Vec<RagItem>,
    /// The limits that the file states, in tokens.
    pub(crate) stated: StatedLimits,
    /// The wire format of the conversation's requests, if the file names it.
    pub(crate) wire_format: Option<WireFormat>,
    /// The steps in their order.
    pub(crate) steps: Vec<Step>,
}

/// One step of the conversation.
pub(crate) enum Step {
    /// A message with texts, calls or results.
    Entry(Entry),
    /// A message of `OpenAI` Chat or Anthropic Messages as JSON with all its keys, so that it can be sent
    /// unchanged.
    Wire { path: String, json: String },
    /// A message in the form of the log.
    Message(Box<Message>),
    /// A compaction, which archives everything before it. A faulty one archives nothing and adds a note.
    Compaction(Box<Result<Block, String>>),
}

/// A message of another tool.
pub(crate) struct Entry {
    /// The role. Results inside the message become messages of their own, for any role.
    pub(crate) role: Role,
    /// The message's id. A second message with the same id gets another one.
    pub(crate) id: Option<String>,
    /// The name of the participant.
    pub(crate) name: Option<String>,
    /// The pieces in their order.
    pub(crate) pieces: Vec<Piece>,
}

impl Entry {
    /// Creates a message of a role.
    pub(crate) fn new(role: Role, pieces: Vec<Piece>) -> Self {
        Self { role, id: None, name: None, pieces }
    }

    /// Sets the id.
    pub(crate) fn with_id(mut self, id: Option<String>) -> Self {
        self.id = id;
        self
    }

    /// Sets the name of the participant.
    pub(crate) fn with_name(mut self, name: Option<String>) -> Self {
        self.name = name;
        self
    }
}

/// A piece of a message.
pub(crate) enum Piece {
    /// A text, an image, or any other part that is sent unchanged.
    Part(Part),
    /// Reasoning of the model.
    Thought(Reasoning),
    /// A tool call.
    Call(Call),
    /// The result of a tool call.
    Answer(Answer),
}

impl Piece {
    /// Creates a text piece.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Part(Part::Text(text.into()))
    }

    /// Creates a piece of unsigned reasoning. Returns `None` for blank text.
    pub(crate) fn thought(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then(|| Self::Thought(Reasoning::text(text)))
    }

    /// Creates an image piece from a URL or data URL.
    pub(crate) fn image(url: impl Into<String>) -> Self {
        Self::Part(Part::Image { url: url.into(), detail: None })
    }
}

/// A tool call.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    /// The arguments, as JSON text.
    pub(crate) arguments: String,
    /// The signature of the reasoning before the call (Gemini's `thoughtSignature`).
    pub(crate) signature: Option<String>,
}

/// The result of a tool call. It answers the call with its id, else the call with its name, else the next
/// open call (result matching, J8).
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) id: Option<String>,
    /// The name of the tool.
    pub(crate) name: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) is_failed: bool,
}

impl Answer {
    /// Creates a result with a single text.
    pub(crate) fn text(id: Option<String>, name: Option<String>, text: impl Into<String>) -> Self {
        Self { id, name, parts: vec![Part::Text(text.into())], is_failed: false }
    }

    /// Marks the result as failed if `is_failed` is true.
    pub(crate) fn failed(mut self, is_failed: bool) -> Self {
        self.is_failed = is_failed;
        self
    }
}

/// Reads the compactions of this library in a message of another tool: parts of their type, and the key
/// `compaction`.
pub(crate) fn own_compactions(node: &Node<'_>, list: &'static str) -> Vec<Step> {
    // The search in the raw text skips the parse of almost all messages.
    if !node.json().contains("compaction") {
        return Vec::new();
    }
    let Ok(fields) = node.object() else { return Vec::new() };
    let beside = fields.get(compacted::KEY).and_then(|value| compacted::beside(value.json()));
    let parts = fields.get(list).and_then(|parts| parts.list().ok()).unwrap_or_default();
    let parts = parts.iter().filter_map(|part| compacted::from_part(part.json()));
    parts.chain(beside).map(|block| Step::Compaction(Box::new(block))).collect()
}

/// Returns the arguments of a call: the value of a JSON string, or the JSON of any other value.
pub(crate) fn arguments(node: Option<Node<'_>>) -> String {
    node.map_or_else(|| "{}".to_owned(), |node| node.text_or_json())
}

/// Returns the data URL of base64 data.
pub(crate) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Reads a part in the form of `OpenAI` Chat or Anthropic, which many tools use. Returns `None` for any other
/// part.
pub(crate) fn usual_piece(node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    use crate::session::{anthropic::Piece as Block, content::Content, reader};
    if node.is_text() {
        return Ok(Some(Piece::text(node.text()?)));
    }
    let Ok(raw) = serde_json::value::RawValue::from_string(node.json().to_owned()) else { return Ok(None) };
    let block = reader::piece(&raw, WireFormat::OpenAiChat).map_err(|detail| node.fault(detail))?;
    Ok(Some(match block {
        // No known type matched, so the tool's own reader has to decide.
        Block::Part(Part::Opaque { wire_format: WireFormat::OpenAiChat, .. }) => return Ok(None),
        Block::Part(part) => Piece::Part(part),
        Block::Reasoning(reasoning) => Piece::Thought(reasoning),
        Block::Call(call) => Piece::Call(Call {
            id: Some(call.id),
            name: call.name,
            arguments: call.arguments,
            signature: call.signature,
        }),
        Block::Result { id, content, failed } => {
            let parts = match content {
                Content::Null => Vec::new(),
                Content::Text(text) => vec![Part::Text(text)],
                Content::Parts(_) => {
                    // The parts are read again as nodes, so that errors name their place.
                    let content = node.object()?.need("content")?.list()?;
                    reading.each(content, |inner, reading| match usual_piece(inner, reading)? {
                        Some(Piece::Part(part)) => Ok(part),
                        _ => Err(inner.fault("is unknown; expected a text or an image")),
                    })?
                }
            };
            Piece::Answer(Answer { id: Some(id), name: None, parts, is_failed: failed })
        }
    }))
}
