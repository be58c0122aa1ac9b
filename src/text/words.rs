//! The words of a text, and runs of neighbouring words for comparisons of texts.

use std::ops::Range;

/// The words of a text in lower case. A character of a script without spaces is a word of its own, and so is
/// a symbol such as `=` or `€`.
///
/// Case, spaces and punctuation do not matter: two texts that differ in nothing else have the same words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// The words, each followed by a line break, which is in no word.
    joined: String,
    /// The end of each word in `joined`, in bytes, with its line break.
    ends: Vec<u32>,
    /// The words that contain a digit, as indices.
    numbers: Vec<u32>,
}

/// Symbols whose change changes the meaning of a text.
const SYMBOLS: &str = "<>=+%&^~$€£¥×÷±≤≥≠";

/// The number of neighbouring words in a run.
const RUN: usize = 5;

impl Words {
    /// Splits a text into words.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut words = Self { joined: String::with_capacity(text.len()), ..Self::default() };
        let mut is_number = false;
        let mut letters = text.chars().peekable();
        let mut before = ' ';
        while let Some(c) = letters.next() {
            let follows = std::mem::replace(&mut before, c);
            // Most characters are these, and the tests below are slower.
            if c.is_ascii_alphanumeric() {
                words.joined.push(c.to_ascii_lowercase());
                is_number |= c.is_ascii_digit();
                continue;
            }
            // A sign before a number is part of it: -5 and 5 are different numbers.
            if c == '-' && !follows.is_alphanumeric() && letters.peek().is_some_and(char::is_ascii_digit) {
                words.joined.push(c);
                continue;
            }
            let is_alone = is_spaceless(c) || SYMBOLS.contains(c);
            if !c.is_alphanumeric() || is_alone {
                words.end_word(is_number);
                is_number = false;
            }
            if c.is_alphanumeric() || is_alone {
                words.joined.extend(c.to_lowercase());
                is_number |= c.is_numeric();
            }
            if is_alone {
                words.end_word(is_number);
                is_number = false;
            }
        }
        words.end_word(is_number);
        words
    }

    fn end_word(&mut self, is_number: bool) {
        let start = self.ends.last().copied().unwrap_or_default();
        if self.joined.len() as u32 > start {
            self.numbers.extend(is_number.then_some(self.ends.len() as u32));
            self.joined.push('\n');
            self.ends.push(self.joined.len() as u32);
        }
    }

    /// Returns the number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the words in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.joined.lines()
    }

    /// Returns the number of runs of five neighbouring words.
    #[must_use]
    pub fn runs(&self) -> usize {
        (self.len() + 1).saturating_sub(RUN)
    }

    /// Returns a run of five neighbouring words by the index of its first word.
    ///
    /// # Panics
    ///
    /// Panics if there is no such run.
    #[must_use]
    pub fn run(&self, at: usize) -> &str {
        &self.joined[self.bytes(at..at + RUN)]
    }

    /// Returns the words that contain a digit.
    pub fn numbers(&self) -> impl Iterator<Item = &str> {
        self.numbers.iter().map(|at| self.word(*at as usize))
    }

    fn word(&self, at: usize) -> &str {
        self.joined[self.bytes(at..at + 1)].trim_end_matches('\n')
    }

    fn bytes(&self, words: Range<usize>) -> Range<usize> {
        let start = words.start.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        start..self.ends[words.end - 1] as usize
    }
}

/// Checks if a character belongs to a script that is written without spaces.
#[must_use]
pub fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_ignore_case_spaces_and_punctuation() {
        let words = Words::new("  The spare-key (No. 7b):\n costs 3.50 EUR.");
        let all: Vec<&str> = words.iter().collect();
        assert_eq!(all, ["the", "spare", "key", "no", "7b", "costs", "3", "50", "eur"]);
        assert_eq!(words.numbers().collect::<Vec<_>>(), ["7b", "3", "50"]);
        assert_eq!(words.runs(), 5);
        assert_eq!(words.run(4), "7b\ncosts\n3\n50\neur\n");
        assert_eq!(Words::new("..."), Words::new(""));
        assert_ne!(Words::new("if a < b"), Words::new("if a > b"));
        assert_eq!(Words::new("-5 to b7-8").iter().collect::<Vec<_>>(), ["-5", "to", "b7", "8"]);
        assert_eq!(Words::new("one two three four").runs(), 0);
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_character() {
        let words = Words::new("我的钥匙在蓝色花盆下面 OK");
        assert_eq!((words.len(), words.iter().last()), (12, Some("ok")));
        assert_eq!(words.run(0), "我\n的\n钥\n匙\n在\n");
    }
}
