//! Splits a file into pieces of a few paragraphs, each with the headings above it.

use text_splitter::{ChunkConfig, MarkdownSplitter, TextSplitter};

/// Size of a chunk in characters: paragraphs are joined up to the first number, and no chunk is longer than
/// the second.
const CHARACTERS: std::ops::Range<usize> = 600..1_200;
/// Maximum characters of a chunk that the next one repeats, so that a sentence at a cut is found with both.
/// The planner sends overlapping chunks as one text.
const OVERLAP: usize = 150;
/// Bytes of text that are split at once.
const PIECE: usize = 32 << 10;
/// Tokens of a short chunk in a prompt, which determine the number of retrieved chunks. If they are longer,
/// the plan excludes those that do not fit.
pub const TOKENS_EACH: u64 = 100;

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The headings above it, the outermost first, separated by `>`.
    pub heading: String,
    pub text: &'a str,
}

/// Splits a file at paragraphs, sentences or words. The extension of its name decides if it is Markdown.
pub fn split_text<'a>(path: &str, text: &'a str) -> Vec<Chunk<'a>> {
    let is_markdown = [".md", ".mdx", ".markdown"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
    let headings = if is_markdown { headings(text) } else { Vec::new() };
    let config = || ChunkConfig::new(CHARACTERS).with_overlap(OVERLAP).expect("shorter than a chunk");
    let (plain, markdown) = (TextSplitter::new(config()), MarkdownSplitter::new(config()));
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

/// Splits a text at line or word ends into pieces with their positions, because the splitters take quadratic
/// time for one long line.
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

/// Returns each heading of a Markdown text with its byte position and level, except those inside code blocks.
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

/// Returns the headings above a position.
fn above(headings: &[(usize, usize, &str)], at: usize) -> String {
    let mut path: Vec<(usize, &str)> = Vec::new();
    for (_, level, heading) in headings.iter().take_while(|(place, ..)| *place <= at) {
        path.retain(|(outer, _)| outer < level);
        path.push((*level, heading));
    }
    path.iter().map(|(_, heading)| *heading).collect::<Vec<_>>().join(" > ")
}
