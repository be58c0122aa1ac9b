//! Content blocks of Converse. Each is an object with one key, which is its kind.

use super::super::{
    media::{self, Source},
    node::{Fault, Fields, Node, Reading},
    talk::{Answer, Call, Piece},
};
use context_window::{Part, Role, WireFormat, message::Reasoning};
use serde_json::json;

/// Reads a block of the system text. Returns `None` for a cache point.
pub(super) fn system(node: &Node<'_>, reading: &mut Reading) -> Result<Option<String>, Fault> {
    match piece(node, Role::System, reading)? {
        None => Ok(None),
        Some(Piece::Part(Part::Text(text))) => Ok(Some(text)),
        Some(_) => Err(node.fault("is not text; expected texts in `system`")),
    }
}

/// Reads a block. Returns `None` for a block without content.
pub(super) fn piece(node: &Node<'_>, role: Role, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    if node.is_text() {
        return Ok(Some(Piece::text(node.text()?)));
    }
    let fields = node.object()?;
    let found = kinds(&fields);
    let [(kind, inside)] = found.as_slice() else {
        return Err(node.fault("is not a known block of Converse; expected one key for its type"));
    };
    let piece = match *kind {
        "toolUse" => Some(Piece::Call(call(inside, reading)?)),
        "toolResult" => Some(Piece::Answer(result(inside, reading)?)),
        "reasoningContent" => thought(inside, reading)?,
        "cachePoint" => {
            inside.object()?.ignore_all();
            None
        }
        _ if role == Role::System && *kind != "text" && *kind != "guardContent" => {
            return Err(inside.fault("is not text; expected texts in `system`"));
        }
        _ => Some(Piece::Part(part(kind, inside, reading)?)),
    };
    fields.finish(reading)?;
    Ok(piece)
}

/// Returns the known keys of a block, with their values.
fn kinds<'a>(fields: &Fields<'a>) -> Vec<(&'static str, Node<'a>)> {
    const KINDS: [&str; 13] = [
        "text",
        "image",
        "document",
        "video",
        "audio",
        "toolUse",
        "toolResult",
        "reasoningContent",
        "cachePoint",
        "guardContent",
        "citationsContent",
        "searchResult",
        "json",
    ];
    KINDS.into_iter().filter_map(|kind| Some((kind, fields.get(kind)?))).collect()
}

fn call(node: &Node<'_>, reading: &mut Reading) -> Result<Call, Fault> {
    let fields = node.object()?;
    fields.ignore(&["type"]);
    let call = Call {
        id: Some(fields.need("toolUseId")?.name()?),
        name: fields.need("name")?.text()?,
        arguments: super::super::talk::arguments(fields.get("input")),
        signature: None,
    };
    fields.finish(reading)?;
    Ok(call)
}

fn result(node: &Node<'_>, reading: &mut Reading) -> Result<Answer, Fault> {
    let fields = node.object()?;
    fields.ignore(&["type"]);
    let id = fields.need("toolUseId")?.name()?;
    let status = fields.get("status");
    let is_failed = match status.as_ref().map(Node::text).transpose()?.as_deref() {
        None | Some("success") => false,
        Some("error") => true,
        Some(_) => return Err(node.fault("has an unknown `status`; expected success or error")),
    };
    let content = fields.get("content");
    let content = match content {
        Some(content) if content.is_text() => vec![content],
        Some(content) => content.list()?,
        None => Vec::new(),
    };
    let parts = reading.each(content, |node, reading| {
        if node.is_text() {
            return node.text().map(Part::Text);
        }
        let fields = node.object()?;
        let found = kinds(&fields);
        let [(kind, inside)] = found.as_slice() else {
            return Err(node.fault("is not a known part of a result of Converse"));
        };
        let part = part(kind, inside, reading)?;
        fields.finish(reading)?;
        Ok(part)
    })?;
    fields.finish(reading)?;
    Ok(Answer { id: Some(id), name: None, parts, is_failed })
}

/// Reads reasoning. Returns `None` if it is empty.
fn thought(node: &Node<'_>, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    let fields = node.object()?;
    let redacted = fields.get("redactedContent");
    let text = fields.get("reasoningText");
    fields.finish(reading)?;
    if let Some(redacted) = redacted {
        let sealed = Reasoning::signed(WireFormat::Anthropic, "", media::bytes(&redacted)?).into_redacted();
        return Ok(Some(Piece::Thought(sealed)));
    }
    let Some(inside) = text else {
        return Err(node.fault("has neither `reasoningText` nor `redactedContent`"));
    };
    let fields = inside.object()?;
    let (text, signature) = (fields.need("text")?.text()?, fields.text("signature")?);
    fields.finish(reading)?;
    Ok(match signature.filter(|signature| !signature.is_empty()) {
        Some(signature) => Some(Piece::Thought(Reasoning::signed(WireFormat::Anthropic, text, signature))),
        None => Piece::thought(text),
    })
}

fn part(kind: &str, node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    Ok(match kind {
        "text" => Part::Text(node.text()?),
        "json" => Part::Text(node.compact()),
        "image" | "video" | "audio" => medium(kind, node, reading)?,
        "document" => document(node, reading)?,
        "guardContent" => guarded(node, reading)?,
        "citationsContent" => cited(node, reading)?,
        "searchResult" => search_result(node)?,
        _ => return Err(node.fault("is not a part of a message of Converse")),
    })
}

fn medium(kind: &str, node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    let fields = node.object()?;
    fields.ignore(&["error"]);
    let format = fields.text("format")?.unwrap_or_default();
    // A few formats of Converse differ from the subtype of their media type.
    let media_type = match (kind, format.as_str()) {
        ("image", "jpg") => "image/jpeg".to_owned(),
        ("audio", "x-aac") => "audio/aac".to_owned(),
        ("video", "three_gp") => "video/3gpp".to_owned(),
        (kind, format) => format!("{kind}/{format}"),
    };
    let source = fields.need("source")?;
    let part = media::part(&source, &media_type, content(&source, reading)?, None)?;
    fields.finish(reading)?;
    Ok(part)
}

/// Reads bytes, or an S3 URL.
fn content(node: &Node<'_>, reading: &mut Reading) -> Result<Source, Fault> {
    let fields = node.object()?;
    let source = match (fields.get("bytes"), fields.get("s3Location")) {
        (Some(bytes), _) => {
            let data = media::bytes(&bytes)?;
            // Decoding checks the data before it becomes part of a message.
            media::decoded(&data).ok_or_else(|| bytes.fault("is not base64"))?;
            Source::Data(data)
        }
        (None, Some(location)) => {
            let location = location.object()?;
            location.ignore(&["bucketOwner"]);
            Source::Url(location.need("uri")?.text()?)
        }
        (None, None) => return Err(node.fault("has neither `bytes` nor `s3Location`")),
    };
    fields.finish(reading)?;
    Ok(source)
}

/// Reads a document. Uses the form of Anthropic if that supports the document's format.
fn document(node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    let fields = node.object()?;
    let format = fields.text("format")?.unwrap_or_else(|| "txt".into());
    let (name, context) = (fields.text("name")?, fields.text("context")?);
    let is_cited = fields
        .get("citations")
        .and_then(|citations| citations.object().ok())
        .is_some_and(|c| c.is_true("enabled"));
    let node = fields.need("source")?;
    let source = node.object()?;
    // Anthropic accepts PDF and plain text. Other formats become files of another provider's form.
    let is_plain = matches!(format.as_str(), "txt" | "md" | "csv" | "html");
    let inner = if let Some(text) = source.text("text")? {
        json!({ "type": "text", "media_type": "text/plain", "data": text })
    } else if let Some(list) = source.get("content") {
        let texts = reading.each(list.list()?, |node, _| node.object()?.need("text")?.text())?;
        let texts: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        json!({ "type": "content", "content": texts })
    } else {
        match content(&node, reading)? {
            Source::Data(data) if format == "pdf" => {
                json!({ "type": "base64", "media_type": "application/pdf", "data": data })
            }
            Source::Data(data) if is_plain => {
                let text = media::decoded(&data).and_then(|bytes| String::from_utf8(bytes).ok());
                let text = text.ok_or_else(|| node.fault("is a text document that is not UTF-8"))?;
                json!({ "type": "text", "media_type": "text/plain", "data": text })
            }
            source => {
                let media_type = match format.as_str() {
                    "pdf" => "application/pdf",
                    "doc" => "application/msword",
                    "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                    "xls" => "application/vnd.ms-excel",
                    "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                    _ => "application/octet-stream",
                };
                let name = name.map(|name| format!("{name}.{format}"));
                fields.finish(reading)?;
                return media::part(&node, media_type, source, name);
            }
        }
    };
    // `content` has read these keys through an object of its own.
    source.ignore(&["bytes", "s3Location"]);
    source.finish(reading)?;
    fields.finish(reading)?;
    let mut block = json!({ "type": "document", "source": inner });
    if let Some(name) = name {
        block["title"] = name.into();
    }
    if let Some(context) = context {
        block["context"] = context.into();
    }
    if is_cited {
        block["citations"] = json!({ "enabled": true });
    }
    Ok(Part::Opaque { wire_format: WireFormat::Anthropic, json: block.to_string() })
}

/// Reads content for a guardrail, which is also sent to the model.
fn guarded(node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    let fields = node.object()?;
    let part = match (fields.get("text"), fields.get("image")) {
        (Some(text), _) => {
            let text = text.object()?;
            text.ignore(&["qualifiers"]);
            let said = text.need("text")?.text()?;
            text.finish(reading)?;
            Part::Text(said)
        }
        (None, Some(image)) => medium("image", &image, reading)?,
        (None, None) => return Err(node.fault("has neither `text` nor `image`")),
    };
    fields.finish(reading)?;
    Ok(part)
}

/// Reads an assistant text with citations. The citations are not sent back.
fn cited(node: &Node<'_>, reading: &mut Reading) -> Result<Part, Fault> {
    let fields = node.object()?;
    fields.ignore(&["citations"]);
    let texts = fields.need("content")?.list()?;
    let texts = reading.each(texts, |node, _| node.object()?.need("text")?.text())?;
    fields.finish(reading)?;
    Ok(Part::Text(texts.concat()))
}

/// Reads a search result. Anthropic has the same form with additional types.
fn search_result(node: &Node<'_>) -> Result<Part, Fault> {
    let fields = node.object()?;
    let texts = fields.need("content")?.list()?;
    let texts: Result<Vec<_>, Fault> = texts
        .iter()
        .map(|node| Ok(json!({ "type": "text", "text": node.object()?.need("text")?.text()? })))
        .collect();
    let block = json!({ "type": "search_result", "source": fields.need("source")?.text()?,
        "title": fields.need("title")?.text()?, "content": texts? });
    Ok(Part::Opaque { wire_format: WireFormat::Anthropic, json: block.to_string() })
}
