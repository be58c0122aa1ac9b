//! Ids of candidates inside the planner.
//!
//! - Input: positions in the conversation and in the request.
//! - Output: [`CandidateId`], a kind with a number.
//! - Rules: none. An id holds no text, so decisions on ids cannot depend on texts.

use crate::conversation::{ExchangeIndex, Place, TurnIndex, index};
use std::hash::{Hash, Hasher};

index! {
    /// A document, numbered in the order of selection (rules S5, S8).
    Rank
}

index! {
    /// An index in a list of candidates that are each included or excluded by themselves: competing
    /// documents, or pinned notes.
    Slot
}

/// A candidate of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CandidateId {
    /// A system text, or a leading system message.
    System(u32),
    Focus,
    State(u32),
    /// A pinned note, by its number among the notes of the conversation.
    Note(u32),
    /// A summary, by its number among the summaries that are sent.
    Summary(u32),
    /// The user message of a turn, with the results of its calls.
    UserMessage(TurnIndex),
    /// A message, or a call with its results.
    Exchange(ExchangeIndex),
    Document(Rank),
}

/// Hashes kind and number as one word, because planning looks each candidate up several times.
impl Hash for CandidateId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (kind, number) = match *self {
            Self::System(at) => (0, at),
            Self::Focus => (1, 0),
            Self::State(at) => (2, at),
            Self::Note(at) => (3, at),
            Self::Summary(at) => (4, at),
            Self::UserMessage(turn) => (5, turn.number()),
            Self::Exchange(at) => (6, at.number()),
            Self::Document(rank) => (7, rank.number()),
        };
        state.write_u64(kind << 32 | u64::from(number));
    }
}

impl CandidateId {
    /// Returns the candidate of a message of the conversation. Returns `None` if the message leads the
    /// conversation or is archived.
    pub(crate) fn from_place(place: Place) -> Option<Self> {
        match place {
            Place::Leading | Place::Archived => None,
            Place::UserMessage(turn) => Some(Self::UserMessage(turn)),
            Place::Exchange(at) => Some(Self::Exchange(at)),
        }
    }
}
