//! The retrieved documents of a session: one list, or an object with several ranked lists.

use super::id::Id;
use crate::date::Date;
use context_window::{RagItem, RetrievedItems, Ttl};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use std::{fmt, ops::Range};

/// A retrieved document.
#[derive(Deserialize)]
#[serde(expecting = "a document: an object with id, text and score")]
pub(crate) struct Passage {
    id: Id,
    text: String,
    score: f64,
    source: Option<String>,
    ttl: Option<Ttl>,
    span: Option<Span>,
    position: Option<u64>,
    date: Option<Date>,
    messages: Option<Messages>,
    variants: Option<Vec<Variant>>,
    requires: Option<Vec<Id>>,
    group: Option<Id>,
}

/// A shorter text of a document.
#[derive(Deserialize)]
#[serde(expecting = "a variant: an object with name and text")]
struct Variant {
    name: String,
    text: String,
}

impl From<Passage> for RagItem {
    fn from(passage: Passage) -> Self {
        let mut item = Self::new(passage.id.into_text(), passage.score, passage.text);
        item.origin = passage.source.map(Into::into);
        item.ttl = passage.ttl;
        item.span = passage.span.map(|span| span.0);
        item.position = passage.position;
        item.date = passage.date.map(|date| date.0);
        item.messages = passage.messages.map(|messages| messages.0);
        item.requires = passage.requires.into_iter().flatten().map(|id| id.into_text().into()).collect();
        item.group = passage.group.map(|name| name.into_text().into());
        item.variants =
            passage.variants.into_iter().flatten().map(|one| (one.name.into(), one.text.into())).collect();
        item
    }
}

/// The start and the end of a text in its source.
#[derive(Deserialize)]
#[serde(try_from = "(u64, u64)")]
struct Span(Range<u64>);

impl TryFrom<(u64, u64)> for Span {
    type Error = &'static str;

    fn try_from((start, end): (u64, u64)) -> Result<Self, &'static str> {
        if start > end { Err("expected [start, end], with the start first") } else { Ok(Self(start..end)) }
    }
}

/// The positions of the messages that a recalled text quotes.
#[derive(Deserialize)]
#[serde(try_from = "(u32, u32)")]
struct Messages(Range<u32>);

impl TryFrom<(u32, u32)> for Messages {
    type Error = &'static str;

    fn try_from((start, end): (u32, u32)) -> Result<Self, &'static str> {
        if start <= end {
            Ok(Self(start..end))
        } else {
            Err("expected [start, end], with the position of the first message, and that after the last one")
        }
    }
}

/// The documents under one key: an array of them, or an object with an array for each list.
#[derive(Default)]
pub(crate) struct Passages {
    lists: Vec<(Option<String>, Vec<Passage>)>,
}

impl Passages {
    /// Checks if there are no documents.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.iter().all(|(_, list)| list.is_empty())
    }

    /// Converts the documents, with their lists in the order of the file.
    pub(crate) fn into_items(self) -> RetrievedItems {
        let mut items = RetrievedItems::default();
        for (name, list) in self.lists {
            // `with_list` extends a list of the same name, so a repeated key loses nothing.
            items = match name {
                Some(name) => items.with_list(name, list),
                None => list.into_iter().collect(),
            };
        }
        items
    }
}

/// Appends documents to others. Lists of the same name become one. Documents without a list are the list
/// `documents` if there are several.
pub(crate) fn extended(items: RetrievedItems, more: RetrievedItems) -> RetrievedItems {
    let is_list = |items: &RetrievedItems| items.list_names().next().is_some();
    match (is_list(&items), is_list(&more)) {
        // Without names there is nothing to rank apart, so the documents of both keys are one list.
        (false, false) => items.into_items().into_iter().chain(more.into_items()).collect(),
        (true, false) if more.is_empty() => items,
        (true, false) => items.with_list(UNNAMED, more.into_items()),
        (_, true) => more.lists().fold(items, |items, (name, list)| items.with_list(name, list)),
    }
}

/// The name of a list without one, as in [`RetrievedItems`].
const UNNAMED: &str = "documents";

impl<'de> Deserialize<'de> for Passages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PassagesVisitor)
    }
}

// A visitor and not an untagged enum, whose errors do not name the document.
struct PassagesVisitor;

impl<'de> Visitor<'de> for PassagesVisitor {
    type Value = Passages;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of documents, or an object with an array for each list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Passages, A::Error> {
        let mut passages = Vec::new();
        while let Some(passage) = list.next_element()? {
            passages.push(passage);
        }
        Ok(Passages { lists: vec![(None, passages)] })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Passages, A::Error> {
        let mut lists = Vec::new();
        while let Some((name, list)) = map.next_entry::<String, _>()? {
            lists.push((Some(name), list));
        }
        Ok(Passages { lists })
    }
}
