//! Keys and parts that servers compatible with `OpenAI` Chat add: Mistral, `OpenRouter`, Cohere, Ollama.

use super::{
    content::Content,
    wire::{self, Role},
};
use context_window::{
    Message, Part, WireFormat,
    message::{PieceKind, Reasoning},
    render::{IMAGE_BESIDE_TEXT, is_inline_image, keep_as_written},
};
use serde::{Deserialize, de::IgnoredAny};

/// Returns the reasoning under a key of an assistant message. Returns `None` if the key holds no readable
/// reasoning.
pub(super) fn reasoning(key: &str, json: &str) -> Option<String> {
    let text = match key {
        // Ollama; vLLM and `OpenRouter`; Cohere.
        "thinking" | "reasoning" | "tool_plan" => serde_json::from_str(json).ok()?,
        "reasoning_details" => {
            let details: Vec<Detail> = serde_json::from_str(json).ok()?;
            let texts = details.into_iter().filter_map(|detail| detail.text.or(detail.summary));
            texts.collect::<Vec<String>>().join("\n\n")
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// A reasoning detail of `OpenRouter`. An encrypted one has neither field.
#[derive(Deserialize)]
struct Detail {
    text: Option<String>,
    summary: Option<String>,
}

/// A content part of Mistral or Cohere with reasoning.
#[derive(Deserialize)]
struct Chunk {
    r#type: String,
    thinking: Thinking,
    /// The signature of Anthropic, which has parts of this type too.
    signature: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Thinking {
    Parts(Vec<ChunkPart>),
    Text(String),
}

#[derive(Deserialize)]
struct ChunkPart {
    text: Option<String>,
}

/// Returns the reasoning in a content part. Returns `None` for another part, and for one without a text.
pub(super) fn thought(json: &str, unknown: WireFormat) -> Option<Reasoning> {
    let chunk: Chunk = serde_json::from_str(json).ok().filter(|chunk: &Chunk| chunk.r#type == "thinking")?;
    let text = match chunk.thinking {
        Thinking::Parts(parts) => {
            let texts = parts.into_iter().filter_map(|part| part.text);
            texts.collect::<Vec<String>>().join("\n\n")
        }
        Thinking::Text(text) if unknown == WireFormat::OpenAiChat && chunk.signature.is_none() => text,
        Thinking::Text(_) => return None,
    };
    let mut reasoning = Reasoning::text(text);
    reasoning.wire_format = Some(WireFormat::OpenAiChat);
    Some(reasoning).filter(|reasoning| !reasoning.text.trim().is_empty())
}

/// Returns the images of a user message outside its content (Ollama), as data URLs. Returns `None` if one of
/// them has a kind that other wire formats do not accept.
pub(super) fn images(wire: &wire::Message, json: &str) -> Option<Vec<String>> {
    let is_plain = wire.role == Role::User && !matches!(wire.content, Content::Parts(_));
    let images: Vec<String> = serde_json::from_str(json).ok().filter(|_| is_plain)?;
    let address = |data: String| {
        // The first base64 characters encode the magic bytes of the image format.
        let kinds = [("iVBOR", "png"), ("/9j/", "jpeg"), ("R0lG", "gif"), ("UklG", "webp")];
        let (_, kind) = kinds.into_iter().find(|(begin, _)| data.starts_with(begin))?;
        Some(format!("data:image/{kind};base64,{data}")).filter(|url| is_inline_image(url))
    };
    let images: Option<Vec<String>> = images.into_iter().map(address).collect();
    images.filter(|images| !images.is_empty())
}

/// Adds images to a message as parts, marked as images outside the content.
pub(super) fn with_images(message: Message, images: Vec<String>) -> Message {
    let text = (!message.text().is_empty()).then_some((PieceKind::Part, None));
    let image_pieces = images.iter().map(|_| (PieceKind::Part, Some(IMAGE_BESIDE_TEXT)));
    let pieces: Vec<_> = text.into_iter().chain(image_pieces).collect();
    let parts = images.into_iter().map(|url| Part::Image { url, detail: None });
    keep_as_written(message.with_parts(parts), WireFormat::OpenAiChat, &pieces)
}
