//! Numbers of tokens with their certainty.

use serde::Serialize;

/// The certainty of a number of tokens (certainty of counts, rule N4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Certainty {
    /// The exact number.
    Exact,
    /// A lower bound: counting stopped at a limit, and the number is this one or more.
    AtLeast,
    /// An upper bound: the number is this one or less.
    UpperBound,
    /// An estimate without any proven bound.
    Estimate,
}

impl Certainty {
    /// Returns the name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at_least",
            Self::UpperBound => "upper_bound",
            Self::Estimate => "estimate",
        }
    }
}

/// A number of tokens with its certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct TokenCount {
    /// The number of tokens.
    #[serde(rename = "n")]
    pub tokens: u64,
    /// The certainty of the number.
    pub certainty: Certainty,
}

/// The result of counting up to a limit: the count, or `Over`. It depends only on the text and the limit,
/// never on earlier counts (determinism, rule O3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Exactly(u64),
    Over,
}

impl Weight {
    /// Returns the count, or `None` if it is over the limit.
    pub(crate) fn within(self) -> Option<u64> {
        match self {
            Self::Exactly(n) => Some(n),
            Self::Over => None,
        }
    }
}
