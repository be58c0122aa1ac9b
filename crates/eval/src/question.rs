//! Questions with the evidence for their answers.

use crate::words::Words;
use context_window::ItemId;

/// A question to a session, with the messages and documents that its answer needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// The text of the question. It is sent as the next user message.
    pub text: String,
    /// The kind of the question, as its author classified it.
    pub kind: Option<String>,
    /// The number of messages before the question. Later messages are not in its prompt.
    pub messages_before: usize,
    /// True if the question is the last user message of the session itself.
    pub is_in_session: bool,
    pub(crate) evidence: Vec<Evidence>,
}

impl Question {
    /// Returns the ids of the evidence: messages and documents.
    pub fn evidence(&self) -> impl Iterator<Item = &ItemId> {
        self.evidence.iter().map(|evidence| &evidence.id)
    }
}

/// One piece of evidence.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) id: ItemId,
    /// The position of a message.
    pub(crate) position: Option<u32>,
    pub(crate) is_document: bool,
    pub(crate) words: Words,
}
