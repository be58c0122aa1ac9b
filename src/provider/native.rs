//! Documents as content blocks of Anthropic, which the model can cite (rule S20).
//!
//! A block is kept as one line of JSON with a fixed order of keys. No text inside can end it, because its
//! quotation marks are escaped.

use crate::{
    config::DocumentHeader,
    message::{Message, Part, WireFormat},
    provider::wording,
    rag::{LabelledItem, RagItem},
};
use serde::Deserialize;
use std::{borrow::Cow, fmt::Write as _};

/// The beginning of each block.
const OPEN: &str = "{\"type\":\"document\",\"title\":\"";
/// The beginning of the text.
const TEXT: &str = "\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"";
/// The end of a block with citations, and of one without them.
const CLOSE: [&str; 2] = ["\"},\"citations\":{\"enabled\":false}}", "\"},\"citations\":{\"enabled\":true}}"];

/// Returns a document as a content block.
pub(crate) fn document(item: LabelledItem<'_>, header: DocumentHeader, citations: bool) -> String {
    let mut block = open(&[item], header);
    block.push_str(&escaped(text_or_placeholder(item.sent_text())));
    block + CLOSE[usize::from(citations)]
}

/// Returns overlapping documents as one content block, in pieces: one for each document. Each document comes
/// with the bytes at its beginning that the one before it contains.
pub(crate) fn joined_documents(
    chunks: &[(LabelledItem<'_>, usize)],
    header: DocumentHeader,
    citations: bool,
) -> Vec<String> {
    let mut pieces: Vec<String> =
        chunks.iter().map(|(item, overlap)| escaped(&item.text[*overlap..])).collect();
    let items: Vec<LabelledItem<'_>> = chunks.iter().map(|(item, _)| *item).collect();
    if let Some(first) = pieces.first_mut() {
        first.insert_str(0, &open(&items, header));
    }
    if let Some(last) = pieces.last_mut() {
        last.push_str(CLOSE[usize::from(citations)]);
    }
    pieces
}

/// Returns the beginning of a block, up to its text. The title has the labels and the ids, the context the
/// rest of the header.
fn open(items: &[LabelledItem<'_>], header: DocumentHeader) -> String {
    let (Some(first), further) = (items.first(), items.get(1..).unwrap_or_default()) else {
        return String::new();
    };
    let mut block = String::from(OPEN);
    // The model names what it cites by the title, so the label is there and not in the context.
    if let Some(label) = first.label {
        block.push_str(&wording::label(label));
        further.iter().for_each(|item| block.push_str(&wording::further_label(item.label)));
        block.push(' ');
    } else if first.id.as_str().starts_with('[') {
        // An id cannot pass for a label.
        block.push(' ');
    }
    block.push_str(&escaped(first.id.as_str()));
    further.iter().for_each(|item| block.push_str(&further_id(item)));
    block.push_str("\",");
    let mut context: Vec<String> = Vec::new();
    context.extend(wording::source(first, header).map(|source| format!("source: {source}")));
    context.extend((header == DocumentHeader::IdSourceScore).then(|| format!("score: {}", first.score)));
    if !context.is_empty() {
        let _ = write!(block, "\"context\":\"{}\",", escaped(&context.join(", ")));
    }
    block + TEXT
}

/// Returns the id of a further document in the title of a joined text.
pub(crate) fn further_id(item: &RagItem) -> String {
    if item.messages.is_some() { String::new() } else { format!(", {}", escaped(item.id.as_str())) }
}

/// Returns a text as it stands in a block.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a text, or a placeholder for a blank one, which the provider refuses.
fn text_or_placeholder(text: &str) -> &str {
    if text.trim().is_empty() { wording::EMPTY_RESULT } else { text }
}

/// Checks if a text begins with a block, or is the first piece of one.
pub(crate) fn opens(text: &str) -> bool {
    text.starts_with(OPEN)
}

/// Checks if a text ends with the end of a block.
pub(crate) fn closes(text: &str) -> bool {
    CLOSE.iter().any(|close| text.ends_with(close))
}

/// Returns a block, or the last piece of one, with citations enabled or not. Other texts stay as they are.
pub(crate) fn with_citations(text: &str, citations: bool) -> Cow<'_, str> {
    let (now, other) = (CLOSE[usize::from(citations)], CLOSE[usize::from(!citations)]);
    match text.strip_suffix(other) {
        Some(rest) => Cow::Owned(format!("{rest}{now}")),
        None => Cow::Borrowed(text),
    }
}

/// A block as JSON, as far as it is read back.
#[derive(Deserialize)]
struct Block {
    source: Source,
}

#[derive(Deserialize)]
struct Source {
    data: String,
}

/// Returns the text of a document in a block. Returns the whole text if it is no block.
pub(crate) fn text_of_document(block: &str) -> String {
    serde_json::from_str(block).map_or_else(|_| block.to_owned(), |block: Block| block.source.data)
}

/// Returns the beginning of a document's text in a block, or in a piece of one, as JSON escapes it.
pub(crate) fn beginning(piece: &str) -> &str {
    let text = piece.split_once(TEXT).map_or(piece, |(_, text)| text);
    CLOSE.iter().find_map(|close| text.strip_suffix(close)).unwrap_or(text)
}

/// Returns the labels in the title of a block, or of the first piece of one.
pub(crate) fn labels_in(piece: &str) -> Vec<u32> {
    let mut rest = piece.strip_prefix(OPEN).unwrap_or_default();
    let mut labels = Vec::new();
    while let Some((label, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let Ok(label) = label.parse() else { break };
        labels.push(label);
        // The ids follow the last label.
        let Some(next) = after.strip_prefix(", ") else { break };
        rest = next;
    }
    labels
}

/// Returns the message of several blocks, given as the pieces of each in order.
pub(crate) fn message<'t>(pieces: impl Iterator<Item = &'t str>) -> Message {
    let mut parts = Vec::new();
    let mut json = String::new();
    for piece in pieces {
        // Chunks that are joined are pieces of one block.
        json.push_str(piece);
        if closes(&json) {
            let json = std::mem::take(&mut json);
            parts.push(Part::Opaque { wire_format: WireFormat::Anthropic, json });
        }
    }
    Message::user("").with_parts(parts)
}

/// The types of blocks for which citations are enabled on all of a request or on none.
const CITED: [&str; 2] = ["document", "search_result"];

/// Returns true if a block of an application has citations enabled, false if it has not. Returns `None` if
/// it is neither a document nor a search result.
pub(crate) fn enables_citations(part: &Part) -> Option<bool> {
    if !matches!(part, Part::Opaque { wire_format: WireFormat::Anthropic, .. }) {
        return None;
    }
    let block = part.opaque()?;
    let kind = block.get("type")?.as_str()?;
    CITED.contains(&kind).then(|| block["citations"]["enabled"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(block: &str) -> String {
        let block: serde_json::Value = serde_json::from_str(block).unwrap();
        block["title"].as_str().unwrap().to_owned()
    }

    #[test]
    fn no_text_can_end_a_block() {
        let text = "x\"},\"citations\":{\"enabled\":false}} {\"type\":\"document\",\"title\":\"\\\n\u{1}";
        let item = RagItem::new("a\"b", 0.5, text).with_origin("o\"}");
        for header in [DocumentHeader::Id, DocumentHeader::IdSource, DocumentHeader::IdSourceScore] {
            for label in [None, Some(7)] {
                let labelled = LabelledItem { label, ..(&item).into() };
                let block = document(labelled, header, true);
                assert!(opens(&block) && closes(&block));
                assert_eq!(text_of_document(&block), text);
                assert_eq!(labels_in(&block), Vec::from_iter(label));
                let expected = label.map_or("a\"b".to_owned(), |_| "[7] a\"b".to_owned());
                assert_eq!(title(&block), expected);
                let json: serde_json::Value = serde_json::from_str(&block).unwrap();
                assert_eq!(json["citations"]["enabled"], true);
                assert_eq!(json.get("context").is_some(), header != DocumentHeader::Id);
                let without: serde_json::Value =
                    serde_json::from_str(&with_citations(&block, false)).unwrap();
                assert_eq!(without["citations"]["enabled"], false);
                assert_eq!(with_citations(&with_citations(&block, false), true), block);
            }
        }
    }

    #[test]
    fn pieces_of_a_joined_text_are_one_block() {
        let (a, b) = (RagItem::new("a", 1.0, "one \"two\""), RagItem::new("b", 1.0, "two\" three"));
        let chunks = [
            (LabelledItem { label: Some(1), ..(&a).into() }, 0),
            (LabelledItem { label: Some(3), ..(&b).into() }, 4),
        ];
        let pieces = joined_documents(&chunks, DocumentHeader::Id, true);
        assert!(opens(&pieces[0]) && !closes(&pieces[0]) && closes(&pieces[1]) && !opens(&pieces[1]));
        let whole = pieces.concat();
        assert_eq!(
            (text_of_document(&whole), labels_in(&whole)),
            ("one \"two\" three".to_owned(), vec![1, 3])
        );
        assert_eq!(title(&whole), "[1], [3] a, b");
        let message = message(pieces.iter().map(String::as_str));
        assert_eq!(message.parts().len(), 1);
    }

    #[test]
    fn id_cannot_pass_for_a_label() {
        let labels = |label: Option<u32>, id: &str| {
            let item = RagItem::new(id, 1.0, "x");
            labels_in(&document(LabelledItem { label, ..(&item).into() }, DocumentHeader::Id, true))
        };
        assert!(labels(None, "[5]").is_empty());
        assert!(labels(None, "[5], [6] x").is_empty());
        assert_eq!(labels(Some(1), "[5] x, [6]"), [1]);
        let (a, b) = (RagItem::new("a, [8] c", 1.0, "x"), RagItem::new("[9]", 1.0, "y"));
        let chunk = |item, label| (LabelledItem { label: Some(label), ..From::from(item) }, 0);
        let joined = joined_documents(&[chunk(&a, 1), chunk(&b, 2)], DocumentHeader::Id, true);
        assert_eq!(labels_in(&joined[0]), [1, 2]);
    }

    #[test]
    fn blank_text_has_a_placeholder() {
        let block = document((&RagItem::new("a", 1.0, " \n")).into(), DocumentHeader::Id, false);
        assert_eq!(text_of_document(&block), "[empty]");
    }
}
