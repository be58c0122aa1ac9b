//! How long sound or video lasts.

/// Seconds that are counted at most: nine and a half hours, the longest sound that a provider takes (Gemini).
pub(super) const MOST_SECONDS: u64 = 34_200;

/// A duration, and whether the file states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duration {
    /// Begun seconds.
    pub(crate) seconds: u64,
    pub(crate) is_read: bool,
}

impl Duration {
    /// A duration that the file states.
    pub(super) fn read(seconds: u64) -> Self {
        Self { seconds: seconds.min(MOST_SECONDS), is_read: true }
    }

    /// A duration by the size of the file, at so many bytes a second.
    pub(super) fn guessed(bytes: u64, rate: u64) -> Self {
        Self { seconds: bytes.div_ceil(rate).clamp(1, MOST_SECONDS), is_read: false }
    }
}
