//! Text → the pieces that an encoding merges by themselves. The published patterns, written out by hand: what a regex
//! engine finds by trying, the kind of the next character decides here. A test holds this equal to the patterns.

use super::classes::{self, Class};

use Class::{Blank, Letter, Lower, Mark, Newline, Number, Other, Upper};

/// Which of the two patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    Cl100k,
    O200k,
}

/// The pieces of a text from its beginning, one after the other.
pub(super) struct Pieces<'t> {
    text: &'t str,
    at: usize,
    pattern: Pattern,
}

impl<'t> Pieces<'t> {
    pub(super) fn new(text: &'t str, pattern: Pattern) -> Self {
        Self { text, at: 0, pattern }
    }

    /// Where the next piece ends, if there is one; it starts where the last one ended.
    #[inline]
    pub(super) fn next_end(&mut self) -> Option<usize> {
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

    /// The end of a short word of ASCII letters, with or without a character before it: most pieces of most texts are one. Its
    /// letters are looked at all at once. None where it is anything else, or the text ends soon.
    #[inline]
    fn plain_word(&self) -> Option<usize> {
        let word = u128::from_le_bytes(*self.text.as_bytes().get(self.at..)?.first_chunk()?);
        let byte = |at: u32| (word >> (8 * at)) as u8;
        let prefix = u32::from(match classes::of_any(byte(0)) {
            Some(Upper | Lower) => false,
            // What may be a contraction is none of these.
            Some(Other | Blank) if self.pattern == Pattern::O200k || byte(0) != b'\'' => true,
            _ => return None,
        });
        let (first, letters) = match self.pattern {
            // Capitals and small letters are one to this pattern, and a contraction is a piece of its own.
            Pattern::Cl100k => (prefix, small_letters(word | SMALL)),
            Pattern::O200k => (prefix + u32::from(byte(prefix).is_ascii_uppercase()), small_letters(word)),
        };
        let count = (!(letters >> (8 * first)) & HIGH).trailing_zeros() / 8;
        let end = first + count;
        // The character after it is known, is no letter, and begins no contraction.
        let is_all = count > 0 && end < 16 && byte(end).is_ascii();
        (is_all && (self.pattern == Pattern::Cl100k || byte(end) != b'\'')).then(|| self.at + end as usize)
    }

    /// The class of the character at a position, and where the next one starts.
    #[inline]
    fn class(&self, at: usize) -> Option<(Class, usize)> {
        let rest = self.text.as_bytes().get(at..)?;
        let low = |byte: u8| u32::from(byte & 0x3f);
        // The text is UTF-8: the first byte says how many there are.
        Some(match *rest {
            [a, ..] if a.is_ascii() => (classes::of_ascii(a), at + 1),
            [a @ ..0xe0, b, ..] => (classes::of(u32::from(a & 0x1f) << 6 | low(b)), at + 2),
            [a @ ..0xf0, b, c, ..] => (classes::of(u32::from(a & 0xf) << 12 | low(b) << 6 | low(c)), at + 3),
            [a, b, c, d, ..] => {
                (classes::of(u32::from(a & 7) << 18 | low(b) << 12 | low(c) << 6 | low(d)), at + 4)
            }
            _ => return None,
        })
    }

    /// The end of the longest run of characters whose class is `wanted`.
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

    /// `\p{N}{1,3}`, after the first.
    fn numbers(&self, mut at: usize) -> usize {
        for _ in 0..2 {
            match self.class(at) {
                Some((Number, after)) => at = after,
                _ => break,
            }
        }
        at
    }

    /// A word after a character that may go before one; without a word, that character begins something else.
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

    /// `[^\s\p{L}\p{N}]+[\r\n/]*`, or without the slash; `at` is inside.
    fn signs(&self, at: usize) -> usize {
        let end = self.run(at, |class| matches!(class, Other | Mark));
        let bytes = self.text.as_bytes();
        let slash = self.pattern == Pattern::O200k;
        let tail =
            bytes[end..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n') || slash && **byte == b'/');
        end + tail.count()
    }

    /// `\s*[\r\n]+|\s+(?!\S)|\s+`: to the last line break of the run; or all of it but the character that goes with
    /// what follows.
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

    /// `\p{L}+`, after the first.
    fn letters(&self, at: usize) -> usize {
        self.run(at, |class| matches!(class, Upper | Lower | Letter))
    }

    /// Capitals, then small letters, and a contraction: at least one letter. Letters that are neither, and marks, may
    /// be of both parts; the pattern gives them to the first and takes back what the second needs.
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
                // No small letter follows: the last character that may be one is.
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

    /// A word that begins with a mark, which may come before it or in it.
    fn marked(&self, after: usize) -> usize {
        let capitals = self.run(after, |class| class == Upper);
        let only_capitals = !matches!(self.class(capitals), Some((Lower | Letter | Mark, _)));
        if !only_capitals {
            return self.word(after).unwrap_or(after);
        }
        // Nothing after it can be a small letter: then the mark is one.
        self.contraction(after).unwrap_or(after)
    }

    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)` at a position: where it ends.
    #[inline]
    fn contraction(&self, at: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        let [b'\'', first, ..] = *rest else { return None };
        match (first.to_ascii_lowercase(), rest.get(2).map(u8::to_ascii_lowercase)) {
            (b's' | b't' | b'm' | b'd', _) => Some(at + 2),
            // The long s, two bytes, is an s to whoever ignores case.
            (b'r' | b'v', Some(b'e')) | (b'l', Some(b'l')) | (0xc5, Some(0xbf)) => Some(at + 3),
            _ => None,
        }
    }
}

/// The highest bit of each byte, and the one that makes a capital a small letter.
const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
const SMALL: u128 = u128::from_le_bytes([0x20; 16]);

/// The highest bit of each byte that is `a` to `z`.
#[inline]
fn small_letters(word: u128) -> u128 {
    // Seven bits each, so that no sum reaches the next byte.
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

    /// The patterns as their publisher gives them (`tiktoken_ext/openai_public.py` of tiktoken 0.12).
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

    /// The pattern itself, through a regex engine.
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
