//! Documents as they are sent: as text between delimiters, or as native blocks. A conversation remembers the
//! text, of which either is made.

use super::{native, wording};
use crate::message::Message;
use std::sync::Arc;

/// The format in which the documents of a prompt are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentFormat {
    /// Text between delimiters.
    Text,
    /// Content blocks of the provider (rule S20).
    Native {
        /// True if the model may cite them.
        citations: bool,
    },
}

impl SentFormat {
    /// Returns true if native documents have citations, false if they have none. Returns `None` for text.
    pub(crate) fn citations(self) -> Option<bool> {
        match self {
            Self::Text => None,
            Self::Native { citations } => Some(citations),
        }
    }

    /// Returns the pieces of one document in this format.
    pub(crate) fn written(self, sent: &[&str]) -> Vec<String> {
        match self {
            // The remembered text is sent as it is.
            Self::Text => sent.iter().map(|piece| (*piece).to_owned()).collect(),
            Self::Native { citations } => native::pieces(sent, citations),
        }
    }
}

/// The block of documents in a prompt: its format, and the text of the application before the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockLayout {
    pub(crate) format: SentFormat,
    /// The text before the documents (rule S21).
    pub(crate) introduction: Option<Arc<str>>,
}

impl BlockLayout {
    /// The block of text between delimiters without a text before it.
    pub(crate) const PLAIN: Self = Self { format: SentFormat::Text, introduction: None };

    /// Returns the message of documents, given as the pieces of all in order.
    pub(crate) fn message(&self, sent: &[&str]) -> Message {
        let introduction = self.introduction.as_deref();
        match self.format {
            SentFormat::Text => {
                let pieces = sent.iter().copied();
                let mut block = wording::block_open(introduction);
                block.extend(pieces.chain([wording::BLOCK_CLOSE]));
                Message::user(block)
            }
            SentFormat::Native { .. } => {
                native::message(introduction, documents(sent).map(|one| self.format.written(one).concat()))
            }
        }
    }
}

/// Divides the pieces of documents by document. Chunks that are one text are pieces of one document.
pub(crate) fn documents<'s, 'p>(mut sent: &'s [&'p str]) -> impl Iterator<Item = &'s [&'p str]> {
    std::iter::from_fn(move || {
        // A piece that opens a document ends the one before, even if that has no end.
        let ends = |at: usize| {
            wording::closes_document(sent[at])
                || sent.get(at + 1).is_some_and(|next| wording::opens_document(next))
        };
        let length = (0..sent.len()).find(|at| ends(*at)).map_or(sent.len(), |last| last + 1);
        let (one, rest) = sent.split_at(length);
        sent = rest;
        (!one.is_empty()).then_some(one)
    })
}
