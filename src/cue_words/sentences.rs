//! The sentences of a paragraph.

use std::ops::Range;

/// Abbreviations before whose point a sentence does not end.
const ABBREVIATIONS: [&str; 14] =
    ["etc", "vs", "bzw", "ca", "nr", "dr", "mr", "mrs", "ms", "approx", "resp", "usw", "incl", "fig"];

/// Bytes of a line after which its break is only a wrap: the sentence goes on.
const WRAPPED: usize = 60;

/// Splits a paragraph into its sentences. A sentence does not end in a masked part; the masks are ascending.
pub(super) fn sentences(text: &str, part: Range<usize>, masks: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut sentences = Vec::new();
    let mut masks = masks[masks.partition_point(|mask| mask.end <= part.start)..].iter().peekable();
    let (mut start, mut line, mut at) = (part.start, part.start, part.start);
    while let Some(letter) = text[at..part.end].chars().next() {
        while masks.next_if(|mask| mask.end <= at).is_some() {}
        if let Some(mask) = masks.peek().filter(|mask| mask.start <= at) {
            at = mask.end.min(part.end);
            continue;
        }
        let next = at + letter.len_utf8();
        let end = match letter {
            '\n' if !is_wrapped(text, line, at, part.end) => Some(next),
            '.' | '!' | '?' | '…' => end_after(text, start, at, part.end),
            '。' | '！' | '？' | '．' => Some(next + closers(&text[next..part.end])),
            _ => None,
        };
        if letter == '\n' {
            line = next;
        }
        if let Some(end) = end {
            sentences.extend(trimmed(text, start..end));
            start = end;
        }
        at = end.unwrap_or(next);
    }
    sentences.extend(trimmed(text, start..part.end));
    sentences
}

/// Checks if the sentence goes on after a line break.
fn is_wrapped(text: &str, line: usize, at: usize, end: usize) -> bool {
    let next = text[at..end].chars().take(LOOK).find(|c| !c.is_whitespace()).unwrap_or('A');
    let last = text[line..at].trim_end_matches('\r').chars().next_back().unwrap_or(':');
    let is_long = at - line >= WRAPPED && last.is_ascii();
    last != ':' && (next.is_lowercase() || is_long)
}

/// Maximum characters to look ahead for the next word or behind for the last one.
const LOOK: usize = 40;

/// Returns the end of the sentence if the mark at this place ends one: a space follows it.
fn end_after(text: &str, start: usize, at: usize, end: usize) -> Option<usize> {
    let mark = text[at..end].chars().next()?.len_utf8();
    let after = at + mark + closers(&text[at + mark..end]);
    let rest = &text[after..end];
    if !(rest.is_empty() || rest.starts_with(char::is_whitespace) || rest.starts_with('<')) {
        return None;
    }
    let is_abbreviation = text[at..].starts_with('.') && is_abbreviation(&text[start..at]);
    (!is_abbreviation).then_some(after)
}

/// Checks if the last word is a number at the beginning, one letter, or short for another word.
fn is_abbreviation(before: &str) -> bool {
    let word =
        before.char_indices().rev().take(LOOK).take_while(|one| !one.1.is_whitespace() && one.1 != '(');
    let Some((first, _)) = word.last() else { return false };
    let word = before[first..].to_lowercase();
    let is_number = first == 0 && word.bytes().all(|b| b.is_ascii_digit());
    is_number
        || (word.chars().count() == 1 && word.starts_with(char::is_alphabetic))
        || (word.contains('.') && word.split('.').all(|part| part.chars().count() == 1))
        || ABBREVIATIONS.contains(&word.as_str())
}

/// Returns the bytes of the quotation marks, brackets and stars at the beginning of a text.
fn closers(text: &str) -> usize {
    let rest = text
        .trim_start_matches(['.', '!', '?', '"', '\'', ')', '*', '_', '”', '’', '»', '“', '」', '）', ']']);
    text.len() - rest.len()
}

/// Returns a part of a text without spaces around it, unless it is empty.
fn trimmed(text: &str, part: Range<usize>) -> Option<Range<usize>> {
    let inner = text[part.clone()].trim_start();
    let start = part.end - inner.len();
    let length = inner.trim_end().len();
    (length > 0).then_some(start..start + length)
}
