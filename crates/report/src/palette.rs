//! The sign and the colour of each kind of tokens. All reports use them, and the signs alone distinguish the
//! kinds without colour.

use context_window::plan::Kind;

/// Returns the sign of a kind. It is one column wide.
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

/// Returns the name of a kind's colour in the style sheet of a web page.
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

/// The sign of free tokens.
pub const FREE: char = '·';

/// The sign of the reply reserve.
pub const REPLY: char = '░';

/// Returns the colour of a kind as a number of the 16 terminal colours. No kind is red, which is reserved for
/// errors.
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
