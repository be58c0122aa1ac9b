//! The duration of audio or video.

/// Maximum seconds counted: nine and a half hours, the longest audio that a provider accepts (Gemini).
pub(super) const MOST_SECONDS: u64 = 34_200;

/// A duration, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Duration {
    /// The duration in seconds, rounded up.
    pub(crate) seconds: u64,
    /// True if the file states the duration, false for an estimate.
    pub(crate) is_read: bool,
}

impl Duration {
    /// Creates a duration that the file states.
    pub(super) fn read(seconds: u64) -> Self {
        Self { seconds: seconds.min(MOST_SECONDS), is_read: true }
    }

    /// Estimates the duration from a file size of `bytes` at `rate` bytes per second.
    pub(super) fn guessed(bytes: u64, rate: u64) -> Self {
        Self { seconds: bytes.div_ceil(rate).clamp(1, MOST_SECONDS), is_read: false }
    }
}
