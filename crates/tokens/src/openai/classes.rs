//! Character classes, as the patterns of the encodings distinguish them.

/// A character class. Every character belongs to exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// Punctuation, symbols and control characters: every character in no other class.
    Other,
    /// `\p{Lu}` and `\p{Lt}`.
    Upper,
    /// `\p{Ll}`.
    Lower,
    /// `\p{Lm}` and `\p{Lo}`: letters that are neither upper nor lower case.
    Letter,
    /// `\p{M}`.
    Mark,
    /// `\p{N}`.
    Number,
    /// `\s` except `\r` and `\n`.
    Blank,
    /// `\r` and `\n`.
    Newline,
}

impl Class {
    const ALL: [Self; 8] = [
        Self::Other,
        Self::Upper,
        Self::Lower,
        Self::Letter,
        Self::Mark,
        Self::Number,
        Self::Blank,
        Self::Newline,
    ];

    #[inline]
    fn numbered(number: u8) -> Self {
        // The mask lets the compiler drop the bounds check.
        Self::ALL[usize::from(number & 7)]
    }
}

/// The number of characters per page of the table.
const PAGE: usize = 256;

/// The number of pages that cover all characters.
const PAGES: usize = (char::MAX as usize + 1) / PAGE;

/// The class table, written by `build.rs`. First comes, for each page of characters, the index of its page of
/// classes (16 bits, little-endian). Then come the distinct pages of classes, which are few.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.table"));

/// The classes of the characters below 128.
static ASCII: [Class; 128] = {
    let mut ascii = [Class::Other; 128];
    // Page 0 of the characters; its index is below 256, so its low byte is the index.
    let first = 2 * PAGES + TABLE[0] as usize * PAGE;
    let mut at = 0;
    while at < 128 {
        ascii[at] = Class::ALL[TABLE[first + at] as usize];
        at += 1;
    }
    ascii
};

#[inline]
pub(super) fn of_ascii(byte: u8) -> Class {
    ASCII[usize::from(byte & 0x7f)]
}

/// Returns the class of an ASCII byte, or `None` for any other byte.
#[inline]
pub(super) fn of_any(byte: u8) -> Option<Class> {
    ASCII.get(usize::from(byte)).copied()
}

/// Returns the class of a character by its code point.
#[inline]
pub(super) fn class_of_char(point: u32) -> Class {
    let point = point as usize;
    let page = 2 * (point / PAGE);
    let place = usize::from(u16::from_le_bytes([TABLE[page], TABLE[page + 1]]));
    Class::numbered(TABLE[2 * PAGES + place * PAGE + point % PAGE])
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Blank, Letter, Lower, Mark, Newline, Number, Other, Upper};
    use regex_syntax::hir::{self, HirKind};

    /// The classes as regular expressions, as they occur in the patterns of the encodings.
    const PATTERNS: [(Class, &str); 7] = [
        (Upper, r"[\p{Lu}\p{Lt}]"),
        (Lower, r"\p{Ll}"),
        (Letter, r"[\p{Lm}\p{Lo}]"),
        (Mark, r"\p{M}"),
        (Number, r"\p{N}"),
        (Blank, r"[\s--[\r\n]]"),
        (Newline, r"[\r\n]"),
    ];

    #[test]
    fn every_character_is_of_its_class_and_of_one() {
        let mut all = vec![Other; char::MAX as usize + 1];
        for (class, pattern) in PATTERNS {
            let parsed = regex_syntax::parse(pattern).unwrap();
            let HirKind::Class(hir::Class::Unicode(characters)) = parsed.kind() else { panic!("{pattern}") };
            for range in characters.ranges() {
                for c in range.start()..=range.end() {
                    assert_eq!(all[c as usize], Other, "{c:?} is of two kinds");
                    all[c as usize] = class;
                }
            }
        }
        for c in '\0'..=char::MAX {
            assert_eq!(class_of_char(c.into()), all[c as usize], "{c:?}");
            if c.is_ascii() {
                assert_eq!(
                    (of_ascii(c as u8), of_any(c as u8)),
                    (class_of_char(c.into()), Some(class_of_char(c.into())))
                );
            }
        }
        for (c, class) in [('A', Upper), ('z', Lower), ('中', Letter), ('7', Number), ('\u{301}', Mark)] {
            assert_eq!(class_of_char(c.into()), class);
        }
        let others = [' ', '\u{85}', '\u{a0}', '\n', '\'', '\0'].map(|c| class_of_char(c.into()));
        assert_eq!(others, [Blank, Blank, Blank, Newline, Other, Other]);
        assert!(TABLE.len() < 100_000, "{}", TABLE.len());
    }
}
