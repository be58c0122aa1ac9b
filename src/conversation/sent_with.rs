//! What questions were sent with: documents before a question, state before the reply to it. Where the planner leaves them
//! where they were sent (rule S10), the next prompt repeats them byte for byte.

use crate::item::ItemId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A document or a piece of state as it was sent.
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

/// What was sent beside messages, by the messages that it stood before.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentWith {
    /// Documents by the position of their question.
    documents: BTreeMap<u32, Vec<SentText>>,
    /// State by the position of the reply that it stood right before.
    state: BTreeMap<u32, Vec<SentText>>,
}

impl SentWith {
    /// Remembers what a prompt held: its question, and the position that its reply takes.
    pub(super) fn remember(
        &mut self,
        question: Option<u32>,
        reply: u32,
        documents: &[SentText],
        state: &[SentText],
    ) {
        if let Some(question) = question.filter(|_| !documents.is_empty()) {
            self.documents.insert(question, documents.to_vec());
        }
        if !state.is_empty() {
            self.state.insert(reply, state.to_vec());
        }
    }

    /// The documents that a question was sent with, in the order in which they were sent.
    pub(crate) fn documents(&self, question: u32) -> &[SentText] {
        self.documents.get(&question).map_or(&[], Vec::as_slice)
    }

    /// The state that was sent right before a reply.
    pub(crate) fn state(&self, reply: u32) -> &[SentText] {
        self.state.get(&reply).map_or(&[], Vec::as_slice)
    }

    /// The position of the message that a document, or a piece of state by its row, stands before: of several, the newest.
    pub(crate) fn place_of(&self, id: &ItemId, document: bool) -> Option<u32> {
        if document {
            return self.all_documents().find(|(_, sent)| sent.id == *id).map(|(at, _)| at);
        }
        let (_, reply) = id.as_str().rsplit_once('@')?;
        reply.parse().ok().filter(|reply| self.state.contains_key(reply))
    }

    /// Every document with the position of its question, the newest question first.
    pub(crate) fn all_documents(&self) -> impl Iterator<Item = (u32, &SentText)> {
        self.documents.iter().rev().flat_map(|(question, sent)| sent.iter().map(|one| (*question, one)))
    }

    /// Every piece of state with the position of the reply, the newest reply first.
    pub(crate) fn all_state(&self) -> impl Iterator<Item = (u32, &SentText)> {
        self.state.iter().rev().flat_map(|(reply, sent)| sent.iter().map(|one| (*reply, one)))
    }
}
