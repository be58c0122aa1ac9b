//! A file in pieces of a few paragraphs, each with the heading that it stands under.

use text_splitter::{ChunkConfig, MarkdownSplitter, TextSplitter};

/// Characters of a chunk: paragraphs are put together up to the first figure, and none is longer than the second.
const CHARACTERS: std::ops::Range<usize> = 600..1_200;
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
pub fn of<'a>(path: &str, text: &'a str) -> Vec<Chunk<'a>> {
    let is_markdown = [".md", ".mdx", ".markdown"].iter().any(|end| path.to_ascii_lowercase().ends_with(end));
    if !is_markdown {
        let chunks = TextSplitter::new(ChunkConfig::new(CHARACTERS)).chunks(text).collect::<Vec<_>>();
        return chunks.into_iter().map(|text| Chunk { heading: String::new(), text }).collect();
    }
    let headings = headings(text);
    let splitter = MarkdownSplitter::new(ChunkConfig::new(CHARACTERS));
    let chunk = |(at, text)| Chunk { heading: above(&headings, at), text };
    splitter.chunk_indices(text).map(chunk).collect()
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
