//! What kind of character each is, as the patterns of the encodings tell them apart.

use regex_syntax::{Parser, hir::HirKind};
use std::sync::LazyLock;

/// A kind of character. Every character has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// Punctuation, symbols, controls: whatever is nothing else.
    Other,
    /// `\p{Lu}` and `\p{Lt}`.
    Upper,
    /// `\p{Ll}`.
    Lower,
    /// `\p{Lm}` and `\p{Lo}`: letters that are neither.
    Letter,
    /// `\p{M}`.
    Mark,
    /// `\p{N}`.
    Number,
    /// `\s` but the two below.
    Blank,
    /// `\r` and `\n`.
    Newline,
}

use Class::{Blank, Letter, Lower, Mark, Newline, Number, Other, Upper};

/// What the patterns are made of. No two of them share a character.
const PATTERNS: [(Class, &str); 7] = [
    (Upper, r"[\p{Lu}\p{Lt}]"),
    (Lower, r"\p{Ll}"),
    (Letter, r"[\p{Lm}\p{Lo}]"),
    (Mark, r"\p{M}"),
    (Number, r"\p{N}"),
    (Blank, r"[\s--[\r\n]]"),
    (Newline, r"[\r\n]"),
];

/// Characters to a page of the table.
const PAGE: usize = 256;

/// The classes of all characters: pages, of which most are the same few.
pub(super) struct Classes {
    ascii: [Class; 128],
    /// For each page of characters the index of its classes.
    places: Vec<u16>,
    pages: Vec<Class>,
}

static CLASSES: LazyLock<Classes> = LazyLock::new(Classes::new);

impl Classes {
    pub(super) fn get() -> &'static Self {
        &CLASSES
    }

    fn new() -> Self {
        let mut all = vec![Other; char::MAX as usize + 1];
        for (class, pattern) in PATTERNS {
            for (first, last) in ranges(pattern) {
                all[first as usize..=last as usize].fill(class);
            }
        }
        let mut pages: Vec<Class> = Vec::new();
        let places = all.chunks(PAGE).map(|page| {
            let known = pages.chunks(PAGE).position(|known| known == page);
            known.unwrap_or_else(|| {
                pages.extend_from_slice(page);
                pages.len() / PAGE - 1
            }) as u16
        });
        let places = places.collect();
        let mut ascii = [Other; 128];
        ascii.copy_from_slice(&all[..128]);
        Self { ascii, places, pages }
    }

    #[inline]
    pub(super) fn of_ascii(&self, byte: u8) -> Class {
        self.ascii[usize::from(byte & 0x7f)]
    }

    #[inline]
    pub(super) fn of(&self, c: char) -> Class {
        let page = usize::from(self.places[c as usize / PAGE]);
        self.pages[page * PAGE + c as usize % PAGE]
    }
}

/// The characters of a class, as the regex crates know them.
fn ranges(pattern: &str) -> Vec<(char, char)> {
    match Parser::new().parse(pattern).map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        Ok(HirKind::Class(regex_syntax::hir::Class::Bytes(class))) => {
            class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect()
        }
        // A test rules it out: the patterns are ours.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_there_and_none_overlap() {
        let mut seen = std::collections::BTreeSet::new();
        for (class, pattern) in PATTERNS {
            let ranges = ranges(pattern);
            assert!(!ranges.is_empty(), "{pattern}");
            for (first, last) in ranges {
                for c in first..=last {
                    assert!(seen.insert(c), "{c:?} is of two kinds");
                    assert_eq!(Classes::get().of(c), class);
                }
            }
        }
        let classes = Classes::get();
        for (c, class) in [('A', Upper), ('z', Lower), ('中', Letter), ('7', Number), ('\u{301}', Mark)] {
            assert_eq!(classes.of(c), class);
        }
        assert_eq!(
            [' ', '\u{85}', '\u{a0}', '\n', '\'', '\0'].map(|c| classes.of(c)),
            [Blank, Blank, Blank, Newline, Other, Other]
        );
        assert!(classes.pages.len() < 80_000, "{}", classes.pages.len());
    }
}
