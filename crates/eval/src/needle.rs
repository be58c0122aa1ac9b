//! The kinds and places of needles.

use serde::{Deserialize, Serialize};

/// The kind of a needle: its content and its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NeedleKind {
    /// A fact that the user states.
    UserFact,
    /// A fact in a reply.
    ReplyFact,
    /// A fact in a tool result.
    ToolFact,
    /// A lasting instruction of the user.
    Instruction,
}

/// The place of a needle among the messages before the first compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedlePlace {
    /// Before the first message.
    First,
    /// In the middle.
    Middle,
    /// After the last message.
    Last,
}

impl NeedleKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::UserFact, Self::ReplyFact, Self::ToolFact, Self::Instruction];

    /// Returns the name of the kind.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UserFact => "user fact",
            Self::ReplyFact => "reply fact",
            Self::ToolFact => "tool fact",
            Self::Instruction => "instruction",
        }
    }
}

impl NeedlePlace {
    /// All places.
    pub const ALL: [Self; 3] = [Self::First, Self::Middle, Self::Last];

    /// Returns the name of the place.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Middle => "middle",
            Self::Last => "last",
        }
    }
}
