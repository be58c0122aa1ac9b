//! The duration of audio, read from the file header.

use super::{base64::Base64, boxes, duration::Duration};

/// Maximum number of skipped chunks of a WAV file. Real files have only a few.
const CHUNKS: usize = 64;

/// Bytes at the end of an Ogg file that contain its last page. This is the maximum size of a page.
const OGG_TAIL: u64 = 65_307;

/// Bytes per second of audio with an unknown header: 16 kbit/s, the lowest usual rate for speech.
const SLOWEST: u64 = 2_000;

/// Bytes per second of `pcm16` in `OpenAI` requests: 24,000 samples of two bytes.
const PCM16: u64 = 48_000;

/// Returns the duration of audio. `format` is its format name in the request.
pub(super) fn duration(data: Base64<'_>, format: &str) -> Duration {
    let head: [u8; 12] = data.head();
    let known = match &head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => wav(data),
        [b'f', b'L', b'a', b'C', ..] => flac(data),
        [b'O', b'g', b'g', b'S', ..] => ogg(data),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => boxes::seconds(data).map(Duration::read),
        _ if format == "pcm16" => Some(Duration::read(data.len().div_ceil(PCM16))),
        _ => mp3(data),
    };
    known.unwrap_or_else(|| Duration::guessed(data.len(), SLOWEST))
}

/// Returns the duration of a WAV file: the bytes of the data chunk divided by the byte rate. The header of a
/// streamed file may overstate the bytes, so they are limited by the file size.
fn wav(data: Base64<'_>) -> Option<Duration> {
    let (mut at, mut rate) = (12, None);
    for _ in 0..CHUNKS {
        let mut head = [0; 8];
        if data.read_at(at, &mut head) < head.len() {
            break;
        }
        let [a, b, c, d, size @ ..] = head;
        let (name, size, body) = ([a, b, c, d], u64::from(u32::from_le_bytes(size)), at + 8);
        if name == *b"fmt " {
            let mut format = [0; 12];
            data.read_at(body, &mut format);
            let [.., a, b, c, d] = format;
            rate = Some(u64::from(u32::from_le_bytes([a, b, c, d]))).filter(|rate| *rate > 0);
        }
        if name == *b"data" {
            let bytes = size.min(data.len().saturating_sub(body));
            return Some(Duration::read(bytes.div_ceil(rate?)));
        }
        // Chunks are padded to an even size.
        at = body.saturating_add(size).saturating_add(size % 2);
    }
    None
}

/// Returns the duration of a FLAC file by the number of samples in its first block.
fn flac(data: Base64<'_>) -> Option<Duration> {
    let mut info = [0; 18];
    if data.read_at(8, &mut info) < info.len() {
        return None;
    }
    // The layout of STREAMINFO: a 20-bit sample rate, and later a 36-bit number of samples.
    let rate = u64::from(info[10]) << 12 | u64::from(info[11]) << 4 | u64::from(info[12]) >> 4;
    let samples =
        info[14..18].iter().fold(u64::from(info[13] & 0x0F), |sum, byte| sum << 8 | u64::from(*byte));
    (rate > 0 && samples > 0).then(|| Duration::read(samples.div_ceil(rate)))
}

/// Returns the duration of an Ogg file by the sample position in its last page.
fn ogg(data: Base64<'_>) -> Option<Duration> {
    let head: [u8; 48] = data.head();
    let packet = &head[28..];
    let rate = if packet.starts_with(b"OpusHead") {
        48_000
    } else if packet.starts_with(b"\x01vorbis") {
        u64::from(u32::from_le_bytes([packet[12], packet[13], packet[14], packet[15]]))
    } else {
        return None;
    };
    let mut tail = vec![0; OGG_TAIL.min(data.len()) as usize];
    let read = data.read_at(data.len().saturating_sub(OGG_TAIL), &mut tail);
    let tail = &tail[..read];
    let at = memchr::memmem::rfind(tail, b"OggS")?;
    let position: [u8; 8] = tail.get(at + 6..at + 14)?.try_into().ok()?;
    let position = u64::from_le_bytes(position);
    (rate > 0).then(|| Duration::read(position.div_ceil(rate)))
}

/// Returns the duration of an MP3 file. Uses the number of frames that the encoder stored in the first frame,
/// or else the bitrate of that frame, which may vary later.
fn mp3(data: Base64<'_>) -> Option<Duration> {
    let head: [u8; 10] = data.head();
    let mut at = 0;
    if head.starts_with(b"ID3") {
        // The size of an ID3 tag has seven bits per byte.
        at = 10 + head[6..10].iter().fold(0, |size, byte| size << 7 | u64::from(byte & 0x7F));
    }
    let mut frame = [0; 64];
    data.read_at(at, &mut frame);
    let [0xFF, version, rates, channels, ..] = frame else { return None };
    let (newest, layer3) = (version & 0x18 == 0x18, version & 0x06 == 0x02);
    let (bitrate, rate) = (usize::from(rates >> 4), usize::from(rates >> 2 & 0x03));
    if version & 0xE0 != 0xE0
        || version & 0x18 == 0x08
        || !layer3
        || bitrate == 0
        || bitrate == 15
        || rate == 3
    {
        return None;
    }
    // Kilobits and samples per second by version. MPEG 2.5 has half the samples of MPEG 2.
    let kilobits = if newest {
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320][bitrate - 1]
    } else {
        [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160][bitrate - 1]
    };
    let halved = if newest {
        0
    } else if version & 0x18 == 0x10 {
        1
    } else {
        2
    };
    let (samples_a_second, samples_a_frame) =
        ([44_100, 48_000, 32_000][rate] >> halved, if newest { 1_152 } else { 576 });
    let bytes = data.len().saturating_sub(at);
    let mono = channels & 0xC0 == 0xC0;
    let note = 4 + match (newest, mono) {
        (true, false) => 32,
        (true, true) | (false, false) => 17,
        (false, true) => 9,
    };
    let noted = &frame[note..];
    if (noted.starts_with(b"Xing") || noted.starts_with(b"Info")) && noted[7] & 1 == 1 {
        let frames = u64::from(u32::from_be_bytes([noted[8], noted[9], noted[10], noted[11]]));
        // A frame has at least four bytes, so the file size limits a false number of frames.
        let frames = frames.min(bytes / 4);
        return Some(Duration::read((frames * samples_a_frame).div_ceil(samples_a_second)));
    }
    Some(Duration::guessed(bytes, kilobits * 125))
}

#[cfg(test)]
mod tests {
    use super::*;
    use context_window_testing::media as samples;

    fn seconds(bytes: &[u8]) -> Duration {
        duration(Base64::new(&samples::base64(bytes)), "")
    }

    #[test]
    fn wav_duration_is_that_of_its_data_not_its_header() {
        assert_eq!(seconds(&samples::wav(32_000, 96_000, 96_000)), Duration::read(3));
        // A streamed file: the length was unknown when the header was written.
        assert_eq!(seconds(&samples::wav(32_000, u32::MAX, 96_000)), Duration::read(3));
        assert!(!seconds(&samples::wav(0, 96_000, 96_000)).is_read);
    }

    #[test]
    fn mp3_duration_is_that_of_its_frames() {
        // 128 kbit/s, 44,100 Hz, stereo.
        let mut plain = vec![0xFF, 0xFB, 0x90, 0x00];
        plain.resize(160_000, 0);
        assert_eq!(seconds(&plain), Duration { seconds: 10, is_read: false });
        let mut noted = plain.clone();
        noted[36..44].copy_from_slice(b"Xing\0\0\0\x01");
        noted[44..48].copy_from_slice(&3_829_u32.to_be_bytes());
        assert_eq!(seconds(&noted), Duration::read(101));
        let tagged = [b"ID3\x04\0\0\0\0\x02\x00".as_slice(), &[0; 256], &noted].concat();
        assert_eq!(seconds(&tagged), Duration::read(101));
    }

    #[test]
    fn flac_ogg_and_m4a_durations_come_from_headers() {
        let mut flac = b"fLaC\0\0\0\x22".to_vec();
        flac.extend([0; 10]);
        // 44,100 Hz in 20 bits, then 441,001 samples in 36.
        flac.extend([0x0A, 0xC4, 0x40, 0, 0, 0x06, 0xBA, 0xA9]);
        assert_eq!(seconds(&flac), Duration::read(11));
        let page = |position: u64, packet: &[u8]| {
            [b"OggS\0\0".as_slice(), &position.to_le_bytes(), &[0; 14], packet].concat()
        };
        let ogg = [page(0, b"OpusHead\x01\x01            "), page(5 * 48_000 + 1, b"sound")].concat();
        assert_eq!(seconds(&ogg), Duration::read(6));
        assert_eq!(seconds(&samples::mp4(b"M4A ", 1_000, 12_500)), Duration::read(13));
    }

    #[test]
    fn duration_of_sound_without_a_header_is_bounded_by_its_bytes() {
        assert_eq!(seconds(&vec![7; 20_000]), Duration { seconds: 10, is_read: false });
        let pcm = samples::base64(&vec![7; 96_000]);
        assert_eq!(duration(Base64::new(&pcm), "pcm16"), Duration::read(2));
    }
}
