//! Messages of a task in Roo Code and Cline: messages of Anthropic, with additional blocks and keys.

use super::{
    node::{Fault, Fields, Node, Reading},
    talk::{Answer, Call, Entry, Piece, Step, arguments, data_url},
};
use context_window::{Part, Role, WireFormat, message::Reasoning};
use std::collections::BTreeSet;

/// Message keys that belong to the tools and are not sent. The id is that of a reply, which may occur twice.
const OWN: [&str; 13] = [
    "id",
    "ts",
    "isSummary",
    "condenseId",
    "condenseParent",
    "truncationId",
    "truncationParent",
    "isTruncationMarker",
    "modelInfo",
    "metrics",
    "metadata",
    "agent",
    "sessionId",
];

/// The state of reading the messages that are still sent.
pub(super) struct Task {
    /// The ids of the remaining calls if messages were removed. A result without its call is then omitted.
    /// `None` if no message was removed.
    pub(super) calls: Option<BTreeSet<String>>,
    /// The number of results that were omitted with their calls.
    pub(super) orphans: usize,
}

impl Task {
    /// Creates the state for the messages that remain. `is_whole` is true if none were removed.
    pub(super) fn new(messages: &[Node<'_>], is_whole: bool) -> Self {
        let calls = || messages.iter().flat_map(called).collect();
        Self { calls: (!is_whole).then(calls), orphans: 0 }
    }

    /// Reads a message. Returns `None` if all its blocks were omitted.
    pub(super) fn message(&mut self, node: &Node<'_>, reading: &mut Reading) -> Result<Option<Step>, Fault> {
        let fields = node.object()?;
        if !fields.has("content") && fields.text("type")?.as_deref() == Some("reasoning") {
            let thought = reasoning(&fields)?;
            fields.ignore(&["role", "ts"]);
            fields.finish(reading)?;
            return Ok(Some(Step::Entry(Entry::new(Role::Assistant, vec![Piece::Thought(thought)]))));
        }
        fields.ignore(&OWN);
        let role = fields.text("role")?;
        if !matches!(role.as_deref(), Some("user" | "assistant")) || fields.has("tool_calls") {
            // This is a message of OpenAI's form, from the log of another application that also records
            // times.
            return Ok(Some(Step::Wire { path: node.path().to_owned(), json: node.json().to_owned() }));
        }
        fields.ignore(&["reasoning_content", "reasoning_details"]);
        let content = fields.get("content").filter(Node::is_list);
        fields.finish(reading)?;
        let blocks = content.map(|content| content.list()).transpose()?.unwrap_or_default();
        let (mut pieces, mut kept, mut is_usual) = (Vec::new(), Vec::new(), true);
        let all = blocks.len();
        for node in blocks {
            let block = match block(&node, reading) {
                Ok(block) => block,
                Err(fault) => {
                    reading.leave(fault)?;
                    continue;
                }
            };
            if self.is_orphan(&block) {
                self.orphans += 1;
                continue;
            }
            kept.push(block.json.clone());
            is_usual &= block.is_usual;
            pieces.extend(block.piece);
        }
        if all > 0 && kept.is_empty() {
            return Ok(None);
        }
        // With blocks of Anthropic alone, the message can be sent as it was written.
        if is_usual {
            let mut object = node.as_object().unwrap_or_default();
            if all > 0 {
                object.set("content", format!("[{}]", kept.join(",")));
            }
            for key in OWN {
                object.remove(key);
            }
            return Ok(Some(Step::Wire { path: node.path().to_owned(), json: object.to_json() }));
        }
        Ok(Some(Step::Entry(entry(&fields, pieces)?)))
    }

    fn is_orphan(&self, block: &Block) -> bool {
        match (&block.piece, &self.calls) {
            (Some(Piece::Answer(Answer { id: Some(id), .. })), Some(calls)) => !calls.contains(id),
            _ => false,
        }
    }

    /// Adds a note on the results that were omitted with their calls.
    pub(super) fn notes(&self, reading: &mut Reading) {
        reading.note_count(
            self.orphans,
            "result is left out with its call",
            "results are left out with their calls",
        );
    }
}

/// Returns the ids of the calls in a message.
fn called(node: &Node<'_>) -> Vec<String> {
    let blocks = || node.object().ok()?.get("content")?.list().ok();
    let id = |block: &Node<'_>| {
        let block = block.as_object().filter(|block| block.text("type").as_deref() == Some("tool_use"))?;
        block.text("id")
    };
    blocks().unwrap_or_default().iter().filter_map(id).collect()
}

/// Creates a message from blocks that Anthropic does not have.
fn entry(fields: &Fields<'_>, mut pieces: Vec<Piece>) -> Result<Entry, Fault> {
    let thought = fields.text("reasoning_content")?.and_then(Piece::thought);
    // Reasoning precedes the reply that it led to.
    pieces.splice(0..0, thought);
    let role = fields.need("role")?;
    let role = match &*role.text()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return Err(role.unknown("is not a role of a task; expected user or assistant")),
    };
    Ok(Entry::new(role, pieces))
}

/// A block of a message.
struct Block {
    piece: Option<Piece>,
    /// True for a block of Anthropic, which is sent unchanged.
    is_usual: bool,
    /// The block's JSON without the keys of its tool.
    json: String,
}

/// Block keys that belong to the tool. Anthropic accepts none of them.
const OF_BLOCKS: [&str; 4] = ["call_id", "reasoning_details", "summary", "details"];

/// Returns the block's JSON in the form that Anthropic accepts.
fn without_own(node: &Node<'_>, kind: &str) -> String {
    let Some(mut object) = node.as_object() else { return node.json().to_owned() };
    let mut has_own = false;
    for key in OF_BLOCKS {
        has_own |= object.remove(key);
    }
    has_own |= kind == "tool_result" && object.remove("name");
    has_own |= kind == "text" && object.remove("signature");
    if has_own { object.to_json() } else { node.json().to_owned() }
}

/// Reads a block.
fn block(node: &Node<'_>, reading: &mut Reading) -> Result<Block, Fault> {
    let fields = node.object()?;
    fields.ignore(&["call_id", "cache_control", "reasoning_details", "citations"]);
    let kind = fields.need("type")?;
    let json = without_own(node, &kind.text()?);
    let usual = |piece: Piece| (Some(piece), true);
    let own = |piece: Option<Piece>| (piece, false);
    let (piece, is_usual) = match &*kind.text()? {
        "text" => {
            fields.ignore(&["signature"]);
            usual(Piece::text(fields.need("text")?.text()?))
        }
        "tool_use" => {
            let signature = fields.text("signature")?;
            let has_signature = signature.is_some();
            let call = Call {
                id: fields.name("id")?,
                name: fields.need("name")?.text()?,
                arguments: arguments(fields.get("input")),
                signature,
            };
            (Some(Piece::Call(call)), !has_signature)
        }
        "tool_result" => {
            let (parts, is_usual) = result(&fields, reading)?;
            let name = fields.text("name")?;
            let is_failed = fields.is_true("is_error");
            let answer = Answer { id: Some(fields.need("tool_use_id")?.name()?), name, parts, is_failed };
            (Some(Piece::Answer(answer)), is_usual)
        }
        "thinking" => {
            fields.ignore(&["summary", "details"]);
            let thought = fields.need("thinking")?.text()?;
            let signature = fields.text("signature")?.filter(|signature| !signature.is_empty());
            usual(Piece::Thought(match signature {
                Some(signature) => Reasoning::signed(WireFormat::Anthropic, thought, signature),
                None => Reasoning::text(thought),
            }))
        }
        "redacted_thinking" => {
            let data = fields.need("data")?.text()?;
            usual(Piece::Thought(Reasoning::signed(WireFormat::Anthropic, "", data).into_redacted()))
        }
        "reasoning" => own(Some(Piece::Thought(reasoning(&fields)?))),
        // A signature of reasoning for Gemini, without content of its own.
        "thoughtSignature" => {
            fields.ignore(&["thoughtSignature"]);
            own(None)
        }
        "image" => image(&fields)?,
        "file" => own(Some(Piece::text(file(&fields)?))),
        "document" => {
            fields.ignore_all();
            usual(Piece::Part(Part::Opaque { wire_format: WireFormat::Anthropic, json: node.compact() }))
        }
        _ => return Err(kind.unknown("is not a known block of a task")),
    };
    fields.finish(reading)?;
    Ok(Block { piece, is_usual, json })
}

/// Reads the content of a tool result. Also returns true if Anthropic accepts it unchanged.
fn result(fields: &Fields<'_>, reading: &mut Reading) -> Result<(Vec<Part>, bool), Fault> {
    let Some(content) = fields.get("content") else { return Ok((Vec::new(), true)) };
    if content.is_text() {
        return Ok((vec![Part::Text(content.text()?)], true));
    }
    let blocks = content.list()?;
    let has_type = |block: &Node<'_>| block.as_object().is_some_and(|block| block.get("type").is_some());
    if !blocks.iter().all(has_type) {
        // Some tools of Cline return JSON values without block types.
        return Ok((vec![Part::Text(content.compact())], false));
    }
    let mut is_usual = true;
    let parts = reading.each(blocks, |node, reading| {
        let block = block(node, reading)?;
        is_usual &= block.is_usual;
        match block.piece {
            Some(Piece::Part(part)) => Ok(part),
            _ => Err(node.fault("is not known content of a tool result; expected a text or an image")),
        }
    })?;
    Ok((parts, is_usual))
}

/// Reads an image in the form of Anthropic or of Cline's newer sessions.
fn image(fields: &Fields<'_>) -> Result<(Option<Piece>, bool), Fault> {
    let (url, is_usual) = match fields.get("source") {
        Some(source) => {
            let source = source.object()?;
            let url = match source.text("url")? {
                Some(url) => url,
                None => data_url(&source.need("media_type")?.text()?, &source.need("data")?.text()?),
            };
            (url, true)
        }
        None => (data_url(&fields.need("mediaType")?.text()?, &fields.need("data")?.text()?), false),
    };
    Ok((Some(Piece::image(url)), is_usual))
}

/// Reads a file attached to a user message, as text.
fn file(fields: &Fields<'_>) -> Result<String, Fault> {
    fields.ignore(&["source"]);
    let path = fields.need("path")?.text()?;
    Ok(format!("<file_content path=\"{path}\">\n{}\n</file_content>", fields.need("content")?.text()?))
}

/// Reads reasoning of a provider other than Anthropic.
fn reasoning(fields: &Fields<'_>) -> Result<Reasoning, Fault> {
    let summary = fields.get("summary").map(|summary| summary.list()).transpose()?.unwrap_or_default();
    let summary = summary
        .iter()
        .map(|part| if part.is_text() { part.text() } else { part.object()?.need("text")?.text() });
    let summary = summary.collect::<Result<Vec<String>, Fault>>()?.join("\n\n");
    let text = fields.text("text")?.filter(|text| !text.is_empty()).unwrap_or(summary);
    let id = fields.name("id")?;
    Ok(match fields.text("encrypted_content")? {
        Some(seal) => {
            let reasoning = Reasoning::signed(WireFormat::OpenAiResponses, text, seal);
            match id {
                Some(id) => reasoning.with_id(id),
                None => reasoning,
            }
        }
        None => Reasoning::text(text),
    })
}
