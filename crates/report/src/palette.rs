//! The sign and the colour of each kind of tokens, on every surface: each can be told from the others without colour.

use context_window::plan::Kind;

/// The sign of a kind, one column wide.
#[must_use]
pub fn sign(kind: &Kind) -> char {
    match kind {
        Kind::System => 'S',
        Kind::Tools => 'T',
        Kind::Pins => 'P',
        Kind::Summary => 'M',
        Kind::User => 'U',
        Kind::Assistant => 'A',
        Kind::Reasoning => 'R',
        Kind::ToolResults(_) => 'O',
        Kind::Documents(_) => 'D',
        Kind::State => 'V',
        Kind::Overhead => '+',
    }
}

/// The name of a kind's colour in the style of a page.
#[cfg(feature = "html")]
pub(super) fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::System => "system",
        Kind::Tools => "tools",
        Kind::Pins => "pins",
        Kind::Summary => "summary",
        Kind::User => "user",
        Kind::Assistant => "assistant",
        Kind::Reasoning => "reasoning",
        Kind::ToolResults(_) => "results",
        Kind::Documents(_) => "documents",
        Kind::State => "state",
        Kind::Overhead => "overhead",
    }
}

/// The sign of what is free.
pub const FREE: char = '·';

/// The sign of what is kept for the reply.
pub const REPLY: char = '░';

/// The colour of a kind among the 16 of a terminal. None is red: that is for what is wrong.
#[must_use]
pub fn colour(kind: &Kind) -> u8 {
    match kind {
        Kind::System => 5,
        Kind::Tools => 6,
        Kind::Pins => 13,
        Kind::Summary => 12,
        Kind::User => 2,
        Kind::Assistant => 4,
        Kind::Reasoning => 14,
        Kind::ToolResults(_) => 3,
        Kind::Documents(_) => 10,
        Kind::State => 11,
        Kind::Overhead => 8,
    }
}
