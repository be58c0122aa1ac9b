//! The role of a message.

use crate::name::by_name;
use serde::{Deserialize, Serialize};

/// The role of a message: its speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Instructions of the application.
    System,
    /// Instructions of the application, under the name that newer `OpenAI` models use.
    Developer,
    /// The person who asks.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

by_name!(Role, "role", [System, Developer, User, Assistant, Tool]);

impl Role {
    /// Returns the role's name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Returns true if the role gives instructions: system or developer.
    #[must_use]
    pub fn instructs(self) -> bool {
        matches!(self, Self::System | Self::Developer)
    }
}
