//! The entries of a PDF dictionary that are relevant for a page tree.

use super::lexer::{Lexer, Token};
use crate::media::work::Work;

/// The type of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Catalog,
    Pages,
    Page,
    ObjectStream,
    CrossReferences,
    Other,
}

impl Kind {
    fn from_name(name: &[u8]) -> Self {
        match name {
            b"Catalog" => Self::Catalog,
            b"Pages" => Self::Pages,
            b"Page" => Self::Page,
            b"ObjStm" => Self::ObjectStream,
            b"XRef" => Self::CrossReferences,
            _ => Self::Other,
        }
    }
}

/// The relevant entries of one dictionary. References are object numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dictionary {
    pub(super) kind: Option<Kind>,
    pub(super) kids: Vec<u32>,
    pub(super) count: Option<u64>,
    pub(super) pages: Option<u32>,
    pub(super) root: Option<u32>,
    pub(super) length: Option<u64>,
    pub(super) number: Option<u64>,
    pub(super) first: Option<u64>,
    /// True if the stream is compressed by `FlateDecode`.
    pub(super) is_packed: bool,
}

/// The current entry of the parser.
#[derive(Debug, Default)]
struct Entry<'f> {
    key: Option<&'f [u8]>,
    /// True after the beginning of its value.
    has_value: bool,
    /// The last two integers, which may be the start of a reference.
    integers: [Option<u64>; 2],
}

impl Dictionary {
    /// Parses the dictionary at the beginning of some bytes, and returns it with its length. The inner
    /// `Option` is `None` if the bytes begin with something else or end too early, the outer one if the work
    /// runs out.
    #[expect(clippy::option_option, reason = "out of work, or no dictionary")]
    pub(super) fn read(bytes: &[u8], work: &mut Work) -> Option<Option<(Self, usize)>> {
        let mut lexer = Lexer::new(bytes);
        work.charge(1)?;
        if lexer.next(work) != Some(Token::DictionaryOpen) {
            return Some(None);
        }
        let (mut dictionary, mut entry, mut depth) = (Self::default(), Entry::default(), 1_u64);
        loop {
            let Some(token) = lexer.next(work) else {
                // If the work has run out, this charge fails too.
                return work.charge(1).map(|()| None);
            };
            match token {
                Token::DictionaryOpen | Token::ArrayOpen => {
                    depth += 1;
                    entry.has_value = true;
                }
                Token::DictionaryClose | Token::ArrayClose => {
                    depth -= 1;
                    if depth == 0 {
                        dictionary.finish(&entry);
                        return Some(Some((dictionary, lexer.position())));
                    }
                }
                Token::Name(name) if depth == 1 && (entry.has_value || entry.key.is_none()) => {
                    dictionary.finish(&entry);
                    entry = Entry { key: Some(name), ..Entry::default() };
                }
                Token::Name(name) => {
                    entry.has_value |= depth == 1;
                    dictionary.name(&entry, name, depth);
                }
                Token::Integer(integer) => {
                    entry.has_value = true;
                    entry.integers = [entry.integers[1], Some(integer)];
                }
                Token::Reference => {
                    dictionary.reference(&entry, depth);
                    entry.integers = [None; 2];
                }
                Token::Other => {
                    entry.has_value = true;
                    entry.integers = [None; 2];
                }
            }
        }
    }

    /// Stores a name as the type or the filter.
    fn name(&mut self, entry: &Entry<'_>, name: &[u8], depth: u64) {
        match entry.key {
            Some(b"Type") if depth == 1 => self.kind = Some(Kind::from_name(name)),
            Some(b"Filter") => self.is_packed |= name == b"FlateDecode" || name == b"Fl",
            _ => {}
        }
    }

    /// Stores a reference `number generation R`.
    fn reference(&mut self, entry: &Entry<'_>, depth: u64) {
        let [Some(number), Some(_)] = entry.integers else { return };
        let Ok(number) = u32::try_from(number) else { return };
        match (entry.key, depth) {
            (Some(b"Kids"), 2) => self.kids.push(number),
            (Some(b"Pages"), 1) => self.pages = Some(number),
            (Some(b"Root"), 1) => self.root = Some(number),
            _ => {}
        }
    }

    /// Stores the integer of a complete entry.
    fn finish(&mut self, entry: &Entry<'_>) {
        let [None, Some(integer)] = entry.integers else { return };
        match entry.key {
            Some(b"Count") => self.count = Some(integer),
            Some(b"Length") => self.length = Some(integer),
            Some(b"N") => self.number = Some(integer),
            Some(b"First") => self.first = Some(integer),
            _ => {}
        }
    }
}
