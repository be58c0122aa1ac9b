//! The page count of a PDF, computed from its page tree.
//!
//! Objects are found in one pass over the file and its compressed object streams, not by the cross-reference
//! table. Files with a damaged table are common, and providers repair them in the same way.

use super::work::Work;
use dictionary::{Dictionary, Kind};
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet};

mod lexer;
mod dictionary;

/// Steps per byte of the file. Every byte is scanned, and most are read a second time as part of a
/// dictionary.
const STEPS_A_BYTE: u64 = 8;

/// Maximum bytes that the object streams of a file may unpack to. A page needs a few hundred.
const UNPACKED: usize = 32 << 20;

/// Bytes before `obj` that are searched for the object's number.
const NUMBERS: usize = 24;

/// Maximum number of trailers examined, from the end of the file. Each save adds one.
const TRAILERS: usize = 16;

/// The page count of a file. It is complete if no part of the page tree is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pages {
    pub(super) number: u64,
    pub(super) is_whole: bool,
}

/// Counts the pages of a file. Returns `None` if no page is found within the limit of work.
pub(super) fn count(file: &[u8]) -> Option<Pages> {
    let mut work = Work::new(STEPS_A_BYTE * (file.len() as u64 + 1_024));
    let mut objects = Objects { unpacked: UNPACKED, ..Objects::default() };
    // If the steps run out, the objects found so far still form a tree.
    let whole = objects.scan(file, &mut work).is_some();
    let pages = objects.pages(file)?;
    Some(Pages { is_whole: pages.is_whole && whole, ..pages })
}

/// An object of the page tree.
#[derive(Debug)]
enum Node {
    Catalog { pages: Option<u32> },
    Pages { kids: Vec<u32>, count: Option<u64> },
    Page,
}

/// The objects of a file that belong to its page tree.
#[derive(Debug, Default)]
struct Objects {
    /// The objects by number. Of two objects with one number, the later one is valid.
    nodes: BTreeMap<u32, Node>,
    /// The catalogue named by the newest cross-reference stream.
    root: Option<u32>,
    /// Remaining bytes that object streams may unpack to.
    unpacked: usize,
}

impl Objects {
    /// Reads every object of the file. Returns `None` if the work runs out.
    fn scan(&mut self, file: &[u8], work: &mut Work) -> Option<()> {
        let mut at = 0;
        while let Some(found) = memmem::find(&file[at..], b"obj") {
            work.charge(found + 3)?;
            let start = at + found;
            at = start + 3;
            let Some(number) = number_before(&file[..start]) else { continue };
            let Some((dictionary, length)) = Dictionary::read(&file[at..], work)? else {
                self.nodes.remove(&number);
                continue;
            };
            at += length;
            if let Some((body, end)) = stream(file, at, &dictionary, work)? {
                self.read_stream(&dictionary, body, work)?;
                at = end;
            }
            self.insert(number, dictionary);
        }
        work.charge(file.len() - at)
    }

    /// Stores an object if it belongs to the page tree. Otherwise removes an earlier object of the same
    /// number.
    fn insert(&mut self, number: u32, dictionary: Dictionary) {
        if dictionary.kind == Some(Kind::CrossReferences) {
            self.root = dictionary.root.or(self.root);
        }
        let node = match dictionary.kind {
            Some(Kind::Catalog) => Some(Node::Catalog { pages: dictionary.pages }),
            Some(Kind::Page) => Some(Node::Page),
            Some(Kind::Pages) => Some(Node::Pages { kids: dictionary.kids, count: dictionary.count }),
            None if !dictionary.kids.is_empty() && dictionary.count.is_some() => {
                Some(Node::Pages { kids: dictionary.kids, count: dictionary.count })
            }
            _ => None,
        };
        match node {
            Some(node) => self.nodes.insert(number, node),
            None => self.nodes.remove(&number),
        };
    }

    /// Reads the objects in an object stream. Ignores other streams.
    fn read_stream(&mut self, dictionary: &Dictionary, body: &[u8], work: &mut Work) -> Option<()> {
        if dictionary.kind != Some(Kind::ObjectStream) {
            return Some(());
        }
        work.charge(body.len())?;
        let unpacked;
        let data = if dictionary.is_packed {
            match miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(body, self.unpacked) {
                Ok(inflated) => unpacked = inflated,
                // The stream is encrypted or too large, so its objects stay unknown.
                Err(error) => {
                    self.unpacked = self.unpacked.saturating_sub(error.output.len());
                    return Some(());
                }
            }
            &unpacked[..]
        } else {
            body
        };
        self.unpacked = self.unpacked.saturating_sub(data.len());
        // Each stream has its own work, so that one stream cannot use up the work of the file.
        let mut own = Work::new(STEPS_A_BYTE * (data.len() as u64 + 1_024));
        // A stream that needs too many steps does not end the scan of the file.
        let _ = self.read_objects(dictionary, data, &mut own);
        Some(())
    }

    /// Reads the objects of an unpacked stream, whose head lists their numbers and offsets.
    fn read_objects(&mut self, dictionary: &Dictionary, data: &[u8], work: &mut Work) -> Option<()> {
        let first = usize::try_from(dictionary.first?).ok()?;
        let (head, bodies) = data.split_at_checked(first)?;
        let mut numbers = lexer::integers(head);
        for _ in 0..dictionary.number? {
            let (Some(number), Some(offset)) = (numbers.next(), numbers.next()) else { break };
            let (Ok(number), Ok(offset)) = (u32::try_from(number), usize::try_from(offset)) else { break };
            work.charge(1)?;
            let Some(body) = bodies.get(offset..) else { continue };
            if let Some((dictionary, _)) = Dictionary::read(body, work)? {
                self.insert(number, dictionary);
            }
        }
        Some(())
    }

    /// Counts the pages below the catalogue. Without a usable catalogue, counts all page objects.
    fn pages(&self, file: &[u8]) -> Option<Pages> {
        let catalogs = self.nodes.iter().rev().filter_map(|(number, node)| match node {
            Node::Catalog { .. } => Some(*number),
            _ => None,
        });
        let roots = trailer_root(file).into_iter().chain(self.root).chain(catalogs);
        // Limits the search: only a hostile file has many catalogues.
        let mut roots = roots.take(TRAILERS);
        let walked = roots.find_map(|root| match self.nodes.get(&root) {
            Some(Node::Catalog { pages: Some(pages) }) => self.walk(*pages),
            _ => None,
        });
        walked.or_else(|| {
            let pages = self.nodes.values().filter(|node| matches!(node, Node::Page)).count() as u64;
            (pages > 0).then_some(Pages { number: pages, is_whole: false })
        })
    }

    /// Counts the pages below a node. Each inner node is entered once, so that a cycle in the tree ends.
    fn walk(&self, top: u32) -> Option<Pages> {
        let (mut entered, mut number, mut missing) = (BTreeSet::new(), 0_u64, false);
        let mut open = vec![top];
        while let Some(at) = open.pop() {
            match self.nodes.get(&at) {
                Some(Node::Page) => number += 1,
                Some(Node::Pages { kids, .. }) => {
                    if entered.insert(at) {
                        open.extend(kids);
                    }
                }
                Some(Node::Catalog { .. }) | None => missing = true,
            }
        }
        // The stated count covers the pages in missing nodes.
        if missing && let Some(Node::Pages { count: Some(count), .. }) = self.nodes.get(&top) {
            number = number.max(*count);
        }
        (number > 0).then_some(Pages { number, is_whole: !missing })
    }
}

/// Returns the catalogue named by the newest trailer.
fn trailer_root(file: &[u8]) -> Option<u32> {
    let mut end = file.len();
    for _ in 0..TRAILERS {
        let at = memmem::rfind(&file[..end], b"trailer")?;
        let mut work = Work::new(1 << 16);
        if let Some(Some((dictionary, _))) = Dictionary::read(&file[at + 7..], &mut work)
            && dictionary.root.is_some()
        {
            return dictionary.root;
        }
        end = at;
    }
    None
}

/// Returns the number of an object, which comes before its generation number and `obj`.
fn number_before(head: &[u8]) -> Option<u32> {
    let mut head = &head[head.len().saturating_sub(NUMBERS)..];
    let mut take = |wanted: fn(&u8) -> bool| {
        let length = head.iter().rev().take_while(|byte| wanted(byte)).count();
        let (rest, taken) = head.split_at(head.len() - length);
        head = rest;
        taken
    };
    let space: fn(&u8) -> bool = |byte| lexer::is_space(*byte);
    take(space);
    let generation = take(u8::is_ascii_digit);
    let between = take(space);
    let number = take(u8::is_ascii_digit);
    if generation.is_empty() || between.is_empty() {
        return None;
    }
    str::from_utf8(number).ok()?.parse().ok()
}

/// Returns the body of a stream after a dictionary and the position of its end. The inner `Option` is `None`
/// if there is no stream, the outer one if the work runs out.
#[expect(clippy::option_option, reason = "out of work, or no stream")]
fn stream<'f>(
    file: &'f [u8],
    at: usize,
    dictionary: &Dictionary,
    work: &mut Work,
) -> Option<Option<(&'f [u8], usize)>> {
    const END: &[u8] = b"endstream";
    let spaces = file[at..].iter().take_while(|byte| lexer::is_space(**byte)).count();
    work.charge(spaces)?;
    let Some(rest) = file[at + spaces..].strip_prefix(b"stream") else { return Some(None) };
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    let start = file.len() - rest.len();
    // The stated length is valid if the stream ends there. It is preferred, because the data may contain
    // `endstream`.
    let stated = dictionary.length.and_then(|length| usize::try_from(length).ok());
    let ends_there = |length: &usize| {
        let after = rest.get(*length..).unwrap_or_default();
        let spaces = after.iter().take(2).take_while(|byte| lexer::is_space(**byte)).count();
        after[spaces..].starts_with(END)
    };
    let length = match stated.filter(ends_there) {
        Some(length) => length,
        None => memmem::find(rest, END).unwrap_or(rest.len()),
    };
    work.charge(length)?;
    Some(Some((&rest[..length], start + length)))
}

#[cfg(test)]
mod tests;
