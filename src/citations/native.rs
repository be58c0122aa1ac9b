//! Citations that a provider writes beside the text of a reply, and the documents that they count.

use crate::message::{Component, Message, Part, WireFormat};
use serde::Deserialize;

/// A text of a reply with its citations.
#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    citations: Option<Vec<serde_json::Value>>,
}

/// A citation of a document.
#[derive(Deserialize)]
struct Location {
    document_index: u64,
    cited_text: String,
}

/// Returns the citations of documents in a reply: the number of each document, and the cited text. Citations
/// of search results have other numbers and are left out.
pub(super) fn find(reply: &Message) -> Vec<(u64, String)> {
    // Only the block as the provider wrote it has them.
    let texts = reply.components(WireFormat::Anthropic).into_iter().filter_map(|component| match component {
        Component::Text { json, .. } => json,
        _ => None,
    });
    let citations = texts.filter_map(|json| serde_json::from_str::<Text>(json).ok()?.citations).flatten();
    let locations = citations.filter_map(|citation| serde_json::from_value::<Location>(citation).ok());
    locations.map(|location| (location.document_index, location.cited_text)).collect()
}

/// Returns the JSON of a native document. Returns `None` for any other part.
pub(super) fn document_json(part: &Part) -> Option<&str> {
    let Part::Opaque { wire_format: WireFormat::Anthropic, json } = part else { return None };
    part.opaque().is_some_and(|block| block["type"] == "document").then_some(json)
}
