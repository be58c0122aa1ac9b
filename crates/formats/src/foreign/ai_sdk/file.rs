//! Images and files of the AI SDK.

use super::super::{
    media::{self, Source},
    node::{Fault, Fields, Node},
};
use context_window::Part;

/// Reads a file. Its data is under the first of `keys` that is present.
pub(super) fn part(fields: &Fields<'_>, keys: &[&'static str], is_image: bool) -> Result<Part, Fault> {
    let media_type = fields.first(&["mediaType", "mimeType", "contentType"]);
    let media_type = media_type.map(|kind| kind.text()).transpose()?.unwrap_or_default();
    let name = fields.first(&["filename", "name"]).map(|name| name.text()).transpose()?;
    fields.ignore(&["providerMetadata", "providerOptions", "experimental_providerMetadata"]);
    let is_image = is_image || media_type == "image" || media_type.starts_with("image/");
    if let Some(reference) = fields.first(&["providerReference", "fileId"]) {
        fields.ignore(keys);
        return stored(&reference, is_image);
    }
    let data = fields.first(keys).ok_or_else(|| fields.node().fault("is a file without data"))?;
    data_part(&data, &media_type, name, is_image)
}

/// Reads the data of a file: a string or bytes, or since version 7 an object with either.
fn data_part(node: &Node<'_>, media_type: &str, name: Option<String>, is_image: bool) -> Result<Part, Fault> {
    let tagged = if node.is_object() { Some(node.object()?) } else { None };
    let tag = tagged.as_ref().map(|fields| fields.text("type")).transpose().ok().flatten().flatten();
    let (told, source) = match (tag.as_deref(), &tagged) {
        (Some("data"), Some(fields)) => {
            let data = fields.need("data")?;
            if data.is_text() {
                Source::from_text(data.text()?)
            } else {
                (None, Source::Data(media::bytes(&data)?))
            }
        }
        (Some("url"), Some(fields)) => Source::from_text(fields.need("url")?.text()?),
        (Some("reference"), Some(fields)) => return stored(&fields.need("reference")?, is_image),
        (Some("text"), Some(fields)) => return Ok(Part::Text(fields.need("text")?.text()?)),
        _ if node.is_text() => Source::from_text(node.text()?),
        _ => match media::bytes(node) {
            Ok(data) => (None, Source::Data(data)),
            // A bare reference is an object from names of providers to ids.
            Err(_) if tag.is_none() && tagged.is_some() => return stored(node, is_image),
            Err(fault) => return Err(fault),
        },
    };
    if let Source::Data(data) = &source {
        // Decoding checks the data before it becomes part of a message.
        media::decoded(data).ok_or_else(|| node.fault("is not base64; expected the data of a file"))?;
    }
    let media_type = match (media_type, told) {
        ("", None) if is_image || is_image_address(&source) => "image".to_owned(),
        ("", Some(told)) => told,
        // A media type without a subtype is less exact than the type of the data URL.
        (kind, Some(told)) if !kind.contains('/') && told.starts_with(kind) => told,
        (kind, _) => kind.to_owned(),
    };
    media::part(node, &media_type, source, name)
}

fn is_image_address(source: &Source) -> bool {
    let Source::Url(url) = source else { return false };
    let path = url.split(['?', '#']).next().unwrap_or_default().to_lowercase();
    [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|end| path.ends_with(end))
}

/// Reads the ids that providers use for a stored file. Returns the first part that a request can name.
fn stored(node: &Node<'_>, is_image: bool) -> Result<Part, Fault> {
    if node.is_text() {
        return media::stored(node, "openai", &node.text()?, is_image);
    }
    let mut first = None;
    for (provider, id) in node.object()?.entries() {
        match media::stored(node, provider, &id.text()?, is_image) {
            Ok(part) => return Ok(part),
            Err(fault) => drop(first.get_or_insert(fault)),
        }
    }
    Err(first.unwrap_or_else(|| node.expected("ids by provider")))
}
