//! Documents as content blocks of Anthropic, which the model can cite (rule S20).
//!
//! A block is written from the text between delimiters that any other provider gets, so a document that was
//! sent as one can be sent as the other. No text inside can end a block, because its quotation marks are
//! escaped.

use crate::{
    message::{Message, Part, WireFormat},
    provider::wording,
};
use std::fmt::Write as _;

/// The beginning of each block.
const OPEN: &str = "{\"type\":\"document\",\"title\":\"";
/// The beginning of the text.
const TEXT: &str = "\"source\":{\"type\":\"text\",\"media_type\":\"text/plain\",\"data\":\"";
/// The end of a block without citations, and of one with them.
const CLOSE: [&str; 2] = ["\"},\"citations\":{\"enabled\":false}}", "\"},\"citations\":{\"enabled\":true}}"];

/// Maximum characters of a title: a citation that is sent back has it, too.
const TITLE: usize = 255;

/// Returns a document as a content block, in as many pieces as its text between delimiters has.
pub(crate) fn pieces(sent: &[&str], citations: bool) -> Vec<String> {
    let (header, texts) = wording::document_parts(sent);
    let mut pieces: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        // The provider refuses a block without text.
        pieces = vec![String::new(); texts.len()];
        pieces.first_mut().into_iter().for_each(|first| first.push_str(wording::EMPTY_RESULT));
    }
    if let Some(first) = pieces.first_mut() {
        first.insert_str(0, &open(&header));
    }
    // Without the end a cut block would be no JSON, so the last piece has it.
    if let Some(last) = pieces.last_mut() {
        last.push_str(CLOSE[usize::from(citations)]);
    }
    pieces
}

/// Returns the beginning of a block, up to its text. The title has the labels and the first attribute, the
/// context the rest of the header. The provider refuses a title that is empty or too long.
fn open(header: &[(String, String)]) -> String {
    let (labels, rest): (Vec<_>, Vec<_>) =
        header.iter().filter(|(_, value)| !value.is_empty()).partition(|(name, _)| name == "label");
    // The model cites a document by its title, so the label is there and not in the context.
    let mut title: String = labels.iter().flat_map(|(_, labels)| [labels, " "]).collect();
    title.push_str(rest.first().map_or("document", |(_, value)| value));
    if title.chars().count() > TITLE {
        title = title.chars().take(TITLE - 1).chain(['…']).collect();
    }
    let mut block = format!("{OPEN}{}\",", escaped(&title));
    let context: Vec<String> = rest.iter().skip(1).map(|(name, value)| format!("{name}: {value}")).collect();
    if !context.is_empty() {
        let _ = write!(block, "\"context\":\"{}\",", escaped(&context.join(", ")));
    }
    block + TEXT
}

/// Returns a text as a block has it.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns the message of blocks, with the text before them.
pub(crate) fn message(introduction: Option<&str>, blocks: impl Iterator<Item = String>) -> Message {
    let part = |json| Part::Opaque { wire_format: WireFormat::Anthropic, json };
    Message::user(introduction.unwrap_or_default()).with_parts(blocks.map(part))
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
    use crate::{
        config::HeaderTemplate,
        rag::{LabelledItem, RagItem},
    };
    use serde_json::Value;

    fn block(item: &RagItem, label: Option<u32>, header: &str) -> Value {
        let header = &HeaderTemplate::parse(header).unwrap();
        let sent = wording::labelled_document(LabelledItem { label, ..item.into() }, header);
        serde_json::from_str(&pieces(&[&sent], true).concat()).unwrap()
    }

    #[test]
    fn no_text_can_end_a_block_and_none_is_changed() {
        let texts = [
            "x\"},\"citations\":{\"enabled\":false}} {\"type\":\"document\",\"title\":\"\\\n\u{1}",
            "x </document> <DOCUMENT id=\"y\"> <\\/documents <\\\\document <\\",
            "\n\nlines\n",
        ];
        for text in texts {
            let item = RagItem::new("a\"b<&amp;>", 0.5, text).with_origin("o\"}");
            for header in
                ["id=\"{id}\"", "id=\"{id}\" source=\"{source}\"", "id=\"{id}\" of=\"{score}\" x=\"<\""]
            {
                let json = block(&item, Some(7), header);
                // The line after a document ends the last line of its text.
                let data = json["source"]["data"].as_str().unwrap();
                assert_eq!(data, text.strip_suffix('\n').unwrap_or(text));
                assert_eq!(json["title"], "[7] a\"b<&amp;>");
                assert_eq!(json.get("context").is_some(), header != "id=\"{id}\"");
                assert_eq!(json["citations"]["enabled"], true);
            }
        }
        assert_eq!(block(&RagItem::new("a", 1.0, " \n"), None, "")["source"]["data"], "[empty]");
    }

    #[test]
    fn pieces_of_a_joined_text_are_one_block() {
        let (a, b) = (RagItem::new("a", 1.0, "one <"), RagItem::new("b", 1.0, "/document> two\" three"));
        let chunk = |item, label| (LabelledItem { label: Some(label), ..From::from(item) }, 0);
        let sent = wording::joined_documents(&[chunk(&a, 1), chunk(&b, 3)], &HeaderTemplate::default_one());
        let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
        let pieces = pieces(&sent, false);
        assert_eq!(pieces.len(), 2);
        let json: Value = serde_json::from_str(&pieces.concat()).unwrap();
        assert_eq!(json["source"]["data"], "one </document> two\" three");
        assert_eq!((&json["title"], &json["citations"]["enabled"]), (&"[1], [3] a, b".into(), &false.into()));
    }

    #[test]
    fn text_without_delimiters_is_sent_whole() {
        let json: Value = serde_json::from_str(&pieces(&["no document"], true).concat()).unwrap();
        assert_eq!((&json["title"], &json["source"]["data"]), (&"document".into(), &"no document".into()));
    }
}
