//! The form of indexed messages in a file.
//!
//! - Input and output: checksum and pieces of each message, with the words of each piece.
//! - Rules: numbers are little-endian groups of seven bits. A word is its number in the order of first
//!   occurrence; its first occurrence has its letters.

use crate::postings::Postings;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use smol_str::SmolStr;

/// The size in bytes from which the next message begins another frame.
const FRAME: usize = 1 << 18;

/// The marks of a message.
const HAS_SUM: u8 = 1;
const IS_CLOSED: u8 = 2;

/// The words with their postings.
type Words = IndexMap<SmolStr, Postings, RandomState>;

/// The end of a piece in bytes, and its words with their counts.
type PieceWords = (u32, Vec<(u32, u32)>);

/// Messages in the form of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer {
    /// The content of frames.
    pub(crate) frames: Vec<Vec<u8>>,
    /// The number of words whose letters were written.
    pub(crate) words: usize,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn message(&mut self, sum: Option<u64>, is_closed: bool) {
        if self.frames.last().is_none_or(|frame| frame.len() >= FRAME) {
            self.frames.push(Vec::new());
        }
        self.bytes(&[sum.map_or(0, |_| HAS_SUM) | if is_closed { IS_CLOSED } else { 0 }]);
        if let Some(sum) = sum {
            self.bytes(&sum.to_le_bytes());
        }
    }

    pub(crate) fn pieces(&mut self, pieces: &[PieceWords], words: &Words) {
        self.number(pieces.len() as u32);
        let mut start = 0;
        for (end, counts) in pieces {
            self.number(end - start);
            start = *end;
            self.number(counts.len() as u32);
            let mut before = 0;
            for (word, count) in counts {
                self.number(word - before);
                before = *word;
                if *word as usize == self.words {
                    let letters = words.get_index(*word as usize).map_or("", |(letters, _)| letters);
                    self.number(letters.len() as u32);
                    self.bytes(letters.as_bytes());
                    self.words += 1;
                }
                self.number(*count);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if let Some(frame) = self.frames.last_mut() {
            frame.extend_from_slice(bytes);
        }
    }

    fn number(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.bytes(&[number as u8 | 0x80]);
            number >>= 7;
        }
        self.bytes(&[number as u8]);
    }
}

/// A reader of messages, from bytes that may be anything.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the checksum of the next message, and the mark that a passage ends before it.
    pub(crate) fn message(&mut self) -> Option<(Option<u64>, bool)> {
        let marks = self.bytes(1)?[0];
        if marks & !(HAS_SUM | IS_CLOSED) != 0 {
            return None;
        }
        let sum = if marks & HAS_SUM != 0 {
            Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
        } else {
            None
        };
        Some((sum, marks & IS_CLOSED != 0))
    }

    /// Reads the pieces of a message. Adds new words.
    pub(crate) fn pieces(&mut self, words: &mut Words) -> Option<Vec<PieceWords>> {
        let mut pieces = Vec::new();
        let mut start = 0u32;
        for _ in 0..self.number()? {
            let end = start.checked_add(self.number()?)?;
            start = end;
            let mut counts = Vec::new();
            let mut before = 0u32;
            for nth in 0..self.number()? {
                let word = before.checked_add(self.number()?)?;
                // The words of a piece are in order, each once.
                if nth > 0 && word == before {
                    return None;
                }
                before = word;
                if word as usize == words.len() {
                    let length = self.number()?;
                    let letters = str::from_utf8(self.bytes(length as usize)?).ok()?;
                    // The same letters would have two numbers.
                    if words.insert(letters.into(), Postings::empty()).is_some() {
                        return None;
                    }
                }
                if word as usize >= words.len() {
                    return None;
                }
                let count = self.number().filter(|count| *count > 0)?;
                counts.push((word, count));
            }
            pieces.push((end, counts));
        }
        Some(pieces)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.bytes(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number.try_into().ok();
            }
        }
        None
    }
}
