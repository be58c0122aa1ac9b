//! The content of `LangChain` messages: blocks of its own and of every provider's form, and the calls and
//! reasoning outside the content.

use super::super::{
    media,
    media::Source,
    talk::{Call, arguments, usual_piece},
};
use super::{Answer, Fault, Fields, Node, Piece, Reading, calls};
use context_window::{Part, WireFormat, message::Reasoning};

/// Reads the pieces of the content.
pub(super) fn pieces(
    fields: &Fields<'_>,
    provider: &str,
    reading: &mut Reading,
) -> Result<Vec<Piece>, Fault> {
    let content = fields.get("content").filter(|content| !matches!(content.json(), "\"\"" | "[]"));
    let blocks = fields.get("content_blocks");
    let Some(content) = content.or(blocks) else { return Ok(Vec::new()) };
    if content.is_text() {
        return Ok(vec![Piece::text(content.text()?)]);
    }
    let all = reading.each(content.list()?, |node, reading| block(node, provider, reading))?;
    Ok(all.into_iter().flatten().collect())
}

fn block(node: &Node<'_>, provider: &str, reading: &mut Reading) -> Result<Option<Piece>, Fault> {
    node.check_depth()?;
    if node.is_text() {
        return Ok(Some(Piece::text(node.text()?)));
    }
    let fields = node.object()?;
    let kind = fields.need("type")?.text()?;
    fields.ignore(&["index", "extras", "annotations", "citations", "cache_control", "phase"]);
    let piece = match &*kind {
        "text" | "output_text" | "input_text" | "text-plain" => {
            Some(Piece::text(fields.need("text")?.text()?))
        }
        "refusal" => Some(Piece::text(fields.need("refusal")?.text()?)),
        "reasoning" => thought(&fields, provider)?,
        "thinking" => {
            let text = fields.text("thinking")?.unwrap_or_default();
            seal(text, fields.text("signature")?, provider)
        }
        "tool_use" => {
            fields.ignore(&["partial_json", "caller"]);
            Some(Piece::Call(call(&fields, &["id"], &["input"])?))
        }
        "tool_call" | "tool_call_chunk" | "invalid_tool_call" | "server_tool_call" => {
            fields.ignore(&["error"]);
            Some(Piece::Call(call(&fields, &["id"], &["args"])?))
        }
        "function_call" => {
            fields.ignore(&["id", "status", "namespace"]);
            Some(Piece::Call(call(&fields, &["call_id", "id"], &["arguments"])?))
        }
        "server_tool_result" => {
            let is_failed = fields.text("status")?.as_deref() == Some("error");
            let id = fields.name("tool_call_id")?;
            let text = fields.get("output").map(|output| output.text_or_json()).unwrap_or_default();
            Some(Piece::Answer(Answer::text(id, None, text).failed(is_failed)))
        }
        // `tool_calls` has the complete arguments of a streamed call.
        "input_json_delta" => {
            fields.ignore(&["partial_json", "input"]);
            None
        }
        "non_standard" => {
            let value = fields.need("value")?;
            fields.finish(reading)?;
            return block(&value, provider, reading);
        }
        "image" | "audio" | "video" | "file" | "media" if !fields.has("source") && !fields.has("file") => {
            Some(Piece::Part(data(&fields, &kind)?))
        }
        kind if kind.ends_with("_call") => {
            fields.ignore_all();
            let json = node.compact();
            Some(Piece::Part(Part::Opaque { wire_format: WireFormat::OpenAiResponses, json }))
        }
        _ => {
            let piece = usual_piece(node, reading)?;
            let unknown = || node.fault(format!("has the unknown type `{kind}`"));
            return piece.map(Some).ok_or_else(unknown);
        }
    };
    fields.ignore(&["id"]);
    fields.finish(reading)?;
    Ok(piece)
}

fn call(fields: &Fields<'_>, ids: &[&'static str], given: &[&'static str]) -> Result<Call, Fault> {
    Ok(Call {
        id: fields.first(ids).map(|id| id.name()).transpose()?,
        name: fields.need("name")?.text()?,
        arguments: arguments(fields.first(given)),
        signature: None,
    })
}

/// Reads reasoning in the form of `LangChain` or of `OpenAI` Responses.
fn thought(fields: &Fields<'_>, provider: &str) -> Result<Option<Piece>, Fault> {
    let mut texts: Vec<String> = fields.text("reasoning")?.into_iter().collect();
    for key in ["summary", "content"] {
        for part in fields.get(key).map(|list| list.list()).transpose()?.unwrap_or_default() {
            texts.push(part.object()?.need("text")?.text()?);
        }
    }
    fields.ignore(&["status"]);
    let (id, text) = (fields.name("id")?, texts.join("\n\n"));
    if let Some(encrypted) = fields.text("encrypted_content")? {
        let sealed = Reasoning::signed(WireFormat::OpenAiResponses, text, encrypted);
        return Ok(Some(Piece::Thought(id.into_iter().fold(sealed, Reasoning::with_id))));
    }
    let extras = fields.get("extras").map(|extras| extras.object()).transpose()?;
    let signature = extras.map(|extras| extras.text("signature")).transpose()?.flatten();
    Ok(seal(text, signature, provider))
}

/// Creates a reasoning piece. A signature is one of Anthropic, unless the provider is Google.
fn seal(text: String, signature: Option<String>, provider: &str) -> Option<Piece> {
    match signature.filter(|_| !provider.contains("google")) {
        Some(signature) => Some(Piece::Thought(Reasoning::signed(WireFormat::Anthropic, text, signature))),
        None => Piece::thought(text),
    }
}

/// Reads an image, a sound or a file, in the form of version 1 or of version 0.3 with its `source_type`.
fn data(fields: &Fields<'_>, kind: &str) -> Result<Part, Fault> {
    fields.ignore(&["source_type", "metadata"]);
    let media_type = fields.text("mime_type")?.unwrap_or_else(|| format!("{kind}/"));
    let media_type = if media_type == "image/" { "image/png".to_owned() } else { media_type };
    let name = fields.first(&["filename", "name"]).map(|name| name.text()).transpose()?;
    let data = fields.first(&["base64", "data"]).map(|data| data.text()).transpose()?;
    let url = fields.first(&["url", "file_uri"]).map(|url| url.text()).transpose()?;
    let source = match (data, url, fields.text("file_id")?) {
        (Some(data), _, _) => Source::Data(data),
        (_, Some(url), _) => Source::Url(url),
        (_, _, Some(id)) => Source::Id(id),
        _ => match (fields.text("text")?, fields.name("id")?) {
            (Some(text), _) => return Ok(Part::Text(text)),
            (None, Some(id)) => Source::Id(id),
            (None, None) => return Err(fields.node().fault("has no `base64`, `url` or `file_id`")),
        },
    };
    media::known_part(&media_type, source, name.as_deref()).ok_or_else(|| {
        fields.node().fault(format!("is a file of the type `{media_type}`, which is not read"))
    })
}

/// Adds the calls, the reasoning and the items of the provider's tools outside the content of an assistant
/// message. The blocks of the content may repeat the calls.
pub(super) fn add_beside(
    pieces: &mut Vec<Piece>,
    fields: &Fields<'_>,
    beside: &Fields<'_>,
    reading: &mut Reading,
) -> Result<(), Fault> {
    beside.ignore(&["__openai_function_call_ids__", "parsed", "annotations", "citations", "audio"]);
    // Each of these keys may repeat calls of the others, and `add` keeps one copy.
    calls::add(pieces, calls::list(fields.get("tool_calls"))?)?;
    calls::add(pieces, calls::list(fields.get("invalid_tool_calls"))?)?;
    calls::add(pieces, calls::list(beside.get("tool_calls"))?)?;
    if let Some(legacy) = beside.get("function_call") {
        calls::add(pieces, [(legacy.clone(), calls::one(&legacy)?)])?;
    }
    if let Some(signatures) = beside.get("__gemini_function_call_thought_signatures__") {
        sign(pieces, &signatures)?;
    }
    for item in beside.get("tool_outputs").map(|items| items.list()).transpose()?.unwrap_or_default() {
        // The provider's tools ran before the reply, so their items precede it.
        let part = Part::Opaque { wire_format: WireFormat::OpenAiResponses, json: item.compact() };
        pieces.insert(0, Piece::Part(part));
    }
    if let Some(refusal) = beside.text("refusal")?.filter(|text| !text.is_empty()) {
        pieces.push(Piece::text(refusal));
    }
    let audio = beside.get("audio").map(|audio| audio.object()).transpose()?;
    if let Some(transcript) = audio.map(|audio| audio.text("transcript")).transpose()?.flatten() {
        pieces.insert(0, Piece::text(transcript));
    }
    let mut thoughts: Vec<Piece> = Vec::new();
    for key in ["reasoning_content", "reasoning", "thinking"] {
        let Some(reasoning) = beside.get(key) else { continue };
        if reasoning.is_text() {
            thoughts.extend(Piece::thought(reasoning.text()?));
        } else {
            let inner = reasoning.object()?;
            inner.ignore(&["type", "index"]);
            let piece = if inner.has("thinking") {
                seal(inner.text("thinking")?.unwrap_or_default(), inner.text("signature")?, "")
            } else if inner.has("text") {
                seal(inner.text("text")?.unwrap_or_default(), inner.text("signature")?, "")
            } else {
                thought(&inner, "")?
            };
            inner.finish(reading)?;
            thoughts.extend(piece);
        }
    }
    // The same reasoning may be in a block and under several keys; each text is kept once.
    let said: Vec<String> = pieces.iter().filter_map(thought_text).collect();
    thoughts.retain(|thought| thought_text(thought).is_none_or(|text| !said.contains(&text)));
    pieces.splice(0..0, thoughts);
    // Servers repeat the reasoning here, so it is read only if no other key has any.
    let details =
        beside.get("reasoning_details").filter(|_| !pieces.iter().any(|piece| thought_text(piece).is_some()));
    for detail in details.map(|list| list.list()).transpose()?.unwrap_or_default() {
        let detail = detail.object()?;
        let text = detail.first(&["text", "summary"]).map(|text| text.text()).transpose()?;
        pieces.splice(0..0, text.and_then(Piece::thought));
    }
    Ok(())
}

fn thought_text(piece: &Piece) -> Option<String> {
    match piece {
        Piece::Thought(reasoning) => Some(reasoning.text.clone()),
        _ => None,
    }
}

/// Sets the signatures of the calls, with which Gemini verifies its reasoning.
fn sign(pieces: &mut [Piece], signatures: &Node<'_>) -> Result<(), Fault> {
    let signatures: std::collections::BTreeMap<String, String> = serde_json::from_str(signatures.json())
        .map_err(|_| signatures.expected("signatures by the ids of calls"))?;
    for piece in pieces {
        if let Piece::Call(call) = piece {
            call.signature = call.id.as_ref().and_then(|id| signatures.get(id).cloned());
        }
    }
    Ok(())
}
