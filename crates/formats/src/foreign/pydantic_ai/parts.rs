//! The parts of messages.

use super::{Answer, Fault, Fields, Node, Piece, Read, Reading};
use crate::foreign::{
    media,
    media::Source,
    parts_of,
    talk::{Call, arguments},
};
use context_window::{Part, WireFormat, message::Reasoning};

pub(super) fn prompt(content: &Node<'_>, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
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

/// Reads a file: bytes, a URL, or an id at the provider.
pub(super) fn file(node: &Node<'_>, reading: &mut Reading) -> Result<Piece, Fault> {
    let fields = node.object()?;
    fields.ignore(&["identifier", "vendor_metadata", "force_download", "provider_name", "data_uri"]);
    let kind = fields.need("kind")?;
    let name = kind.text()?;
    let media_type = fields.text("media_type")?;
    let or =
        |usual: &str| media_type.clone().filter(|own| !own.is_empty()).unwrap_or_else(|| usual.to_owned());
    let (media_type, source) = match &*name {
        "binary" => {
            // Earlier versions wrote the URL-safe alphabet of base64.
            let data = fields.need("data")?.text()?.replace('-', "+").replace('_', "/");
            (or(media::image_type(&data)), Source::Data(data))
        }
        "image-url" => ("image/png".into(), Source::Url(fields.need("url")?.text()?)),
        "document-url" => (or("application/pdf"), Source::Url(fields.need("url")?.text()?)),
        "audio-url" => ("audio/wav".into(), Source::Url(fields.need("url")?.text()?)),
        "video-url" => ("video/mp4".into(), Source::Url(fields.need("url")?.text()?)),
        "uploaded-file" => ("application/octet-stream".into(), Source::Id(fields.need("file_id")?.text()?)),
        _ => return Err(kind.unknown("is not known content of Pydantic AI")),
    };
    fields.finish(reading)?;
    media::known_part(&media_type, source, None)
        .map(Piece::Part)
        .ok_or_else(|| node.fault(format!("is a file of the kind `{name}`, which is not read")))
}

pub(super) fn call(fields: &Fields<'_>) -> Result<Call, Fault> {
    fields.ignore(&["otel_metadata"]);
    let mut given = fields.get("args");
    // The first versions named one of two forms of the arguments.
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

pub(super) fn answer(fields: &Fields<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
    fields.ignore(&["retry"]);
    let outcome = fields.text("outcome")?;
    let is_failed = match outcome.as_deref() {
        None | Some("success" | "denied" | "interrupted") => false,
        Some("failed" | "retried") => true,
        Some(_) => return Err(fields.node().fault("has an unknown `outcome`")),
    };
    let parts = match fields.get("content") {
        None => Vec::new(),
        Some(content) if is_file(&content) => parts_of(&content, vec![file(&content, reading)?])?,
        Some(content) if content.is_list() && content.list()?.iter().any(is_file) => {
            let pieces = reading.each(content.list()?, |item, reading| {
                if is_file(item) { file(item, reading) } else { Ok(Piece::text(item.text_or_json())) }
            })?;
            parts_of(&content, pieces)?
        }
        Some(content) => vec![Part::Text(content.text_or_json())],
    };
    Ok(Answer { id: fields.name("tool_call_id")?, name: fields.text("tool_name")?, parts, is_failed })
}

fn is_file(node: &Node<'_>) -> bool {
    let kind = node.object().ok().and_then(|fields| fields.text("kind").ok()?);
    kind.is_some_and(|kind| kind == "binary" || kind == "uploaded-file" || kind.ends_with("-url"))
}

/// Reads the report of a failure to the model: the result of a call, or a text of the application.
pub(super) fn retry(fields: &Fields<'_>) -> Result<Piece, Fault> {
    let (id, name) = (fields.name("tool_call_id")?, fields.text("tool_name")?);
    let text = fields.need("content")?.text_or_json();
    Ok(match name {
        Some(name) => Piece::Answer(Answer::text(id, Some(name), text).failed(true)),
        None => Piece::text(text),
    })
}

pub(super) fn compaction(fields: &Fields<'_>, is_request: bool) -> Result<Read, Fault> {
    Ok(match fields.text("content")?.filter(|text| !text.is_empty()) {
        // A summary of the application is read as text, because the messages that it replaces were removed.
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
            // The provider's compaction has no readable text, so its item is kept as raw JSON.
            Read::Pieces(vec![Piece::Part(Part::Opaque { wire_format: WireFormat::OpenAiResponses, json })])
        }
    })
}

pub(super) fn speech(fields: &Fields<'_>) -> Result<Piece, Fault> {
    fields.ignore(&["speaker", "interrupted_at_ms", "timestamps"]);
    let audio = fields.get("audio");
    match (fields.text("transcript")?, audio) {
        (Some(text), _) => Ok(Piece::text(text)),
        (None, Some(audio)) => file(&audio, &mut Reading::default()),
        (None, None) => Ok(Piece::text("")),
    }
}

pub(super) fn thought(fields: &Fields<'_>) -> Result<Option<Piece>, Fault> {
    let text = fields.text("content")?.unwrap_or_default();
    let (id, signature) = (fields.name("id")?, fields.text("signature")?.filter(|own| !own.is_empty()));
    let Some(signature) = signature else { return Ok(Piece::thought(text)) };
    let provider = fields.text("provider_name")?.unwrap_or_default();
    let of = |wire_format| Reasoning::signed(wire_format, text.clone(), signature.clone());
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
