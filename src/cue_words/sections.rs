//! The sections of a text, by their headings.

use super::{
    cues::{Cues, Kind},
    words::{COLON, Words},
};
use std::ops::Range;

/// The kind of text that a heading or a line before a list announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Plain,
    Rules,
    /// A list in which every item is a rule: "Each response should include:".
    Each,
    /// The rules of one case: "If you need several commands, either:".
    Case,
    /// The steps of one task.
    Steps,
    /// A text of another person or program.
    Pasted,
}

/// Maximum words of a line with a colon that is a heading.
const HEADING_WORDS: usize = 8;

/// Maximum bytes of a heading.
const LONGEST: usize = 300;

/// Checks if a line is short enough for a heading.
pub(super) fn is_short(text: &str, line: Range<usize>) -> bool {
    words(text, line).is_some_and(|words| words.len() <= HEADING_WORDS)
}

fn words(text: &str, line: Range<usize>) -> Option<Words> {
    (line.len() <= LONGEST).then(|| Words::new(text, line, &[]))
}

/// Returns the section that a heading announces, or a line with a colon if `is_line` is true.
pub(super) fn announced(text: &str, heading: Range<usize>, is_line: bool) -> Section {
    let Some(words) = words(text, heading) else { return Section::Plain };
    let cues = Cues::embedded().matches(&words);
    let is_short = words.len() <= HEADING_WORDS;
    let is_last = |end: usize| end >= words.len() || words.word(end) == COLON;
    let has = |kind: Kind| is_short && cues.has_after(0, kind);
    match () {
        () if cues.has_after(0, Kind::EachHeadings) => Section::Each,
        () if has(Kind::RuleHeadings) => Section::Rules,
        () if is_line && cues.is_at(0, Kind::Conditions) => Section::Case,
        () if cues.each_of_kind(Kind::PastedHeadings).any(|cue| is_last(cue.end)) => Section::Pasted,
        () if has(Kind::StepHeadings) => Section::Steps,
        () => Section::Plain,
    }
}
