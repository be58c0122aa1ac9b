//! Chat messages of `LlamaIndex`: `blocks` with a `block_type`, in older versions a `content`, and data of
//! the model in `additional_kwargs`. Also reads chat stores and memories, which hold lists of messages by
//! key.

use super::{
    FormatReader, calls, media,
    media::Source,
    node::{Fault, Fields, Node, Reading},
    shape::{Shape, text},
    talk::{Answer, Call, Entry, Piece, Step, Talk, arguments, data_url},
};
use crate::format::FileFormat;
use context_window::{Part, Role, WireFormat, message::Reasoning};
use serde_json::Value;

pub(super) const READER: FormatReader =
    FormatReader::new(FileFormat::LlamaIndex, fits, read).with_conversations(conversations);

fn fits(shape: &Shape) -> bool {
    let is_store = shape.has("store") && shape.has("class_name") || shape.has("chat_store");
    let is_plain = |message: &Value| {
        message.get("additional_kwargs").is_some_and(Value::is_object)
            && message.get("role").is_some()
            && message.get("type").is_none()
            && message.get("content").is_none_or(|content| content.is_string() || content.is_null())
    };
    is_store
        || shape.any_part("blocks", |block| !text(block, "block_type").is_empty())
        || shape.messages.iter().any(is_plain)
}

/// Returns the lists of a chat store, by their keys. Returns `None` for a single list.
fn conversations<'a>(node: &Node<'a>) -> Option<Vec<(Option<String>, Node<'a>)>> {
    let store = store(node).ok()??;
    let lists = store.object().ok()?;
    let all: Vec<_> =
        lists.names().filter_map(|key| Some((Some(key.to_owned()), lists.peek(key)?.clone()))).collect();
    // A single list is read as one conversation, and its key is not an id.
    (all.len() > 1).then_some(all)
}

/// Returns the lists of a chat store, or of the chat store in a memory.
fn store<'a>(node: &Node<'a>) -> Result<Option<Node<'a>>, Fault> {
    let mut fields = node.object()?;
    let mut strict = Reading::default();
    if let Some(inner) = fields.get("chat_store") {
        let own = [
            "chat_store_key",
            "token_limit",
            "class_name",
            "count_initial_tokens",
            "summarize_prompt",
            "llm",
        ];
        fields.ignore(&own);
        fields.finish(&mut strict)?;
        fields = inner.object()?;
    }
    let Some(store) = fields.get("store") else { return Ok(None) };
    fields.ignore(&["class_name"]);
    fields.finish(&mut strict)?;
    Ok(Some(store))
}

fn read(node: &Node<'_>, reading: &mut Reading) -> Result<Talk, Fault> {
    let all = messages(node, reading)?;
    let messages = reading.each(all, message)?;
    Ok(Talk { steps: messages.into_iter().map(Step::Entry).collect(), ..Talk::default() })
}

fn messages<'a>(node: &Node<'a>, reading: &mut Reading) -> Result<Vec<Node<'a>>, Fault> {
    if node.is_list() {
        return node.list();
    }
    if let Some(store) = store(node)? {
        let lists = store.object()?;
        let mut keys = lists.names();
        return match (keys.next().and_then(|key| lists.peek(key)), keys.next()) {
            (Some(list), None) => list.list(),
            _ => Err(store.fault("contains several conversations; choose one by its key")),
        };
    }
    let fields = node.object()?;
    if fields.has("blocks") {
        return Ok(vec![node.clone()]);
    }
    let list = fields.first(&["messages", "chat_history"]);
    let list = list.ok_or_else(|| node.fault("has no `messages`"))?.list()?;
    fields.finish(reading)?;
    Ok(list)
}

fn message(node: &Node<'_>, reading: &mut Reading) -> Result<Entry, Fault> {
    let fields = node.object()?;
    let role = role(&fields)?;
    let beside = match fields.get("additional_kwargs") {
        Some(beside) => beside.object()?,
        None => Node::root("{}").object()?,
    };
    let blocks = fields.get("blocks").map(|blocks| blocks.list()).transpose()?;
    let mut pieces: Vec<Piece> =
        reading.each(blocks.clone().unwrap_or_default(), block)?.into_iter().flatten().collect();
    if let Some(content) = fields.text("content")?.filter(|content| !content.is_empty()) {
        // `content` repeats the text blocks. A different text would be lost.
        let texts: Vec<&str> = pieces.iter().filter_map(text_of).collect();
        match blocks.is_some_and(|blocks| !blocks.is_empty()) {
            true if texts.join("\n") != content => {
                return Err(node.fault("has a `content` that differs from its `blocks`"));
            }
            true => {}
            false => pieces.push(Piece::text(content)),
        }
    }
    let id = fields.name("id")?;
    if role == Role::Tool {
        let parts = super::parts_of(node, pieces)?;
        let (id, name) = (beside.name("tool_call_id")?, beside.text("name")?);
        pieces = vec![Piece::Answer(Answer { id, name, parts, is_failed: beside.is_true("is_error") })];
    } else {
        add_beside(&mut pieces, &beside)?;
    }
    beside.finish(reading)?;
    fields.finish(reading)?;
    Ok(Entry::new(role, pieces).with_id(id))
}

fn text_of(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Part(Part::Text(text)) => Some(text),
        _ => None,
    }
}

/// Adds the data outside the blocks: calls without a block, and reasoning.
fn add_beside(pieces: &mut Vec<Piece>, beside: &Fields<'_>) -> Result<(), Fault> {
    calls::add(pieces, calls::list(beside.get("tool_calls"))?)?;
    if let Some(legacy) = beside.get("function_call") {
        calls::add(pieces, [(legacy.clone(), calls::one(&legacy)?)])?;
    }
    let is_thought = |piece: &Piece| matches!(piece, Piece::Thought(_));
    if let Some(thinking) = beside.get("thinking") {
        let thinking = thinking.object()?;
        let thought = sealed(thinking.text("thinking")?.unwrap_or_default(), &thinking)?;
        // A thinking block may repeat this value.
        if !pieces.iter().any(is_thought) {
            pieces.splice(0..0, thought);
        }
    }
    if let Some(text) = beside.text("reasoning_content")?.filter(|_| !pieces.iter().any(is_thought)) {
        pieces.splice(0..0, Piece::thought(text));
    }
    for item in beside.get("built_in_tool_calls").map(|items| items.list()).transpose()?.unwrap_or_default() {
        // The provider's tools ran before the reply, so their items precede it.
        let json = item.compact();
        pieces.insert(0, Piece::Part(Part::Opaque { wire_format: WireFormat::OpenAiResponses, json }));
    }
    Ok(())
}

fn role(fields: &Fields<'_>) -> Result<Role, Fault> {
    let role = fields.need("role")?;
    Ok(match &*role.text()? {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" | "chatbot" | "model" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(role.unknown("is not a role of LlamaIndex")),
    })
}

fn block(node: &Node<'_>, reading: &mut Reading) -> Result<Vec<Piece>, Fault> {
    node.check_depth()?;
    let fields = node.object()?;
    let kind = fields.need("block_type")?;
    let piece = match &*kind.text()? {
        "text" => Some(Piece::text(fields.need("text")?.text()?)),
        "thinking" => {
            fields.ignore(&["num_tokens"]);
            let text = fields.text("content")?.unwrap_or_default();
            match fields.get("additional_information") {
                Some(information) => sealed(text, &information.object()?)?,
                None => Piece::thought(text),
            }
        }
        "tool_call" => Some(Piece::Call(Call {
            id: fields.name("tool_call_id")?,
            name: fields.need("tool_name")?.text()?,
            arguments: arguments(fields.get("tool_kwargs")),
            signature: None,
        })),
        "image" => Some(Piece::Part(image(&fields)?)),
        "audio" => Some(file(&fields, "audio", "audio/", "format")?),
        "video" => Some(file(&fields, "video", "video/", "video_mimetype")?),
        "document" => Some(file(&fields, "data", "", "document_mimetype")?),
        "citable" => {
            fields.ignore(&["title", "source"]);
            reading.note_once("titles and sources of texts to cite are left out");
            let inner = fields.need("content")?.list()?;
            fields.finish(reading)?;
            return Ok(reading.each(inner, block)?.into_iter().flatten().collect());
        }
        "citation" => {
            fields.ignore_all();
            reading.note_once("citations, which quote documents, are left out");
            None
        }
        "cache" => {
            fields.ignore_all();
            None
        }
        _ => return Err(kind.unknown("is not a known block of LlamaIndex")),
    };
    fields.finish(reading)?;
    Ok(piece.into_iter().collect())
}

/// Creates a reasoning piece from a text and the provider's signature, if present.
fn sealed(text: String, information: &Fields<'_>) -> Result<Option<Piece>, Fault> {
    let encrypted = information.text("encrypted_content")?;
    let sealed = match (information.text("signature")?, encrypted) {
        (Some(signature), _) => Reasoning::signed(WireFormat::Anthropic, text, signature),
        (None, Some(encrypted)) => {
            let id = information.name("id")?;
            id.into_iter()
                .fold(Reasoning::signed(WireFormat::OpenAiResponses, text, encrypted), Reasoning::with_id)
        }
        (None, None) => return Ok(Piece::thought(text)),
    };
    Ok(Some(Piece::Thought(sealed)))
}

fn image(fields: &Fields<'_>) -> Result<Part, Fault> {
    fields.ignore(&["path"]);
    let url = match (fields.text("image")?, fields.text("url")?) {
        (Some(data), _) => {
            let data = base64(&data);
            let media_type = fields.text("image_mimetype")?;
            data_url(media_type.as_deref().unwrap_or_else(|| media::image_type(data)), data)
        }
        (None, Some(url)) => url,
        (None, None) => return Err(fields.node().fault("has no image; expected `image` or `url`")),
    };
    Ok(Part::Image { url, detail: fields.text("detail")?.filter(|detail| !detail.is_empty()) })
}

/// Reads a block with bytes or a URL.
fn file(fields: &Fields<'_>, key: &'static str, kind: &str, format: &'static str) -> Result<Piece, Fault> {
    fields.ignore(&["path", "detail", "fps"]);
    let media_type = fields.text(format)?.unwrap_or_default();
    let media_type = if media_type.contains('/') { media_type } else { format!("{kind}{media_type}") };
    let source = match (fields.text(key)?, fields.text("url")?) {
        (Some(data), _) => Source::Data(base64(&data).to_owned()),
        (None, Some(url)) => Source::Url(url),
        (None, None) => return Err(fields.node().fault(format!("has no bytes; expected `{key}` or `url`"))),
    };
    let part = media::known_part(&media_type, source, fields.text("title")?.as_deref());
    part.map(Piece::Part).ok_or_else(|| {
        fields.node().fault(format!("is a file of the type `{media_type}`, which is not read"))
    })
}

/// Returns base64 without the `b'...'` that Python writes around bytes.
fn base64(data: &str) -> &str {
    data.strip_prefix("b'").and_then(|data| data.strip_suffix('\'')).unwrap_or(data)
}
