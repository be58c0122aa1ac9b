//! The words of a sentence and of a cue, in one form in which they can be compared.

use std::ops::Range;

/// The words of a sentence in lower case, with a word of its own for each comma, colon and masked part.
///
/// A character of a script without spaces is a word of its own.
#[derive(Debug, Default)]
pub(crate) struct Words {
    joined: String,
    /// The end of each word in `joined`.
    ends: Vec<u32>,
}

/// The word in place of a masked part: a quote, code or a pasted text.
pub(super) const MASKED: &str = "\u{fffc}";

/// The word in place of a comma, a dash or a bracket.
pub(super) const COMMA: &str = ",";

/// The word in place of a colon.
pub(super) const COLON: &str = ":";

impl Words {
    /// Splits a part of a text into words. The masked parts of the text are in ascending order.
    pub(crate) fn new(text: &str, part: Range<usize>, masks: &[Range<usize>]) -> Self {
        let mut words = Self::default();
        let mut at = part.start;
        let first = masks.partition_point(|mask| mask.end <= part.start);
        for mask in masks[first..].iter().take_while(|mask| mask.start < part.end) {
            words.push_text(&text[at..mask.start.max(at)]);
            words.push_word(MASKED);
            at = mask.end.min(part.end);
        }
        words.push_text(&text[at..part.end]);
        words
    }

    fn push_text(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        let mut before = ' ';
        while let Some(letter) = letters.next() {
            let after = letters.peek().copied().unwrap_or(' ');
            self.push_letter(before, letter, after);
            before = letter;
        }
        self.end_word();
    }

    fn push_letter(&mut self, before: char, letter: char, after: char) {
        match letter {
            _ if letter.is_ascii_alphanumeric() => self.joined.push(letter.to_ascii_lowercase()),
            '\'' | '’' if before.is_alphabetic() && after.is_alphabetic() => self.joined.push('\''),
            ',' | ';' | '(' | '—' | '–' | '，' | '、' | '；' => self.push_word(COMMA),
            ':' | '：' => self.push_word(COLON),
            '-' if before == ' ' && after == ' ' => self.push_word(COMMA),
            _ if is_spaceless(letter) => self.push_word(letter.encode_utf8(&mut [0; 4])),
            _ if letter.is_alphanumeric() => self.joined.extend(letter.to_lowercase()),
            _ => self.end_word(),
        }
    }

    fn push_word(&mut self, word: &str) {
        self.end_word();
        self.joined.push_str(word);
        self.end_word();
    }

    fn end_word(&mut self) {
        if self.joined.len() as u32 > self.ends.last().copied().unwrap_or_default() {
            self.ends.push(self.joined.len() as u32);
        }
    }

    /// Returns the number of words.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a word, or an empty one after the last word.
    pub(crate) fn word(&self, at: usize) -> &str {
        let Some(end) = self.ends.get(at) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.joined[start as usize..*end as usize]
    }

    /// Returns the words in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|at| self.word(at))
    }
}

/// Checks if a character belongs to a script that is written without spaces.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}
