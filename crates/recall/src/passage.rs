//! Passages, the texts that are ranked and that come back.
//!
//! - Input: messages in their order, each cut into pieces.
//! - Output: passages of neighbouring pieces.
//! - Rules: a message of up to 600 words is one piece. A longer one is cut into pieces of up to 400 words at
//!   the ends of paragraphs and sentences. A passage has the next piece too while both have up to 120 words,
//!   so that short turns come back with the turns around them, and a long reply alone.

use std::ops::Range;

/// The maximum words of a message that is not cut.
pub(crate) const LONGEST_PIECE: u32 = 600;

/// The maximum words of the pieces of a longer message.
const CUT: usize = 400;

/// The maximum words of a passage of several pieces.
const PASSAGE: u32 = 120;

/// A place in the conversation: the position of a message, and a byte offset in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) message: u32,
    pub(crate) byte: u32,
}

/// Neighbouring pieces of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) start: Place,
    /// The message of the last piece, and the end of that piece.
    pub(crate) end: Place,
    /// The offset of the start in the texts of all messages.
    pub(crate) offset: u64,
    /// The words of its longest message.
    longest: u16,
    /// The words of the last message so far.
    last: u16,
}

/// A piece of a message with its number of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) message: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) words: u32,
}

impl Passage {
    pub(crate) fn new(piece: Piece, offset: u64) -> Self {
        let words = piece.words as u16;
        Self {
            start: Place { message: piece.message, byte: piece.start },
            end: Place { message: piece.message, byte: piece.end },
            offset,
            longest: words,
            last: words,
        }
    }

    /// Checks if a passage of `words` words may have a piece of `more` words too.
    pub(crate) fn has_room(words: u32, more: u32) -> bool {
        words + more <= PASSAGE
    }

    /// Adds a piece. Both have at most [`PASSAGE`] words.
    pub(crate) fn extend(&mut self, piece: Piece) {
        let words = piece.words as u16;
        self.last = if piece.message == self.end.message { self.last + words } else { words };
        self.longest = self.longest.max(self.last);
        self.end = Place { message: piece.message, byte: piece.end };
    }

    /// Returns the positions of its messages.
    pub(crate) fn messages(&self) -> Range<usize> {
        self.start.message as usize..self.end.message as usize + 1
    }

    /// Returns the share of its words outside of its longest message, in 1024ths. It is 0 for a message that
    /// is a passage alone: such a message says by itself what it is about, and short turns do so with their
    /// neighbours.
    pub(crate) fn dialogue(&self, words: u32) -> u64 {
        1_024 - 1_024 * u64::from(self.longest) / u64::from(words.max(1))
    }
}

/// Returns the ends of the pieces of a text, in bytes. A text without words has none. `ends` has the ends of
/// the words.
pub(crate) fn pieces(text: &str, ends: &[u32]) -> Vec<u32> {
    if ends.is_empty() {
        return Vec::new();
    }
    let mut pieces = Vec::new();
    if ends.len() > LONGEST_PIECE as usize {
        let borders = borders(text);
        let mut first = 0;
        while ends.len() - first > CUT {
            let limit = ends[first + CUT - 1];
            // A piece has at least half of the words, so that a list of short lines is not cut at its
            // heading.
            let fewest = ends[first + CUT / 2 - 1];
            let border = borders.partition_point(|border| *border <= limit);
            let end = border.checked_sub(1).map(|at| borders[at]).filter(|border| *border >= fewest);
            let end = end.unwrap_or(limit);
            pieces.push(end);
            first = ends.partition_point(|word| *word <= end);
        }
    }
    if pieces.last() != Some(&(text.len() as u32)) {
        pieces.push(text.len() as u32);
    }
    pieces
}

/// Returns the byte offsets after the ends of lines and sentences.
fn borders(text: &str) -> Vec<u32> {
    let mut borders = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let ends_sentence = matches!(before, '.' | '!' | '?' | '…' | '؟') && c.is_whitespace() && c != '\n';
        if c == '\n' || ends_sentence || matches!(c, '。' | '！' | '？') {
            borders.push((at + c.len_utf8()) as u32);
        }
        before = c;
    }
    borders
}

#[cfg(test)]
mod tests {
    use crate::words::each_word;

    fn pieces(text: &str) -> Vec<u32> {
        let mut ends = Vec::new();
        each_word(text, |_, end| ends.push(end as u32));
        super::pieces(text, &ends)
    }

    #[test]
    fn long_text_is_cut_at_sentences() {
        assert_eq!(pieces("..."), [0; 0]);
        assert_eq!(pieces("One."), [4]);
        let sentence = "The spare key hangs behind the kitchen door, on the left. ";
        let text = sentence.repeat(100);
        let ends = pieces(&text);
        assert_eq!(ends.last(), Some(&(text.len() as u32)));
        assert!(ends.iter().all(|end| (*end as usize).is_multiple_of(sentence.len())), "{ends:?}");
        assert_eq!(ends.len(), 3);
        // Without a border, words are.
        let ends = pieces(&"word ".repeat(1_000));
        assert_eq!(ends, [1_999, 3_999, 5_000]);
    }
}
