//! Parts of a text between XML-like tags, and HTML comments: pasted documents, examples and markup.

use super::{
    cues::{Cues, Kind},
    words::Words,
};
use std::{collections::BTreeMap, ops::Range};

/// A tag in a text.
struct Tag<'a> {
    name: &'a str,
    range: Range<usize>,
    closes: bool,
}

/// Returns the parts of a text that are between tags, with the tags, in ascending order. The text between the
/// tags of `open_tags` stays visible, and only these tags are returned.
pub(super) fn hidden(text: &str) -> Vec<Range<usize>> {
    let tags = tags(text);
    // Only an opening tag with a closing one later hides a text: `Vec<String>` is no tag.
    let mut last_closing = BTreeMap::new();
    for tag in tags.iter().filter(|tag| tag.closes) {
        last_closing.insert(tag.name, tag.range.start);
    }
    let mut hidden = Vec::new();
    let mut open: Option<(&str, usize, usize)> = None;
    for tag in &tags {
        open = match open {
            // Tags of the same name nest, so that a document cannot close its own tag before its end.
            Some((name, start, depth)) if name == tag.name => match (tag.closes, depth) {
                (false, _) => Some((name, start, depth + 1)),
                (true, 0) => {
                    hidden.push(start..tag.range.end);
                    None
                }
                (true, _) if last_closing.get(name) > Some(&tag.range.start) => {
                    Some((name, start, depth - 1))
                }
                (true, _) => {
                    hidden.push(start..tag.range.end);
                    None
                }
            },
            Some(open) => Some(open),
            None if tag.name == COMMENT || is_open(tag.name) => {
                hidden.push(tag.range.clone());
                None
            }
            None if !tag.closes && last_closing.get(tag.name) > Some(&tag.range.start) => {
                Some((tag.name, tag.range.start, 0))
            }
            None => None,
        };
    }
    hidden.extend(open.map(|(_, start, _)| start..text.len()));
    hidden
}

/// The name that stands for an HTML comment.
const COMMENT: &str = "!--";

/// Maximum bytes of a tag with its attributes.
const LONGEST: usize = 400;

fn tags(text: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        let start = at + found;
        let tag = tag(text, start);
        at = tag.as_ref().map_or(start + 1, |tag| tag.range.end);
        tags.extend(tag);
    }
    tags
}

/// Reads the tag or comment that begins at a place.
fn tag(text: &str, start: usize) -> Option<Tag<'_>> {
    let rest = &text[start + 1..];
    if rest.starts_with(COMMENT) {
        let end = rest.find("-->").map_or(text.len(), |end| start + 1 + end + 3);
        return Some(Tag { name: COMMENT, range: start..end, closes: false });
    }
    // A tag in backticks is the mention of a tag.
    if text[..start].ends_with('`') {
        return None;
    }
    let (closes, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
    let is_in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let name = &rest[..rest.bytes().take(LONGEST).position(|b| !is_name_byte(b)).unwrap_or(0)];
    if !name.starts_with(char::is_alphabetic) || !name.chars().all(is_in_name) {
        return None;
    }
    let after = rest.as_bytes()[name.len()..].iter().take(LONGEST);
    let length = name.len() + after.clone().position(|b| matches!(b, b'>' | b'<'))?;
    if rest.as_bytes()[length] != b'>' || rest[..length].ends_with('/') {
        return None;
    }
    let end = start + 1 + usize::from(closes) + length + 1;
    Some(Tag { name, range: start..end, closes })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'-' | b'.' | b':')
}

/// Checks if a word of a tag's name says that its text is an instruction.
fn is_open(name: &str) -> bool {
    Cues::embedded().matches(&Words::new(name, 0..name.len(), &[])).has_after(0, Kind::OpenTags)
}
