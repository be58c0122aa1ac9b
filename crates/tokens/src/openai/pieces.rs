//! The split of a text into the pieces that an encoding merges separately. The published patterns are written
//! out by hand: a regex engine tries alternatives, this code decides by the class of the next character. A
//! test compares it with the patterns.

use super::classes::{self, Class};

use Class::{Blank, Letter, Lower, Mark, Newline, Number, Other, Upper};

/// The pattern of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Cl100k,
    O200k,
}

/// An iterator over the pieces of a text, from its start.
pub(super) struct Pieces<'t> {
    text: &'t str,
    at: usize,
    pattern: Pattern,
}

impl<'t> Pieces<'t> {
    pub(super) fn new(text: &'t str, pattern: Pattern) -> Self {
        Self { text, at: 0, pattern }
    }

    /// Returns the end of the next piece, or `None` at the end of the text. The piece starts at the end of
    /// the last one.
    #[inline]
    pub(super) fn next_end(&mut self) -> Option<usize> {
        // The fast path first: it handles most pieces without a loop over characters.
        if let Some(end) = self.plain_word() {
            self.at = end;
            return Some(end);
        }
        let (class, after) = self.class(self.at)?;
        self.at = match (self.pattern, class) {
            (_, Number) => self.numbers(after),
            (Pattern::O200k, Upper | Lower | Letter) => self.word(self.at).unwrap_or(after),
            (Pattern::O200k, Mark) => self.marked(after),
            (Pattern::O200k, Other | Blank) => self.after_prefix(class, after, Self::word),
            (Pattern::Cl100k, Upper | Lower | Letter) => self.letters(after),
            (Pattern::Cl100k, Other) => match self.contraction(self.at) {
                Some(end) => end,
                None => self.after_prefix(class, after, Self::letters_at),
            },
            (Pattern::Cl100k, Blank | Mark) => self.after_prefix(class, after, Self::letters_at),
            (_, Newline) => self.blanks(),
        };
        Some(self.at)
    }

    /// Returns the end of a short word of ASCII letters, with or without a prefix character. Most pieces of
    /// most texts have this form. All 16 bytes are examined at once. Returns `None` for any other piece, or
    /// if fewer than 16 bytes remain.
    #[inline]
    fn plain_word(&self) -> Option<usize> {
        let word = u128::from_le_bytes(*self.text.as_bytes().get(self.at..)?.first_chunk()?);
        let byte = |at: u32| (word >> (8 * at)) as u8;
        let prefix = u32::from(match classes::of_any(byte(0)) {
            Some(Upper | Lower) => false,
            // In `cl100k_base` an apostrophe may begin a contraction, which the general path handles.
            Some(Other | Blank) if self.pattern == Pattern::O200k || byte(0) != b'\'' => true,
            _ => return None,
        });
        let (first, letters) = match self.pattern {
            // This pattern does not distinguish case, and a contraction is a piece of its own.
            Pattern::Cl100k => (prefix, small_letters(word | SMALL)),
            Pattern::O200k => (prefix + u32::from(byte(prefix).is_ascii_uppercase()), small_letters(word)),
        };
        let count = (!(letters >> (8 * first)) & HIGH).trailing_zeros() / 8;
        let end = first + count;
        // The word ends here only if the next character is ASCII, and thus known not to be a letter. In
        // `o200k_base` it must not begin a contraction either.
        let is_all = count > 0 && end < 16 && byte(end).is_ascii();
        (is_all && (self.pattern == Pattern::Cl100k || byte(end) != b'\'')).then(|| self.at + end as usize)
    }

    /// Returns the class of the character at a position, and the start of the next character.
    #[inline]
    fn class(&self, at: usize) -> Option<(Class, usize)> {
        let rest = self.text.as_bytes().get(at..)?;
        let low = |byte: u8| u32::from(byte & 0x3f);
        // The text is valid UTF-8, so the first byte gives the length of the character.
        Some(match *rest {
            [a, ..] if a.is_ascii() => (classes::of_ascii(a), at + 1),
            [a @ ..0xe0, b, ..] => (classes::class_of_char(u32::from(a & 0x1f) << 6 | low(b)), at + 2),
            [a @ ..0xf0, b, c, ..] => {
                (classes::class_of_char(u32::from(a & 0xf) << 12 | low(b) << 6 | low(c)), at + 3)
            }
            [a, b, c, d, ..] => {
                (classes::class_of_char(u32::from(a & 7) << 18 | low(b) << 12 | low(c) << 6 | low(d)), at + 4)
            }
            _ => return None,
        })
    }

    /// Returns the end of the longest run of characters whose class is `wanted`.
    #[inline]
    fn run(&self, mut at: usize, wanted: impl Fn(Class) -> bool) -> usize {
        while let Some((class, after)) = self.class(at) {
            if !wanted(class) {
                break;
            }
            at = after;
        }
        at
    }

    /// Matches `\p{N}{1,3}` after the first digit.
    fn numbers(&self, mut at: usize) -> usize {
        for _ in 0..2 {
            match self.class(at) {
                Some((Number, after)) => at = after,
                _ => break,
            }
        }
        at
    }

    /// Matches a word after an optional prefix character. Without a word, the character begins another piece.
    #[inline]
    fn after_prefix(
        &self,
        class: Class,
        after: usize,
        word: impl Fn(&Self, usize) -> Option<usize>,
    ) -> usize {
        if let Some(end) = word(self, after) {
            return end;
        }
        match class {
            Blank
                if self.text.as_bytes()[self.at] == b' '
                    && matches!(self.class(after), Some((Other | Mark, _))) =>
            {
                self.signs(after)
            }
            Blank => self.blanks(),
            _ => self.signs(after),
        }
    }

    /// Matches `[^\s\p{L}\p{N}]+[\r\n/]*`, without the slash in `cl100k_base`. `at` is inside the run.
    fn signs(&self, at: usize) -> usize {
        let end = self.run(at, |class| matches!(class, Other | Mark));
        let bytes = self.text.as_bytes();
        let slash = self.pattern == Pattern::O200k;
        let tail =
            bytes[end..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n') || slash && **byte == b'/');
        end + tail.count()
    }

    /// Matches `\s*[\r\n]+|\s+(?!\S)|\s+`. The piece ends at the last line break of the run. Without a line
    /// break, it leaves the last character to the next piece.
    fn blanks(&self) -> usize {
        let (mut at, mut last, mut line) = (self.at, self.at, None);
        while let Some((class @ (Blank | Newline), after)) = self.class(at) {
            last = at;
            at = after;
            if class == Newline {
                line = Some(after);
            }
        }
        match line {
            Some(end) => end,
            None if at == self.text.len() || last == self.at => at,
            None => last,
        }
    }

    fn letters_at(&self, at: usize) -> Option<usize> {
        match self.class(at) {
            Some((Upper | Lower | Letter, after)) => Some(self.letters(after)),
            _ => None,
        }
    }

    /// Matches `\p{L}+` after the first letter.
    fn letters(&self, at: usize) -> usize {
        self.run(at, |class| matches!(class, Upper | Lower | Letter))
    }

    /// Matches upper-case letters, then lower-case letters, then a contraction, with at least one letter.
    /// Letters without case and marks match both parts. The pattern assigns them to the first part and
    /// backtracks as far as the second part needs.
    #[inline]
    fn word(&self, from: usize) -> Option<usize> {
        let (mut at, mut both) = (from, None);
        let mut end = loop {
            match self.class(at) {
                Some((Upper, after)) => at = after,
                Some((Letter | Mark, after)) => {
                    at = after;
                    both = Some(after);
                }
                Some((Lower, after)) => {
                    break self.run(after, |class| matches!(class, Lower | Letter | Mark));
                }
                // No lower-case letter follows, so the last character without case ends the word. If there is
                // none, all letters are upper case and the word ends at `at`.
                _ => break both.unwrap_or(at),
            }
        };
        if end == from {
            return None;
        }
        if let Some(contraction) = self.contraction(end) {
            end = contraction;
        }
        Some(end)
    }

    /// Matches a word that begins with a mark, which may be a prefix or a part of the word.
    fn marked(&self, after: usize) -> usize {
        let capitals = self.run(after, |class| class == Upper);
        let only_capitals = !matches!(self.class(capitals), Some((Lower | Letter | Mark, _)));
        if !only_capitals {
            return self.word(after).unwrap_or(after);
        }
        // No character after it can be lower case, so the mark itself is the lower-case part.
        self.contraction(after).unwrap_or(after)
    }

    /// Returns the end of `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at a position, or `None` if there is no match.
    #[inline]
    fn contraction(&self, at: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        let [b'\'', first, ..] = *rest else { return None };
        match (first.to_ascii_lowercase(), rest.get(2).map(u8::to_ascii_lowercase)) {
            (b's' | b't' | b'm' | b'd', _) => Some(at + 2),
            // The long s (`ſ`, two bytes) equals `s` if case is ignored.
            (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) | (0xc5, Some(0xbf)) => Some(at + 3),
            _ => None,
        }
    }
}

/// The highest bit of each byte.
const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
/// The bit that distinguishes a lower-case ASCII letter from its upper-case form, in each byte.
const SMALL: u128 = u128::from_le_bytes([0x20; 16]);

/// Returns the highest bit of each byte that is `a` to `z`.
#[inline]
fn small_letters(word: u128) -> u128 {
    // Works on seven bits per byte, so that no sum carries into the next byte.
    let low = word & !HIGH;
    let from_a = low + u128::from_le_bytes([0x80 - b'a'; 16]);
    let past_z = low + u128::from_le_bytes([0x7f - b'z'; 16]);
    from_a & !past_z & !word & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use fancy_regex::Regex;
    use std::sync::LazyLock;

    fn pieces(pattern: Pattern, text: &str) -> Vec<&str> {
        let mut pieces = Pieces::new(text, pattern);
        let mut from = 0;
        let mut all = Vec::new();
        while let Some(end) = pieces.next_end() {
            all.push(&text[from..end]);
            from = end;
        }
        assert_eq!(from, text.len());
        all
    }

    #[test]
    fn words_numbers_signs_and_blanks() {
        let text = "Hello  worldWide 12345 it's IT'S\n\n  x//\n\t!y 中ABC";
        assert_eq!(
            pieces(Pattern::O200k, text),
            [
                "Hello", " ", " world", "Wide", " ", "123", "45", " it's", " IT'S", "\n\n", " ", " x",
                "//\n", "\t", "!y", " 中", "ABC"
            ]
        );
        assert_eq!(
            pieces(Pattern::Cl100k, text),
            [
                "Hello",
                " ",
                " worldWide",
                " ",
                "123",
                "45",
                " it",
                "'s",
                " IT",
                "'S",
                "\n\n",
                " ",
                " x",
                "//\n",
                "\t",
                "!y",
                " 中ABC"
            ]
        );
    }

    /// The patterns as published (`tiktoken_ext/openai_public.py` of tiktoken 0.12).
    const O200K: &str = concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    );
    const CL100K: &str = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|",
        r"\s*[\r\n]+|\s+(?!\S)|\s+",
    );
    static PATTERNS: LazyLock<[Regex; 2]> =
        LazyLock::new(|| [O200K, CL100K].map(|pattern| Regex::new(pattern).unwrap()));

    /// Splits a text with the pattern itself, through a regex engine.
    fn by_pattern(pattern: usize, text: &str) -> Vec<String> {
        PATTERNS[pattern].find_iter(text).map(|found| found.unwrap().as_str().to_owned()).collect()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(
            if std::env::var_os("FULL").is_some() { 200_000 } else { 3_000 }
        ))]
        #[test]
        fn pieces_equal_those_of_the_patterns(
            text in "(?s:[aZéǅʰª中\u{301}\u{20dd}07½ \u{a0}\t\r\n'sStlLdDmreRvE’ſ/.!<|😀\0]{0,24})|[aZé' .x0\n]{17,60}|\\PC{0,30}|(?s:.{0,20})",
        ) {
            proptest::prop_assert_eq!(pieces(Pattern::O200k, &text), by_pattern(0, &text));
            proptest::prop_assert_eq!(pieces(Pattern::Cl100k, &text), by_pattern(1, &text));
        }
    }
}
