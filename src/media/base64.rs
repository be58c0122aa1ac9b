//! Base64 with random access, so that reading a header decodes only the header.

use std::io::{self, Read, Seek, SeekFrom};

/// Base64 data in the standard or the URL alphabet. It ends at the first character outside of both alphabets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base64<'t> {
    text: &'t [u8],
}

/// Marks a character outside of both alphabets.
const FOREIGN: u8 = 0xFF;

/// The six-bit value of each character.
const BITS: [u8; 256] = {
    let mut bits = [FOREIGN; 256];
    let mut at = 0;
    while at < 64 {
        let character = match at {
            0..26 => b'A' + at,
            26..52 => b'a' + at - 26,
            52..62 => b'0' + at - 52,
            62 => b'+',
            _ => b'/',
        };
        bits[character as usize] = at;
        at += 1;
    }
    bits[b'-' as usize] = 62;
    bits[b'_' as usize] = 63;
    bits
};

impl<'t> Base64<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text: text.trim().trim_end_matches('=').as_bytes() }
    }

    /// Returns the number of bytes, computed from the length of the text.
    pub(super) fn len(self) -> u64 {
        let characters = self.text.len() as u64;
        characters / 4 * 3 + (characters % 4).saturating_sub(1)
    }

    /// Decodes bytes from an offset on into `buffer`. Returns the number of decoded bytes.
    pub(super) fn read_at(self, offset: u64, buffer: &mut [u8]) -> usize {
        // Four characters encode three bytes, so decoding starts at the group of the offset.
        let Ok(group) = usize::try_from(offset / 3) else { return 0 };
        let skipped = (offset % 3) as usize;
        let from = group.saturating_mul(4).min(self.text.len());
        let mut bytes = decoded(self.text[from..].iter().copied()).skip(skipped);
        let mut read = 0;
        for place in buffer {
            let Some(byte) = bytes.next() else { break };
            *place = byte;
            read += 1;
        }
        read
    }

    /// Decodes the first `N` bytes. Missing bytes are zero.
    pub(super) fn head<const N: usize>(self) -> [u8; N] {
        let mut bytes = [0; N];
        self.read_at(0, &mut bytes);
        bytes
    }

    /// Decodes up to `most` bytes. Skips line breaks.
    pub(super) fn to_vec(self, most: u64) -> Vec<u8> {
        let most = usize::try_from(most.min(self.len())).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(most);
        bytes
            .extend(decoded(self.text.iter().copied().filter(|byte| !byte.is_ascii_whitespace())).take(most));
        bytes
    }

    /// Returns a reader that fails after decoding `work` bytes in total.
    pub(super) fn reader(self, work: u64) -> Base64Reader<'t> {
        Base64Reader { data: self, at: 0, work }
    }
}

/// Decodes characters up to the end or the first foreign character. The iterator must not be polled after it
/// returned `None`.
fn decoded(mut characters: impl Iterator<Item = u8>) -> impl Iterator<Item = u8> {
    let (mut bits, mut known) = (0_u32, 0_u32);
    std::iter::from_fn(move || {
        while known < 8 {
            let six = BITS[usize::from(characters.next()?)];
            if six == FOREIGN {
                return None;
            }
            bits = bits << 6 | u32::from(six);
            known += 6;
        }
        known -= 8;
        Some((bits >> known) as u8)
    })
}

/// A reader of base64 as a seekable file with a limited amount of work.
#[derive(Debug)]
pub(super) struct Base64Reader<'t> {
    data: Base64<'t>,
    at: u64,
    work: u64,
}

impl Read for Base64Reader<'_> {
    // Charged before the read, by the size of the buffer, so that a loop of seeks and reads ends too.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(left) = self.work.checked_sub(buffer.len() as u64) else {
            return Err(io::Error::other("the header is too long"));
        };
        self.work = left;
        let read = self.data.read_at(self.at, buffer);
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Seek for Base64Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.data.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_reads_the_same_bytes() {
        let text = "JVBERi0xLjQKAP8Q";
        let whole = Base64::new(text).to_vec(u64::MAX);
        assert_eq!(whole, b"%PDF-1.4\n\x00\xFF\x10");
        for offset in 0..whole.len() + 2 {
            let mut buffer = [0; 20];
            let read = Base64::new(text).read_at(offset as u64, &mut buffer);
            assert_eq!(&buffer[..read], whole.get(offset..).unwrap_or_default(), "{offset}");
        }
    }

    #[test]
    fn padding_line_breaks_and_foreign_characters() {
        let bytes = |text: &str| Base64::new(text).to_vec(u64::MAX);
        assert_eq!(bytes("YQ=="), b"a");
        assert_eq!(bytes("YW\nJj\r\n"), b"abc");
        assert_eq!(bytes("YWJj*YWJj"), b"abc");
        assert_eq!(bytes("-_-_"), bytes("+/+/"));
        assert_eq!((Base64::new("YQ==").len(), Base64::new("YWI=").len(), Base64::new("").len()), (1, 2, 0));
        assert_eq!(Base64::new("YWJj").to_vec(2), b"ab");
    }

    #[test]
    fn a_reader_stops_at_its_bound() {
        let mut reader = Base64::new("YWJjYWJj").reader(4);
        let mut buffer = [0; 3];
        assert_eq!(reader.read(&mut buffer).unwrap(), 3);
        assert!(reader.read(&mut buffer).is_err());
    }
}
