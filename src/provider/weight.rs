//! Token counts that stop at a limit.

/// The result of counting up to a limit: the count, or `Over`. It depends only on the text and the limit,
/// never on earlier counts (determinism, rule O3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Exactly(u64),
    Over,
}

impl Weight {
    /// Returns the count, or `u64::MAX` if it is over the limit. A count without a limit is never over it.
    pub(crate) fn in_full(self) -> u64 {
        match self {
            Self::Exactly(n) => n,
            Self::Over => u64::MAX,
        }
    }
}

/// Converts a count that is `None` if it is over the limit.
impl From<Option<u64>> for Weight {
    fn from(within: Option<u64>) -> Self {
        within.map_or(Self::Over, Self::Exactly)
    }
}
