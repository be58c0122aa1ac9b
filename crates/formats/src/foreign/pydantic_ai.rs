//! Messages of Pydantic AI: requests and responses, whose `parts` have a `part_kind`.

use super::{
    Reader, media,
    media::Source,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments},
};
use crate::{format::FileFormat, session::compacted::Known};
use context_window::{Part, Role, WireFormat, message::Reasoning};
use serde_json::Value;

pub(super) const READER: Reader = Reader::new(FileFormat::PydanticAi, fits, read);

fn fits(shape: &Shape) -> bool {
    let is_message = |message: &Value| {
        matches!(text(message, "kind"), "request" | "response")
            && message.get("parts").is_some_and(Value::is_array)
            && message.get("role").is_none()
    };
    let is_one = shape.container == "parts" && shape.any_has(&["part_kind"]);
    is_one
        || shape.messages.iter().any(is_message)
        || shape.any_part("parts", |part| !text(part, "part_kind").is_empty())
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let messages = if node.is_list() {
        node.list()?
    } else {
        let fields = node.object()?;
        if fields.has("parts") {
            vec![node.clone()]
        } else {
            let list = fields.need("messages")?.list()?;
            fields.finish(reading)?;
            list
        }
    };
    let last = messages.len().saturating_sub(1);
    let mut history = History::default();
    let mut at = 0;
    let steps = reading.each(messages, |node, reading| {
        at += 1;
        history.message(node, at - 1 == last, reading)
    })?;
    if history.replaced > 0 {
        reading.note("instructions of earlier requests, which the last one replaces, are left out");
    }
    if history.passed > 0 {
        reading.note("system prompts for one earlier request alone are left out");
    }
    Ok(Talk {
        model: history.model,
        system: history.instructions.into_iter().collect(),
        steps: steps.into_iter().flatten().collect(),
        ..Talk::default()
    })
}

/// What later messages change.
#[derive(Default)]
struct History {
    model: Option<String>,
    /// The instructions of the last request: each states all of them anew.
    instructions: Option<String>,
    /// Instructions that a later request replaced.
    replaced: u64,
    /// System prompts that only an earlier request had.
    passed: u64,
}

impl History {
    fn message(&mut self, node: &Node<'_>, is_last: bool, reading: &mut Reading) -> Result<Vec<Step>, Fault> {
        let fields = node.object()?;
        let kind = fields.need("kind")?;
        let is_request = match &*kind.text()? {
            "request" => true,
            "response" => false,
            _ => return Err(kind.fault("is no kind of message; expected request or response")),
        };
        fields.ignore(&[
            "usage",
            "metadata",
            "provider_details",
            "vendor_details",
            "failed_attempts",
            "state",
        ]);
        if is_request {
            let own = fields.text("instructions")?;
            let before = std::mem::replace(&mut self.instructions, own);
            self.replaced += u64::from(before.is_some() && before != self.instructions);
        } else {
            self.model = fields.text("model_name")?.or(self.model.take());
        }
        let parts = fields.need("parts")?.list()?;
        let role = if is_request { Role::User } else { Role::Assistant };
        let mut steps = Vec::new();
        let mut open: Vec<Piece> = Vec::new();
        for read in reading.each(parts, |part, reading| self.part(part, is_request, is_last, reading))? {
            match read {
                Read::Pieces(pieces) => open.extend(pieces),
                Read::System(text) => {
                    steps.extend(said(node, role, &mut open));
                    steps.push(Step::Entry(Entry::new(node, Role::System, vec![Piece::text(text)])));
                }
                Read::Compaction(summary) => {
                    steps.extend(said(node, role, &mut open));
                    steps.push(Step::Compaction(Known { summary: Some(summary), ..Known::default() }));
                }
            }
        }
        fields.finish(reading)?;
        steps.extend(said(node, role, &mut open));
        Ok(steps)
    }

    fn part(
        &mut self,
        node: &Node<'_>,
        is_request: bool,
        is_last: bool,
        reading: &mut Reading,
    ) -> Result<Read, Fault> {
        let fields = node.object()?;
        let kind = fields.need("part_kind")?;
        fields.ignore(&["timestamp", "metadata", "content_file_digests", "citations", "provider_details"]);
        let one = |piece| Read::Pieces(vec![piece]);
        let read = match (&*kind.text()?, is_request) {
            ("system-prompt", true) => {
                let text = fields.need("content")?.text()?;
                fields.ignore(&["dynamic_ref", "context_id"]);
                match fields.text("scope")?.as_deref() {
                    None | Some("conversation") => Read::System(text),
                    Some("request") if is_last => Read::System(text),
                    Some("request") => {
                        self.passed += 1;
                        Read::nothing()
                    }
                    Some(_) => {
                        return Err(node.fault("has an unknown `scope`; expected conversation or request"));
                    }
                }
            }
            ("user-prompt", true) => Read::Pieces(prompt(&fields.need("content")?, reading)?),
            ("tool-return", true) | ("builtin-tool-return", false) => {
                one(Piece::Answer(answer(&fields, reading)?))
            }
            ("retry-prompt", true) => one(retry(&fields)?),
            ("retry-feedback", true) => {
                fields.ignore(&["retry"]);
                one(Piece::text(fields.need("content")?.text_or_json()))
            }
            ("compaction", _) => compaction(&fields, is_request)?,
            ("speech", _) => one(speech(&fields)?),
            ("instruction-delta", true) => {
                fields.ignore(&["id", "base_hash"]);
                match fields.text("content")? {
                    Some(text) => Read::System(text),
                    None => Read::nothing(),
                }
            }
            (
                "tool-availability-delta"
                | "capability-load-delta"
                | "model-settings-delta"
                | "instruction-baseline",
                true,
            ) => {
                // Records for the application: what the model sees of them stands elsewhere.
                fields.ignore_all();
                Read::nothing()
            }
            ("text", false) => one(Piece::text(fields.need("content")?.text()?)),
            ("thinking", false) => Read::Pieces(thought(&fields)?.into_iter().collect()),
            ("tool-call" | "builtin-tool-call", false) => one(Piece::Call(call(&fields)?)),
            ("file", false) => one(file(&fields.need("content")?, reading)?),
            _ => return Err(kind.fault("is no part of such a message that is known")),
        };
        fields.ignore(&["id", "provider_name", "tool_kind"]);
        fields.finish(reading)?;
        Ok(read)
    }
}

/// Returns the message of the pieces that are open.
fn said(node: &Node<'_>, role: Role, open: &mut Vec<Piece>) -> Option<Step> {
    (!open.is_empty()).then(|| Step::Entry(Entry::new(node, role, std::mem::take(open))))
}

/// What a part is.
enum Read {
    Pieces(Vec<Piece>),
    System(String),
    /// The provider made a summary of everything before it.
    Compaction(String),
}

impl Read {
    fn nothing() -> Self {
        Self::Pieces(Vec::new())
    }
}

fn prompt(content: &Node<'_>, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
    if content.is_text() {
        return Ok(vec![Piece::text(content.text()?)]);
    }
    let all = reading.each(content.list()?, |item, reading| {
        if item.is_text() {
            return Ok(Some(Piece::text(item.text()?)));
        }
        let fields = item.object()?;
        let kind = fields.need("kind")?;
        let piece = match &*kind.text()? {
            "text-content" => {
                fields.ignore(&["metadata"]);
                Some(Piece::text(fields.need("content")?.text()?))
            }
            "structured-content" => {
                fields.ignore(&["metadata", "value", "tag", "description"]);
                Some(Piece::text(fields.need("content")?.text()?))
            }
            "cache-point" => None,
            _ => return Ok(Some(file(item, reading)?)),
        };
        fields.finish(reading)?;
        Ok(piece)
    })?;
    Ok(all.into_iter().flatten().collect())
}

/// Reads a file: bytes, an address, or an id at the provider.
fn file(node: &Node<'_>, reading: &mut Reading) -> Result<Piece, Fault> {
    let fields = node.object()?;
    fields.ignore(&["identifier", "vendor_metadata", "force_download", "provider_name", "data_uri"]);
    let kind = fields.need("kind")?;
    let name = kind.text()?;
    let media_type = fields.text("media_type")?;
    let or =
        |usual: &str| media_type.clone().filter(|own| !own.is_empty()).unwrap_or_else(|| usual.to_owned());
    let (media_type, source) = match &*name {
        "binary" => {
            // Earlier versions wrote the alphabet for addresses.
            let data = fields.need("data")?.text()?.replace('-', "+").replace('_', "/");
            (or(media::image_type(&data)), Source::Data(data))
        }
        "image-url" => ("image/png".into(), Source::Url(fields.need("url")?.text()?)),
        "document-url" => (or("application/pdf"), Source::Url(fields.need("url")?.text()?)),
        "audio-url" => ("audio/wav".into(), Source::Url(fields.need("url")?.text()?)),
        "video-url" => ("video/mp4".into(), Source::Url(fields.need("url")?.text()?)),
        "uploaded-file" => ("application/octet-stream".into(), Source::Id(fields.need("file_id")?.text()?)),
        _ => return Err(kind.fault("is no content of Pydantic AI that is known")),
    };
    fields.finish(reading)?;
    media::known_part(&media_type, source, None)
        .map(Piece::Part)
        .ok_or_else(|| node.fault(format!("is a file of the kind `{name}`, which is not read")))
}

fn call(fields: &Fields<'_>) -> Result<Call, Fault> {
    fields.ignore(&["otel_metadata"]);
    let mut given = fields.get("args");
    // The first versions said in which of two ways the arguments are written.
    if let Some(inner) = given.clone().filter(Node::is_object) {
        let inner = inner.object()?;
        let is_wrapped = inner.names().eq(["args_dict"]) || inner.names().eq(["args_json"]);
        if is_wrapped {
            given = inner.first(&["args_dict", "args_json"]);
        }
    }
    let given = arguments(given);
    Ok(Call {
        id: fields.name("tool_call_id")?,
        name: fields.need("tool_name")?.text()?,
        arguments: if given.is_empty() { "{}".into() } else { given },
        signature: None,
    })
}

fn answer(fields: &Fields<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
    fields.ignore(&["retry"]);
    let outcome = fields.text("outcome")?;
    let is_failed = match outcome.as_deref() {
        None | Some("success" | "denied" | "interrupted") => false,
        Some("failed" | "retried") => true,
        Some(_) => return Err(fields.node().fault("has an unknown `outcome`")),
    };
    let parts = match fields.get("content") {
        None => Vec::new(),
        Some(content) if is_file(&content) => super::parts_of(&content, vec![file(&content, reading)?])?,
        Some(content) if content.is_list() && content.list()?.iter().any(is_file) => {
            let pieces = reading.each(content.list()?, |item, reading| {
                if is_file(item) { file(item, reading) } else { Ok(Piece::text(item.text_or_json())) }
            })?;
            super::parts_of(&content, pieces)?
        }
        Some(content) => vec![Part::Text(content.text_or_json())],
    };
    Ok(Answer { id: fields.name("tool_call_id")?, name: fields.text("tool_name")?, parts, is_failed })
}

fn is_file(node: &Node<'_>) -> bool {
    let kind = node.object().ok().and_then(|fields| fields.text("kind").ok()?);
    kind.is_some_and(|kind| kind == "binary" || kind == "uploaded-file" || kind.ends_with("-url"))
}

/// Reads what the model is told of a failure: the result of a call, or a text of the application.
fn retry(fields: &Fields<'_>) -> Result<Piece, Fault> {
    let (id, name) = (fields.name("tool_call_id")?, fields.text("tool_name")?);
    let text = fields.need("content")?.text_or_json();
    Ok(match name {
        Some(name) => Piece::Answer(Answer::text(id, Some(name), text).failed(true)),
        None => Piece::text(text),
    })
}

fn compaction(fields: &Fields<'_>, is_request: bool) -> Result<Read, Fault> {
    Ok(match fields.text("content")?.filter(|text| !text.is_empty()) {
        // A summary of the application is said as it stands; what it sums up has been taken out by then.
        Some(text) if is_request => Read::Pieces(vec![Piece::text(text)]),
        Some(text) => Read::Compaction(text),
        None => {
            let details = fields.get("provider_details").filter(Node::is_object);
            let details =
                details.ok_or_else(|| fields.node().fault("has neither `content` nor `provider_details`"))?;
            let mut item = details.as_object().unwrap_or_default();
            item.set("type", "\"compaction\"".into());
            if let Some(id) = fields.text("id")? {
                item.set_text("id", &id);
            }
            let json = item.to_json();
            Read::Pieces(vec![Piece::Part(Part::Opaque { wire_format: WireFormat::OpenAiResponses, json })])
        }
    })
}

fn speech(fields: &Fields<'_>) -> Result<Piece, Fault> {
    fields.ignore(&["speaker", "interrupted_at_ms", "timestamps"]);
    let audio = fields.get("audio");
    match (fields.text("transcript")?, audio) {
        (Some(text), _) => Ok(Piece::text(text)),
        (None, Some(audio)) => file(&audio, &mut Reading::default()),
        (None, None) => Ok(Piece::text("")),
    }
}

fn thought(fields: &Fields<'_>) -> Result<Option<Piece>, Fault> {
    let text = fields.text("content")?.unwrap_or_default();
    let (id, signature) = (fields.name("id")?, fields.text("signature")?.filter(|own| !own.is_empty()));
    let Some(signature) = signature else { return Ok(Piece::thought(text)) };
    let provider = fields.text("provider_name")?.unwrap_or_default();
    let of = |wire_format| Reasoning::sealed(wire_format, text.clone(), signature.clone());
    let thought = match &*provider {
        "" | "anthropic" | "bedrock" if id.as_deref() == Some("redacted_thinking") => {
            of(WireFormat::Anthropic).into_redacted()
        }
        "" | "anthropic" | "bedrock" | "google-vertex-anthropic" => of(WireFormat::Anthropic),
        "openai" | "azure" => id.into_iter().fold(of(WireFormat::OpenAiResponses), Reasoning::with_id),
        _ => return Ok(Piece::thought(text)),
    };
    Ok(Some(Piece::Thought(thought)))
}
