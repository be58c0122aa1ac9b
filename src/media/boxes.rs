//! The duration of an MP4 file, stored in its movie header (ISO/IEC 14496-12).

use super::base64::Base64;

/// Maximum number of skipped boxes. A fragmented file has one box per second after its movie box.
const BOXES: usize = 256;

/// Returns the duration in seconds, rounded up, or `None` if the file has no movie header.
pub(super) fn seconds(data: Base64<'_>) -> Option<u64> {
    let movie = find(data, 0, data.len(), *b"moov")?;
    let header = find(data, movie.0, movie.1, *b"mvhd")?;
    let mut body = [0; 32];
    if data.read_at(header.0, &mut body) < 20 {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    // Version 1 of the header has 64-bit times.
    let (scale, length) = if body[0] == 1 {
        (word(20), u64::from(word(24)) << 32 | u64::from(word(28)))
    } else {
        (word(12), u64::from(word(16)))
    };
    (scale > 0 && length > 0).then(|| length.div_ceil(u64::from(scale)))
}

/// Returns the start and the end of a box's body, or `None` if there is no such box.
fn find(data: Base64<'_>, mut at: u64, end: u64, name: [u8; 4]) -> Option<(u64, u64)> {
    for _ in 0..BOXES {
        let mut head = [0; 16];
        if at >= end || data.read_at(at, &mut head) < 8 {
            return None;
        }
        let short = u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        let long = head[8..].iter().fold(0, |size, byte| size << 8 | u64::from(*byte));
        // A size of 0 means up to the end of the file; a size of 1 means that a 64-bit size follows.
        let (start, size) = match short {
            0 => (8, end - at),
            1 => (16, long),
            size => (8, size),
        };
        let next = at.checked_add(size).filter(|_| size >= start)?;
        if head[4..8] == name {
            return Some((at + start, next.min(end)));
        }
        at = next;
    }
    None
}
