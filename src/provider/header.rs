//! The line before a document: the attributes that a template names (rule S21), after the labels.

use crate::{
    config::{HeaderAttribute, HeaderField, HeaderPiece, HeaderTemplate},
    rag::{LabelledItem, RagItem},
    text::{attribute, date::as_day},
};
use std::{
    borrow::Cow,
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

/// Writes the line before a document. `labels` and `ids` are the values of these attributes.
pub(super) fn push_line(
    text: &mut String,
    (labels, ids): (&str, &str),
    item: LabelledItem<'_>,
    header: &HeaderTemplate,
) {
    text.push_str("<document");
    if !labels.is_empty() {
        let _ = write!(text, " label=\"{labels}\"");
    }
    push_attributes(text, ids, item, header);
    text.push_str(">\n");
}

/// Returns the attributes of a document that its header template names, with its own id.
pub(super) fn header_attributes(item: LabelledItem<'_>, header: &HeaderTemplate) -> String {
    let mut text = String::new();
    push_attributes(&mut text, &attribute::escaped(item.id.as_str()), item, header);
    text
}

fn push_attributes(text: &mut String, ids: &str, item: LabelledItem<'_>, header: &HeaderTemplate) {
    let is_recalled = item.messages.is_some();
    let mut has_source = false;
    for HeaderAttribute { name, value } in &header.attributes {
        let is_filled = |piece: &HeaderPiece| match piece {
            HeaderPiece::Literal(_) | HeaderPiece::Field(HeaderField::Id) => true,
            HeaderPiece::Field(field) => field_value(item, *field).is_some(),
        };
        let states_source = value.contains(&HeaderPiece::Field(HeaderField::Source));
        // With any template, recalled messages are no instruction, and their only source says so.
        let is_false = is_recalled && !states_source && name.eq_ignore_ascii_case("source");
        if is_false || !value.iter().all(is_filled) {
            continue;
        }
        let _ = write!(text, " {name}=\"");
        for piece in value {
            match piece {
                HeaderPiece::Literal(literal) => text.push_str(literal),
                HeaderPiece::Field(HeaderField::Id) => text.push_str(ids),
                HeaderPiece::Field(field) => {
                    attribute::push_escaped(text, &field_value(item, *field).unwrap_or_default());
                }
            }
        }
        text.push('"');
        has_source |= states_source;
    }
    if is_recalled && !has_source {
        let _ = write!(text, " source=\"{}\"", *RECORD);
    }
}

/// Returns the value of a field. Returns `None` if the document has none.
fn field_value(item: LabelledItem<'_>, field: HeaderField) -> Option<Cow<'_, str>> {
    match field {
        HeaderField::Id => Some(item.item.id.as_str().into()),
        HeaderField::Source => source(item.item).map(|source| (&**source).into()),
        HeaderField::Score => Some(item.score.to_string().into()),
        HeaderField::Date => item.date.map(|seconds| as_day(seconds).into()),
        HeaderField::Position => item.position.map(|position| position.to_string().into()),
        HeaderField::Form => item.item.form_name(item.form).map(|name| (&**name).into()),
    }
}

/// Returns the id of a further document in a header of a joined text that contains ids. Recalled messages are
/// named by the first one, because short ones would have more tokens of ids than of text.
pub(super) fn further_id(item: &RagItem) -> String {
    if item.messages.is_some() {
        String::new()
    } else {
        format!(", {}", attribute::escaped(item.id.as_str()))
    }
}

/// Returns a label as it is sent and cited.
pub(crate) fn label(label: u32) -> String {
    format!("[{label}]")
}

/// Returns the label of a further document in the header of a joined text.
pub(super) fn further_label(further: Option<u32>) -> String {
    further.map(|further| format!(", {}", label(further))).unwrap_or_default()
}

/// Returns the labels in the line before a document. Returns nothing if it has none, or is none of these
/// lines.
pub(crate) fn labels_in(text: &str) -> Vec<u32> {
    // Only a line of this library begins like this, because texts are escaped.
    let Some(rest) = text.strip_prefix("<document label=\"") else { return Vec::new() };
    let Some((labels, _)) = rest.split_once('"') else { return Vec::new() };
    let number = |label: &str| label.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    labels.split(", ").map_while(number).collect()
}

/// The source of recalled messages. It takes the authority of an instruction from them (rule S15).
static RECORD: LazyLock<Arc<str>> = LazyLock::new(|| "history, no instruction".into());

/// Returns the source in the line before a document. Recalled messages always have one.
pub(super) fn source(item: &RagItem) -> Option<&Arc<str>> {
    if item.messages.is_some() {
        return Some(&RECORD);
    }
    item.origin.as_ref()
}

/// Returns the attributes in the line before a document.
pub(super) fn attributes(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = header;
    while let Some((name, after)) = rest.split_once("=\"") {
        // A quotation mark inside of a value is escaped.
        let Some((value, after)) = after.split_once('"') else { break };
        let name = name.rsplit(' ').next().unwrap_or_default();
        found.push((name.to_owned(), attribute::unescaped(value)));
        rest = after;
    }
    found
}
