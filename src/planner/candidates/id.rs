//! The id of a candidate inside of the planner: a number, no text.

use crate::conversation::{ExchangeIndex, Place, TurnIndex, index};
use std::hash::{Hash, Hasher};

index! {
    /// A document, counted in the order of rule S8.
    Rank
}

index! {
    /// A position in a list of candidates that are each in or out by themselves: documents that compete, or
    /// pinned notes.
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
    /// A summary, by its number among those that are sent.
    Summary(u32),
    /// The user message that opens a turn, with the results of its calls.
    UserMessage(TurnIndex),
    /// A message, or a call with its results.
    Exchange(ExchangeIndex),
    Document(Rank),
}

/// Kind and number as one word: planning looks each candidate up several times.
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
    /// Returns the candidate of a message of the conversation. Returns `None` if the message leads or is
    /// archived.
    pub(crate) fn from_place(place: Place) -> Option<Self> {
        match place {
            Place::Leading | Place::Archived => None,
            Place::Head(turn) => Some(Self::UserMessage(turn)),
            Place::Exchange(at) => Some(Self::Exchange(at)),
        }
    }
}
