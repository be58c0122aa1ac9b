//! What questions were sent with: documents before a question, state before the reply to it. Where the planner leaves them
//! where they were sent (rule S10), the next prompt repeats them byte for byte.

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
/// # let manager = ContextWindowManager::new(Model::custom("m"), TokenCounter::chars_per_4(), Config::default())?;
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
    /// Its id.
    pub id: ItemId,
    /// What was sent for it, with the lines around it: another version of this crate may word them otherwise.
    pub text: String,
}

impl SentText {
    /// What was sent for an item.
    #[must_use]
    pub fn new(id: impl Into<ItemId>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into() }
    }
}

/// What was sent beside messages, by the messages that it stood before. Looking something up costs what is found, not what was
/// ever sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentWith {
    /// Documents by the position of their question, or of the reply that they stood before.
    documents: Texts,
    /// State by the position of the reply that it stood right before.
    state: Texts,
}

/// Texts by position, and the positions of each id.
#[derive(Debug, Clone, Default)]
struct Texts {
    by_position: BTreeMap<u32, Vec<SentText>>,
    positions: BTreeMap<ItemId, BTreeSet<u32>>,
}

impl Texts {
    fn remember(&mut self, at: u32, texts: &[SentText]) {
        for sent in self.by_position.insert(at, texts.to_vec()).into_iter().flatten() {
            self.positions.entry(sent.id).or_default().remove(&at);
        }
        if texts.is_empty() {
            self.by_position.remove(&at);
        }
        for sent in texts {
            self.positions.entry(sent.id.clone()).or_default().insert(at);
        }
    }

    fn at(&self, position: u32) -> &[SentText] {
        self.by_position.get(&position).map_or(&[], Vec::as_slice)
    }

    /// Where a text of this id was sent, the newest first.
    fn of<'s>(&'s self, id: &'s ItemId) -> impl Iterator<Item = (u32, &'s SentText)> {
        let positions = self.positions.get(id).into_iter().flatten().rev();
        positions.filter_map(move |at| Some((*at, self.at(*at).iter().find(|sent| sent.id == *id)?)))
    }

    fn within(&self, positions: Range<u32>) -> impl Iterator<Item = (u32, &SentText)> {
        let end = positions.end.max(positions.start);
        self.by_position.range(positions.start..end).flat_map(|(at, sent)| sent.iter().map(|one| (*at, one)))
    }
}

impl SentWith {
    /// Remembers what a prompt held: what its documents stood before, and the position that its reply takes.
    pub(super) fn remember(
        &mut self,
        question: Option<u32>,
        reply: u32,
        documents: &[SentText],
        state: &[SentText],
    ) {
        if let Some(question) = question {
            // Until the first answer they are chosen anew with each prompt; after it they are more.
            let more = self.documents.at(question).iter().filter(|_| reply > question + 1);
            let more = more.filter(|sent| !documents.iter().any(|new| new.id == sent.id)).cloned();
            let all: Vec<SentText> = documents.iter().cloned().chain(more).collect();
            self.documents.remember(question, &all);
        }
        if !state.is_empty() {
            self.state.remember(reply, state);
        }
    }

    /// The documents that stand before a message, in the order in which they were sent.
    pub(crate) fn documents(&self, at: u32) -> &[SentText] {
        self.documents.at(at)
    }

    /// The state that was sent right before a reply.
    pub(crate) fn state(&self, reply: u32) -> &[SentText] {
        self.state.at(reply)
    }

    /// Where a document of this id was sent, the newest first.
    pub(crate) fn documents_of<'s>(&'s self, id: &'s ItemId) -> impl Iterator<Item = (u32, &'s SentText)> {
        self.documents.of(id)
    }

    /// Where state of this id was sent, the newest first.
    pub(crate) fn state_of<'s>(&'s self, id: &'s ItemId) -> impl Iterator<Item = (u32, &'s SentText)> {
        self.state.of(id)
    }

    /// Returns all documents, by the positions of the messages after them.
    pub(crate) fn all_documents(&self) -> impl Iterator<Item = (u32, &[SentText])> {
        self.documents.by_position.iter().map(|(at, sent)| (*at, sent.as_slice()))
    }

    /// Returns all state, each piece with the position of the reply after it.
    pub(crate) fn all_state(&self) -> impl Iterator<Item = (u32, &SentText)> {
        self.state.by_position.iter().flat_map(|(at, sent)| sent.iter().map(|one| (*at, one)))
    }

    /// What stands before the messages at these positions.
    pub(crate) fn within(&self, positions: Range<u32>) -> impl Iterator<Item = (u32, &SentText)> {
        self.documents.within(positions.clone()).chain(self.state.within(positions))
    }

    /// The position of the message that a document, or a piece of state by its row, stands before: of several, the newest.
    pub(crate) fn place_of(&self, id: &ItemId, document: bool) -> Option<u32> {
        if document && let Some((at, _)) = self.documents_of(id).next() {
            return Some(at);
        }
        let (name, reply) = id.as_str().rsplit_once('@')?;
        if document {
            let at = reply.split('#').next()?.parse().ok()?;
            return self.documents.at(at).iter().any(|sent| sent.id.as_str() == name).then_some(at);
        }
        let reply = reply.parse().ok()?;
        self.state.at(reply).iter().any(|sent| sent.id.as_str() == name).then_some(reply)
    }
}
