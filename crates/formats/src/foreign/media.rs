//! Images, sounds and files that tools keep each in a form of their own.

use super::talk::data_url;
use context_window::{Part, WireFormat};
use serde_json::{Value, json};

/// The place of the bytes of a file.
pub(super) enum Source {
    /// In the file, as base64 or a data URL.
    Data(String),
    /// At an address.
    Url(String),
    /// At the provider, by this id.
    Id(String),
}

/// Makes the part of a file by its media type, such as `image/png`. Returns `None` if no provider's form is
/// known to hold it.
pub(super) fn part(media_type: &str, source: Source, name: Option<&str>) -> Option<Part> {
    let (kind, format) = media_type.split_once('/').unwrap_or((media_type, ""));
    let file = |mut file: Value| {
        if let Some(name) = name {
            file["filename"] = json!(name);
        }
        chat(&json!({ "type": "file", "file": file }))
    };
    Some(match (kind, source) {
        ("image", Source::Data(data)) => image(data_of(media_type, data)),
        ("image", Source::Url(url)) => image(url),
        ("audio", Source::Data(data)) => {
            let data = data.split_once(";base64,").map_or(&*data, |(_, data)| data);
            let format = match format {
                "mpeg" | "mp3" => "mp3",
                "x-wav" | "wave" | "" => "wav",
                format => format,
            };
            chat(&json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }))
        }
        ("audio" | "video", _) => return None,
        (_, Source::Data(data)) => file(json!({ "file_data": data_of(media_type, data) })),
        (_, Source::Id(id)) => file(json!({ "file_id": id })),
        (_, Source::Url(url)) => Part::Opaque {
            wire_format: WireFormat::Anthropic,
            json: json!({ "type": "document", "source": { "type": "url", "url": url } }).to_string(),
        },
    })
}

/// Returns the media type of an image by the first letters of its base64.
pub(super) fn image_type(data: &str) -> &'static str {
    const STARTS: [(&str, &str); 3] =
        [("/9j/", "image/jpeg"), ("R0lG", "image/gif"), ("UklGR", "image/webp")];
    STARTS.iter().find(|(start, _)| data.starts_with(start)).map_or("image/png", |(_, kind)| kind)
}

fn image(url: String) -> Part {
    Part::Image { url, detail: None }
}

fn chat(json: &Value) -> Part {
    Part::Opaque { wire_format: WireFormat::OpenAiChat, json: json.to_string() }
}

fn data_of(media_type: &str, data: String) -> String {
    if data.starts_with("data:") { data } else { data_url(media_type, &data) }
}
