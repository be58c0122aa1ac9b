//! Documents and state entries that were sent with messages. Documents come before a user message, state
//! comes before the reply to it. If they are retained (rule S10), the next prompt repeats them byte for byte.

use crate::item::ItemId;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// A document or a state entry as it was sent.
///
/// ```
/// use context_window::{Config, ContextWindowManager, Conversation, Message, Model, RagItem, TokenCounter};
/// use context_window::conversation::SentText;
///
/// # fn main() -> Result<(), context_window::Error> {
/// # let counter = TokenCounter::chars_per_4();
/// # let manager = ContextWindowManager::new(Model::custom("m"), counter, Config::default())?;
/// let mut log = Conversation::from([Message::user("How long do refunds take?")]);
/// let sent: SentText = manager.sent_document(&RagItem::new("refunds", 0.9, "Refunds take 5 days."));
/// log.remember_documents("m0", [sent])?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SentText {
    /// Id of the item.
    pub id: ItemId,
    /// The sent text, including the delimiter lines around it. It is stored because another version of this
    /// crate may word these lines differently.
    pub text: String,
}

impl SentText {
    /// Creates the sent text of an item.
    #[must_use]
    pub fn new(id: impl Into<ItemId>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into() }
    }

    /// Returns the row id of a state entry that is retained before a reply.
    pub(crate) fn state_row(&self, reply: u32) -> ItemId {
        sent_state_row(&self.id, reply)
    }

    /// Returns the row id of a document that is retained before the message at `at` and is not the newest
    /// with its id. `same` is the number of documents with this id that precede it at the same place.
    pub(crate) fn document_row(&self, at: u32, same: usize) -> ItemId {
        match same {
            0 => ItemId::from(format!("{}@{at}", self.id)),
            _ => ItemId::from(format!("{}@{at}#{}", self.id, same + 1)),
        }
    }
}

/// Returns the row id of a state entry that is retained before a reply.
pub(crate) fn sent_state_row(id: &ItemId, reply: u32) -> ItemId {
    ItemId::from(format!("{id}@{reply}"))
}

/// Returns the row id of a state entry.
fn row_of_state(texts: &[SentText], index: usize, at: u32) -> ItemId {
    texts[index].state_row(at)
}

/// Returns the row id of a document that is not the newest with its id.
fn row_of_document(texts: &[SentText], index: usize, at: u32) -> ItemId {
    let same = texts[..index].iter().filter(|other| other.id == texts[index].id).count();
    texts[index].document_row(at, same)
}

/// Sent documents and state entries by the message that follows them. The time of a lookup depends on the
/// size of its result, not on the length of the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentWith {
    /// Documents by the position of the user message, or of the reply, that follows them.
    documents: Texts,
    /// State entries by the position of the reply that follows them.
    state: Texts,
}

/// Texts by position, with an index by id and one by row.
#[derive(Debug, Clone, Default)]
struct Texts {
    by_position: BTreeMap<u32, Vec<SentText>>,
    positions: BTreeMap<ItemId, BTreeSet<u32>>,
    /// The position and the index of each row. A lookup never parses a row id, because ids may contain `@`.
    rows: BTreeMap<ItemId, (u32, usize)>,
}

impl Texts {
    /// Replaces the texts at a position and updates both indexes. `row_of` returns the row id of one of the
    /// texts by its index.
    fn remember(&mut self, at: u32, texts: &[SentText], row_of: fn(&[SentText], usize, u32) -> ItemId) {
        let before = self.by_position.insert(at, texts.to_vec()).unwrap_or_default();
        // Old rows are removed before new ones are added, because both may have the same id.
        for (index, sent) in before.iter().enumerate() {
            self.rows.remove(&row_of(&before, index, at));
            self.positions.entry(sent.id.clone()).or_default().remove(&at);
        }
        if texts.is_empty() {
            self.by_position.remove(&at);
        }
        for (index, sent) in texts.iter().enumerate() {
            self.rows.insert(row_of(texts, index, at), (at, index));
            self.positions.entry(sent.id.clone()).or_default().insert(at);
        }
    }

    /// Returns the text of a row with the position of the message that follows it.
    fn row(&self, row: &ItemId) -> Option<(u32, &SentText)> {
        let (at, index) = *self.rows.get(row)?;
        Some((at, self.at(at).get(index)?))
    }

    fn at(&self, position: u32) -> &[SentText] {
        self.by_position.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Returns the texts with an id, newest first, each with the position of the message that follows it.
    fn with_id<'s>(&'s self, id: &'s ItemId) -> impl Iterator<Item = (u32, &'s SentText)> {
        let positions = self.positions.get(id).into_iter().flatten().rev();
        positions.filter_map(move |at| Some((*at, self.at(*at).iter().find(|sent| sent.id == *id)?)))
    }

    fn within(&self, positions: Range<u32>) -> impl Iterator<Item = (u32, &SentText)> {
        // `range` panics if the start is after the end.
        let end = positions.end.max(positions.start);
        self.by_position.range(positions.start..end).flat_map(|(at, sent)| sent.iter().map(|one| (*at, one)))
    }
}

impl SentWith {
    /// Remembers the documents and state entries of a prompt. `question` is the position of the message after
    /// the documents, `reply` the position of the reply.
    pub(super) fn remember(
        &mut self,
        question: Option<u32>,
        reply: u32,
        documents: &[SentText],
        state: &[SentText],
    ) {
        if let Some(question) = question {
            // Before the first answer, each prompt selects the documents again. After it, new documents are
            // added to the retained ones.
            let more = self.documents.at(question).iter().filter(|_| reply > question + 1);
            let more = more.filter(|sent| !documents.iter().any(|new| new.id == sent.id)).cloned();
            let all: Vec<SentText> = documents.iter().cloned().chain(more).collect();
            self.documents.remember(question, &all, row_of_document);
        }
        if !state.is_empty() {
            self.state.remember(reply, state, row_of_state);
        }
    }

    /// Returns the documents before a message, in sent order.
    pub(crate) fn documents(&self, at: u32) -> &[SentText] {
        self.documents.at(at)
    }

    /// Returns the state entries that were sent right before a reply.
    pub(crate) fn state(&self, reply: u32) -> &[SentText] {
        self.state.at(reply)
    }

    /// Returns the documents with an id, newest first, each with the position of the message that follows it.
    pub(crate) fn documents_with_id<'s>(
        &'s self,
        id: &'s ItemId,
    ) -> impl Iterator<Item = (u32, &'s SentText)> {
        self.documents.with_id(id)
    }

    /// Returns the state entries with an id, newest first, each with the position of the reply that follows
    /// it.
    pub(crate) fn state_with_id<'s>(&'s self, id: &'s ItemId) -> impl Iterator<Item = (u32, &'s SentText)> {
        self.state.with_id(id)
    }

    /// Returns all documents by the position of the message that follows them.
    pub(crate) fn all_documents(&self) -> impl Iterator<Item = (u32, &[SentText])> {
        self.documents.by_position.iter().map(|(at, sent)| (*at, sent.as_slice()))
    }

    /// Returns all state entries, each with the position of the reply that follows it.
    pub(crate) fn all_state(&self) -> impl Iterator<Item = (u32, &SentText)> {
        self.state.by_position.iter().flat_map(|(at, sent)| sent.iter().map(|one| (*at, one)))
    }

    /// Returns the documents and state entries before the messages in a range of positions.
    pub(crate) fn within(&self, positions: Range<u32>) -> impl Iterator<Item = (u32, &SentText)> {
        self.documents.within(positions.clone()).chain(self.state.within(positions))
    }

    /// Returns the position of the message after a document. The document is found by its id or row id. If
    /// several have this id, the newest is used.
    pub(crate) fn document_place(&self, id: &ItemId) -> Option<u32> {
        let newest = self.documents_with_id(id).next().map(|(at, _)| at);
        newest.or_else(|| self.documents.row(id).map(|(at, _)| at))
    }

    /// Returns the state entry of a row id with the position of the reply that follows it.
    pub(crate) fn state_at_row(&self, row: &ItemId) -> Option<(u32, &SentText)> {
        self.state.row(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_replaced_texts_are_forgotten() {
        let mut sent = SentWith::default();
        sent.remember(None, 3, &[], &[SentText::new("clock", "9:00")]);
        sent.remember(None, 3, &[], &[SentText::new("a@b", "open")]);
        assert!(sent.state_at_row(&"clock@3".into()).is_none());
        assert_eq!(
            sent.state_at_row(&"a@b@3".into()).map(|(at, text)| (at, text.id.as_str())),
            Some((3, "a@b"))
        );
    }
}
