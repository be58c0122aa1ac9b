//! Conversion of files in other tools' messages to parts that a provider accepts.

use super::node::{Fault, Node};
use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use context_window::{Part, WireFormat};
use serde_json::json;

/// The location of a file's content.
#[derive(Debug)]
pub(crate) enum Source {
    /// The content itself, in base64.
    Data(String),
    /// A URL.
    Url(String),
    /// The id of a file stored by `OpenAI`.
    Id(String),
}

impl Source {
    /// Reads a text that may be a URL, a data URL or base64. Also returns the media type of a data URL.
    pub(crate) fn from_text(text: String) -> (Option<String>, Self) {
        let inline = text.strip_prefix("data:").and_then(|inside| inside.split_once(";base64,"));
        if let Some((media_type, data)) = inline {
            let media_type = media_type.split(';').next().unwrap_or_default().to_owned();
            return (Some(media_type).filter(|kind| !kind.is_empty()), Self::Data(data.to_owned()));
        }
        let is_address = ["http://", "https://", "data:", "s3://", "gs://", "file:"];
        if is_address.iter().any(|scheme| text.starts_with(scheme)) {
            return (None, Self::Url(text));
        }
        (None, Self::Data(text))
    }
}

/// Reads bytes in the JSON forms of common writers: base64, a list of numbers, `Buffer` and `Uint8Array` of
/// JavaScript, and the form of Strands Agents. Returns base64.
pub(crate) fn bytes(node: &Node<'_>) -> Result<String, Fault> {
    if node.is_text() {
        let text = node.text()?;
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(byte);
        return if text.as_bytes().iter().all(is_base64) {
            Ok(text)
        } else {
            Err(node.fault("is not base64; expected bytes as base64 or as numbers"))
        };
    }
    let value: serde_json::Value = serde_json::from_str(node.json()).map_err(|_| node.expected("bytes"))?;
    if let Some(data) = value.get("data").and_then(|data| data.as_str()) {
        return Ok(data.to_owned());
    }
    let list = value.get("data").unwrap_or(&value);
    let numbers: Option<Vec<u8>> = match list {
        serde_json::Value::Array(all) => all.iter().map(byte).collect(),
        // A `Uint8Array` is written as an object with its indexes as keys.
        serde_json::Value::Object(all) => (0..all.len()).map(|at| byte(all.get(&at.to_string())?)).collect(),
        _ => None,
    };
    numbers.map(|numbers| encoded(&numbers)).ok_or_else(|| node.expected("bytes as base64 or as numbers"))
}

fn byte(value: &serde_json::Value) -> Option<u8> {
    value.as_u64().and_then(|value| u8::try_from(value).ok())
}

/// Creates the part of a file whose type may be unknown. Returns `None` if no provider's form fits it.
pub(crate) fn known_part(media_type: &str, source: Source, name: Option<&str>) -> Option<Part> {
    // The data may be a data URL, whose media type is more exact.
    let (own_type, source) = match source {
        Source::Data(data) => Source::from_text(data),
        source => (None, source),
    };
    let media_type = own_type.as_deref().unwrap_or(media_type);
    let is_stream = media_type.starts_with("audio") || media_type.starts_with("video");
    if is_stream && matches!(source, Source::Url(_)) {
        return None;
    }
    part(&Node::root("null"), media_type, source, name.map(str::to_owned)).ok()
}

/// Creates the part of a file.
///
/// # Errors
///
/// Returns an error at the node for a file that no provider accepts in this form.
pub(crate) fn part(
    node: &Node<'_>,
    media_type: &str,
    source: Source,
    name: Option<String>,
) -> Result<Part, Fault> {
    let kind = media_type.split('/').next().unwrap_or_default();
    let opaque =
        |wire_format, json: serde_json::Value| Ok(Part::Opaque { wire_format, json: json.to_string() });
    match (kind, source) {
        // Each kind of file gets a wire format that can express it.
        ("image", Source::Data(data)) => {
            let named = Some(media_type).filter(|kind| kind.contains('/') && !kind.ends_with('*'));
            let media_type = named.unwrap_or_else(|| image_type(&data));
            Ok(Part::Image { url: format!("data:{media_type};base64,{data}"), detail: None })
        }
        ("image", Source::Url(url)) => Ok(Part::Image { url, detail: None }),
        (_, Source::Id(id)) => stored(node, "openai", &id, kind == "image"),
        // Every provider accepts text, so a text file is sent as a text part.
        ("text", Source::Data(data)) => {
            let text = decoded(&data).and_then(|bytes| String::from_utf8(bytes).ok());
            text.map(Part::Text).ok_or_else(|| node.fault("is a text file that is not UTF-8"))
        }
        ("audio", Source::Data(data)) if matches!(sound(media_type), "wav" | "mp3") => {
            let sound = json!({ "data": data, "format": sound(media_type) });
            opaque(WireFormat::OpenAiChat, json!({ "type": "input_audio", "input_audio": sound }))
        }
        ("audio" | "video", Source::Data(data)) => {
            opaque(WireFormat::Gemini, json!({ "inlineData": { "mimeType": media_type, "data": data } }))
        }
        (_, Source::Data(data)) => {
            let data = format!("data:{media_type};base64,{data}");
            let mut file = json!({ "file_data": data });
            if let Some(name) = name {
                file["filename"] = json!(name);
            }
            opaque(WireFormat::OpenAiChat, json!({ "type": "file", "file": file }))
        }
        (_, Source::Url(url)) if media_type == "application/pdf" && url.starts_with("http") => {
            let source = json!({ "type": "url", "url": url });
            opaque(WireFormat::Anthropic, json!({ "type": "document", "source": source }))
        }
        (_, Source::Url(url)) if !media_type.is_empty() => {
            opaque(WireFormat::Gemini, json!({ "fileData": { "mimeType": media_type, "fileUri": url } }))
        }
        (_, Source::Url(_)) => Err(node.fault("is a file of an unknown type; expected its media type")),
    }
}

fn sound(media_type: &str) -> &str {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mp3" | "audio/mpeg" => "mp3",
        _ => "",
    }
}

/// Creates the part of a file stored by a provider, from its id.
pub(crate) fn stored(node: &Node<'_>, provider: &str, id: &str, is_image: bool) -> Result<Part, Fault> {
    let (wire_format, json) = match provider {
        "anthropic" => {
            let kind = if is_image { "image" } else { "document" };
            (WireFormat::Anthropic, json!({ "type": kind, "source": { "type": "file", "file_id": id } }))
        }
        "google" | "vertex" => (WireFormat::Gemini, json!({ "fileData": { "fileUri": id } })),
        "openai" | "azure" => (WireFormat::OpenAiChat, json!({ "type": "file", "file": { "file_id": id } })),
        other => {
            let other = context_window::text::plain::short(other);
            return Err(node.fault(format!("is a file stored by `{other}`, to which no request can refer")));
        }
    };
    Ok(Part::Opaque { wire_format, json: json.to_string() })
}

/// Returns the media type of an image from its first bytes. The default is PNG.
pub(crate) fn image_type(data: &str) -> &'static str {
    // The first base64 characters encode the magic bytes of the image format.
    let kinds = [("/9j/", "image/jpeg"), ("R0lG", "image/gif"), ("UklG", "image/webp")];
    kinds.into_iter().find(|(begin, _)| data.starts_with(begin)).map_or("image/png", |(_, kind)| kind)
}

/// Returns bytes as base64.
fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes base64 in either alphabet, with or without padding. Returns `None` for any other text.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let standard = text.chars().filter(|c| !matches!(c, '\r' | '\n')).map(|c| match c {
        '-' => '+',
        '_' => '/',
        c => c,
    });
    let engine = GeneralPurpose::new(&alphabet::STANDARD, padding.with_decode_allow_trailing_bits(true));
    engine.decode(standard.collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_every_form() {
        let bytes = |json| super::bytes(&Node::root(json)).map_err(|fault| fault.detail);
        for json in [
            r#""aGk=""#,
            r#"{"type":"Buffer","data":[104,105]}"#,
            r#"{"0":104,"1":105}"#,
            "[104,105]",
            r#"{"__bytes_encoded__":true,"data":"aGk="}"#,
        ] {
            assert_eq!(bytes(json), Ok("aGk=".into()), "{json}");
        }
        assert!(bytes(r#""b'\\x89PNG'""#).is_err());
        assert!(bytes(r#"{"0":104,"2":105}"#).is_err());
        for text in ["", "a", "ab", "abc", "abcd"] {
            assert_eq!(decoded(&encoded(text.as_bytes())), Some(text.as_bytes().to_vec()));
        }
    }
}
