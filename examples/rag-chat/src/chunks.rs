//! A file in pieces of a few paragraphs, each with the heading that it stands under.

use text_splitter::{MarkdownSplitter, TextSplitter};

/// Characters of a chunk: paragraphs are put together up to the first figure, and none is longer than the second.
const CHARACTERS: std::ops::Range<usize> = 600..1_200;
/// Bytes of a text that are split at once.
const PIECE: usize = 32 << 10;
/// What a short chunk takes in a prompt, in tokens: so many that are this long are retrieved. The plan leaves out what does not
/// fit where they are longer.
pub const TOKENS_EACH: u64 = 100;

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The headings above it, the outermost first, `>` between them.
    pub heading: String,
    pub text: &'a str,
}

/// Cuts a file at paragraphs, sentences or words; the end of its name says whether it is Markdown.
pub fn split_text<'a>(path: &str, text: &'a str) -> Vec<Chunk<'a>> {
    let is_markdown = [".md", ".mdx", ".markdown"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
    let headings = if is_markdown { headings(text) } else { Vec::new() };
    let (plain, markdown) = (TextSplitter::new(CHARACTERS), MarkdownSplitter::new(CHARACTERS));
    let mut chunks = Vec::new();
    for (start, piece) in pieces(text) {
        let found: Vec<(usize, &str)> = if is_markdown {
            markdown.chunk_indices(piece).collect()
        } else {
            plain.chunk_indices(piece).collect()
        };
        chunks.extend(
            found.into_iter().map(|(at, text)| Chunk { heading: above(&headings, start + at), text }),
        );
    }
    chunks
}

/// A text in pieces at ends of lines or words, with their places: the splitters take the square of the length of one long line.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let (mut start, mut pieces) = (0, Vec::new());
    while start < text.len() {
        let end = text.floor_char_boundary(start + PIECE);
        let cut =
            text[start..end].rfind('\n').or_else(|| text[start..end].rfind(' ')).filter(|_| end < text.len());
        let end = cut.map_or(end, |cut| start + cut + 1);
        pieces.push((start, &text[start..end]));
        start = end;
    }
    pieces
}

/// Each heading of a Markdown text with its place in bytes and its level; none from within a block of code.
fn headings(text: &str) -> Vec<(usize, usize, &str)> {
    let (mut at, mut is_code, mut found) = (0, false, Vec::new());
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            is_code = !is_code;
        }
        let level = bare.bytes().take_while(|byte| *byte == b'#').count();
        if !is_code && (1..=6).contains(&level) && bare[level..].starts_with(' ') {
            found.push((at, level, bare[level..].trim()));
        }
        at += line.len();
    }
    found
}

/// The headings that a place stands under.
fn above(headings: &[(usize, usize, &str)], at: usize) -> String {
    let mut path: Vec<(usize, &str)> = Vec::new();
    for (_, level, heading) in headings.iter().take_while(|(place, ..)| *place <= at) {
        path.retain(|(outer, _)| outer < level);
        path.push((*level, heading));
    }
    path.iter().map(|(_, heading)| *heading).collect::<Vec<_>>().join(" > ")
}
