//! The data of media in the JSON of parts, in the forms of all supported providers.

use super::{Detail, may_hold, shown};
use crate::text::size;
use serde_json::{Map, Value};

/// The data of one medium, or a reference to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    /// The base64 data. `None` for an address or an id.
    pub(super) data: Option<String>,
    /// The media type, format or file name. Empty if it is unknown.
    pub(super) format: String,
    /// The kind named by the type of the part.
    named: Option<Kind>,
    pub(super) detail: Detail,
}

/// The kind of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Image,
    Document,
    Audio,
    Video,
    /// A document of plain text, which is counted as text.
    Text,
}

/// Types of parts with a medium under `source` (Anthropic).
const WITH_SOURCE: [(&str, Kind); 4] =
    [("image", Kind::Image), ("document", Kind::Document), ("audio", Kind::Audio), ("video", Kind::Video)];

/// Keys of an address or data URL, with the part types in which they occur.
const WITH_ADDRESS: [(&str, &[&str], Kind); 4] = [
    ("image_url", &["image_url", "input_image", "computer_screenshot"], Kind::Image),
    ("video_url", &["video_url"], Kind::Video),
    ("audio_url", &["audio_url"], Kind::Audio),
    ("document_url", &["document_url"], Kind::Document),
];

type Object = Map<String, Value>;

/// Removes the data of all media from a JSON text. Returns the remaining JSON and the data, or `None` if
/// there are no media.
pub(super) fn split(json: &str) -> Option<(Value, Vec<Payload>)> {
    if !may_hold(json) {
        return None;
    }
    let mut value = size::tree(json)?;
    let mut payloads = Vec::new();
    extract_within(&mut value, true, &mut payloads);
    (!payloads.is_empty()).then_some((value, payloads))
}

/// Returns the text that counts in addition to the media of a part: visible texts of a single medium, or the
/// JSON around several.
pub(super) fn beside(value: &Value) -> String {
    if is_bare(value) {
        let mut texts = Vec::new();
        shown(value, &mut texts);
        texts.join("\n")
    } else {
        value.to_string()
    }
}

/// Marks a part that was itself a medium. The NUL byte keeps it apart from real keys.
const TAKEN: &str = "\0taken";

fn is_bare(value: &Value) -> bool {
    value.get(TAKEN).is_some()
}

/// Removes the data of all media from a value at any depth. The recursion is safe, because parsed JSON has at
/// most 127 levels.
fn extract_within(value: &mut Value, is_top: bool, payloads: &mut Vec<Payload>) {
    match value {
        Value::Object(object) => {
            if let Some(payload) = extract_payload(object) {
                payloads.push(payload);
                if is_top {
                    object.insert(TAKEN.into(), Value::Null);
                }
            }
            for value in object.values_mut() {
                extract_within(value, false, payloads);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| extract_within(value, false, payloads)),
        _ => {}
    }
}

/// Removes the data of an object that is a medium. Returns `None` if it is not.
fn extract_payload(object: &mut Object) -> Option<Payload> {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let payload = gemini(object)
        .or_else(|| source(object, &kind))
        .or_else(|| address(object, &kind))
        .or_else(|| file(object, &kind))
        .or_else(|| audio(object, &kind))
        .or_else(|| plain(object, &kind))?;
    Some(payload.without_head())
}

/// Reads `inlineData` and `fileData` of Gemini, in both spellings.
fn gemini(object: &mut Object) -> Option<Payload> {
    let level = ["mediaResolution", "media_resolution"].iter().find_map(|key| object.get(*key)).cloned();
    let level = level.as_ref().map(|level| level.get("level").unwrap_or(level));
    let detail = Detail::from_text(level.and_then(Value::as_str));
    let format = |inner: &Object| {
        let format = ["mimeType", "mime_type"].iter().find_map(|key| inner.get(*key));
        format.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    for key in ["inlineData", "inline_data"] {
        let Some(Value::Object(inner)) = object.get_mut(key) else { continue };
        let Some(data) = text(inner, "data") else { continue };
        let format = format(inner);
        object.shift_remove(key);
        return Some(Payload { data: Some(data), format, named: None, detail });
    }
    for key in ["fileData", "file_data"] {
        let Some(Value::Object(inner)) = object.get_mut(key) else { continue };
        let format = format(inner);
        object.shift_remove(key);
        // An address without a media type refers to an external video.
        let named = format.is_empty().then_some(Kind::Video);
        return Some(Payload { data: None, format, named, detail });
    }
    None
}

/// Reads an Anthropic block with a `source`, or a Bedrock Converse block with `bytes` in it.
fn source(object: &mut Object, kind: &str) -> Option<Payload> {
    let named = WITH_SOURCE.iter().find(|(known, _)| *known == kind).map(|(_, kind)| *kind);
    let outer = object.get("format").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Object(inner)) = object.get_mut("source") else { return None };
    let (data, format) = match (inner.get("type").and_then(Value::as_str), &outer) {
        (Some("base64"), _) if named.is_some() => {
            let format = text(inner, "media_type").unwrap_or_default();
            (Some(text(inner, "data")?), format)
        }
        (Some("url" | "file"), _) if named.is_some() => (None, String::new()),
        (None, Some(format)) => (Some(text(inner, "bytes")?), format.clone()),
        _ => return None,
    };
    object.shift_remove("source");
    Some(Payload { data, format, named, detail: Detail::Auto })
}

/// Reads an address in a string or an object, or the id of an uploaded image.
fn address(object: &mut Object, kind: &str) -> Option<Payload> {
    let (key, _, named) = WITH_ADDRESS.iter().find(|(_, kinds, _)| kinds.contains(&kind))?;
    let own = object.get("detail").and_then(Value::as_str).map(str::to_owned);
    let (address, inner) = match object.get_mut(*key) {
        Some(Value::String(_)) => (text(object, key), None),
        Some(Value::Object(inner)) => {
            let detail = inner.get("detail").and_then(Value::as_str).map(str::to_owned);
            (text(inner, "url"), detail)
        }
        _ => (None, None),
    };
    if address.is_none() && !object.contains_key("file_id") {
        return None;
    }
    object.shift_remove(*key);
    let detail = Detail::from_text(own.or(inner).as_deref());
    let data = address.filter(|address| address.starts_with("data:"));
    Some(Payload { data, format: String::new(), named: Some(*named), detail })
}

/// Reads a file of Chat or Responses, or an image generated by a model.
fn file(object: &mut Object, kind: &str) -> Option<Payload> {
    let detail = Detail::from_text(object.get("detail").and_then(Value::as_str));
    let fields = match kind {
        "file" => match object.get_mut("file") {
            Some(Value::Object(inner)) => inner,
            _ => return None,
        },
        "input_file" => object,
        "image_generation_call" => {
            let data = Some(text(object, "result")?);
            return Some(Payload { data, format: String::new(), named: Some(Kind::Image), detail });
        }
        _ => return None,
    };
    let format = fields.get("filename").and_then(Value::as_str).unwrap_or_default().to_owned();
    let data = text(fields, "file_data");
    let has_reference = ["file_id", "file_url"].iter().any(|key| fields.contains_key(*key));
    (data.is_some() || has_reference).then_some(Payload { data, format, named: None, detail })
}

/// Reads audio of Chat.
fn audio(object: &mut Object, kind: &str) -> Option<Payload> {
    if kind != "input_audio" {
        return None;
    }
    let (data, format) = match object.get_mut(kind)? {
        Value::Object(inner) => (text(inner, "data")?, text(inner, "format").unwrap_or_default()),
        Value::String(_) => (text(object, kind)?, String::new()),
        _ => return None,
    };
    object.shift_remove(kind);
    let is_address = ["http://", "https://"].iter().any(|scheme| data.starts_with(scheme));
    let data = Some(data).filter(|_| !is_address);
    Some(Payload { data, format, named: Some(Kind::Audio), detail: Detail::Auto })
}

/// Reads content of an MCP server, which has `data` and a media type.
fn plain(object: &mut Object, kind: &str) -> Option<Payload> {
    let (_, named) = WITH_SOURCE.iter().find(|(known, _)| *known == kind)?;
    let format = ["mimeType", "mime_type", "media_type"].iter().find_map(|key| object.get(*key));
    let format = format.and_then(Value::as_str)?.to_owned();
    let data = Some(text(object, "data")?);
    Some(Payload { data, format, named: Some(*named), detail: Detail::Auto })
}

/// Removes a string from an object.
fn text(object: &mut Object, key: &str) -> Option<String> {
    if !object.get(key)?.is_string() {
        return None;
    }
    match object.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

impl Payload {
    /// Removes the head of a data URL, and takes the media type from it.
    fn without_head(mut self) -> Self {
        let Some(data) = &mut self.data else { return self };
        if let Some((head, _)) = data.strip_prefix("data:").and_then(|url| url.split_once(',')) {
            let (format, length) = (head.split(';').next().unwrap_or_default().to_owned(), head.len());
            data.drain(..length + "data:,".len());
            self.format = format;
        }
        self
    }

    /// Returns the kind by the media type, else the file name, else the first bytes, else the kind named by
    /// the part.
    pub(super) fn kind(&self, head: &[u8]) -> Kind {
        let format = self.format.to_ascii_lowercase();
        let ending = format.rsplit('.').next().unwrap_or_default();
        let by_type = match format.split_once('/') {
            Some(("image", _)) => Some(Kind::Image),
            Some(("audio", _)) => Some(Kind::Audio),
            Some(("video", _)) => Some(Kind::Video),
            Some(("text", _)) => Some(Kind::Text),
            _ => None,
        };
        let by_name = match ending {
            "application/pdf" | "pdf" => Some(Kind::Document),
            "application/json" | "application/xml" | "txt" | "md" | "csv" | "json" | "xml" | "html" => {
                Some(Kind::Text)
            }
            "png" | "jpeg" | "jpg" | "gif" | "webp" => Some(Kind::Image),
            _ => None,
        };
        by_type.or(by_name).or_else(|| kind_by_magic_bytes(head)).or(self.named).unwrap_or(Kind::Document)
    }
}

/// Returns the kind of a file by its first bytes.
fn kind_by_magic_bytes(head: &[u8]) -> Option<Kind> {
    match head {
        [b'%', b'P', b'D', b'F', ..] => Some(Kind::Document),
        [0x89, b'P', b'N', b'G', ..] | [0xFF, 0xD8, 0xFF, ..] | [b'G', b'I', b'F', b'8', ..] => {
            Some(Kind::Image)
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some(Kind::Image),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => Some(Kind::Audio),
        [b'I', b'D', b'3', ..] | [b'O', b'g', b'g', b'S', ..] | [b'f', b'L', b'a', b'C', ..] => {
            Some(Kind::Audio)
        }
        _ => None,
    }
}
