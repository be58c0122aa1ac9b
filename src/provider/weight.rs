//! Token counts that stop at a limit.

/// Outcome of counting up to a limit: the count, or that it is over the limit. It is a function of text and
/// limit only, never of what was counted before (rule O3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Exactly(u64),
    Over,
}

impl Weight {
    /// Returns the count. Without a limit no text is over it.
    pub(crate) fn in_full(self) -> u64 {
        match self {
            Self::Exactly(n) => n,
            Self::Over => u64::MAX,
        }
    }
}

/// From a count within a limit.
impl From<Option<u64>> for Weight {
    fn from(within: Option<u64>) -> Self {
        within.map_or(Self::Over, Self::Exactly)
    }
}
