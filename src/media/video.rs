//! The duration of video, read from the header of an MP4 or MOV file.

use super::{base64::Base64, boxes, duration::Duration};

/// Bytes per second of video with an unknown header: 250 kbit/s, about the lowest usual rate.
const SLOWEST: u64 = 31_250;

/// Returns the duration of video, or an estimate from its size.
pub(super) fn duration(data: Base64<'_>) -> Duration {
    let known = boxes::seconds(data).map(Duration::read);
    known.unwrap_or_else(|| Duration::guessed(data.len(), SLOWEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use context_window_testing::media as samples;

    #[test]
    fn video_duration_comes_from_the_movie_header() {
        let last = |bytes: &[u8]| duration(Base64::new(&samples::base64(bytes)));
        assert_eq!(last(&samples::mp4(b"isom", 600, 7_200)), Duration::read(12));
        assert_eq!(last(&samples::mp4(b"isom", 0, 7_200)), Duration { seconds: 1, is_read: false });
        assert_eq!(last(&vec![0; 100_000]), Duration { seconds: 4, is_read: false });
        // A box with the maximum size.
        let mut endless = samples::mp4(b"isom", 600, 7_200);
        endless[..4].copy_from_slice(&1_u32.to_be_bytes());
        endless[8..16].copy_from_slice(&u64::MAX.to_be_bytes());
        assert!(!last(&endless).is_read);
    }
}
