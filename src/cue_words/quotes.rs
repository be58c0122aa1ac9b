//! Quotes and inline code in a text.

use std::ops::Range;

/// Returns the quotes and the inline code in parts of a text, in ascending order. The parts are ascending.
///
/// A quotation mark without its partner is none.
pub(super) fn quotes(text: &str, parts: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut finder = Finder { lasts: Vec::new(), found: Vec::new(), straight: None };
    for (_, close) in PAIRS {
        let last = parts.iter().rev().find_map(|part| Some(part.start + text[part.clone()].rfind(close)?));
        finder.lasts.push(last.unwrap_or(0));
    }
    let mut open: Option<(char, usize)> = None;
    for part in parts {
        let mut at = part.start;
        while let Some(letter) = text[at..part.end].chars().next() {
            let next = at + letter.len_utf8();
            at = match open {
                Some((close, start)) if is_close(close, letter) => {
                    finder.found.push(start..next);
                    open = None;
                    next
                }
                Some(_) => next,
                None => {
                    let pair = PAIRS.iter().position(|pair| pair.0 == letter);
                    open = pair.filter(|pair| finder.lasts[*pair] > at).map(|pair| (PAIRS[pair].1, at));
                    if open.is_some() { next } else { finder.read(text, part, at, letter) }
                }
            };
        }
    }
    finder.found.sort_by_key(|mask| (mask.start, mask.end));
    merged(finder.found)
}

/// Opening marks that differ from their closing ones.
const PAIRS: [(char, char); 6] = [('„', '“'), ('“', '”'), ('«', '»'), ('「', '」'), ('『', '』'), ('»', '«')];

/// Checks if a mark closes a quote: in German texts both `“` and `”` do.
fn is_close(close: char, letter: char) -> bool {
    close == letter || (close == '“' && letter == '”')
}

/// Maximum bytes of inline code with its backticks.
const LONGEST: usize = 400;

/// The quotes found so far, and the last straight mark that may open one.
struct Finder {
    /// The last place of each closing mark.
    lasts: Vec<usize>,
    found: Vec<Range<usize>>,
    straight: Option<usize>,
}

impl Finder {
    /// Reads a character outside of quotes with two different marks, and returns the next place to read.
    fn read(&mut self, text: &str, part: &Range<usize>, at: usize, letter: char) -> usize {
        let next = at + letter.len_utf8();
        match letter {
            '`' => {
                let end = self.read_code(text, part, at);
                return end.unwrap_or(at + text[at..part.end].bytes().take_while(|b| *b == b'`').count());
            }
            '"' if !text[..at].ends_with('\\') => self.read_straight(text, at),
            '\'' | '‘' => {
                if let Some(end) = single_end(text, part, at, letter) {
                    self.found.push(at..end);
                    return end;
                }
            }
            _ => {}
        }
        next
    }

    /// Reads inline code, which ends at as many backticks as it begins with, in the same line.
    fn read_code(&mut self, text: &str, part: &Range<usize>, at: usize) -> Option<usize> {
        let line = &text.as_bytes()[at..part.end.min(at + LONGEST)];
        let count = line.iter().take_while(|b| **b == b'`').count();
        let mut place = count;
        while place < line.len() && line[place] != b'\n' {
            let run = line[place..].iter().take_while(|b| **b == b'`').count();
            if run == count {
                self.found.push(at..at + place + run);
                return Some(at + place + run);
            }
            place += run.max(1);
        }
        None
    }

    /// Reads a straight mark: one that can only close ends the quote that the mark before it began.
    fn read_straight(&mut self, text: &str, at: usize) {
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let after = text[at + 1..].chars().next().unwrap_or(' ');
        let opens =
            !after.is_whitespace() && !before.is_alphanumeric() && !matches!(before, '.' | ',' | '!' | '?');
        let closes = !after.is_alphanumeric() && !before.is_whitespace();
        self.straight = match self.straight {
            Some(start) if closes || !opens => {
                self.found.push(start..at + 1);
                None
            }
            _ if opens || !closes => Some(at),
            open => open,
        };
    }
}

/// Returns the end of a quote in single marks, in the same line. An apostrophe is no mark.
fn single_end(text: &str, part: &Range<usize>, at: usize, mark: char) -> Option<usize> {
    if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '`') {
        return None;
    }
    let close = if mark == '‘' { '’' } else { mark };
    let start = at + mark.len_utf8();
    let mut before = ' ';
    for (place, letter) in
        text[start..part.end].char_indices().take_while(|one| one.0 < SINGLE && one.1 != '\n')
    {
        let end = start + place + letter.len_utf8();
        let is_mark = letter == close && place > 0 && !before.is_whitespace();
        if is_mark && !text[end..].starts_with(char::is_alphanumeric) {
            return Some(end);
        }
        before = letter;
    }
    None
}

/// Maximum bytes between single quotation marks. A longer one is more likely an apostrophe.
const SINGLE: usize = 150;

/// Merges parts that overlap. They are sorted.
fn merged(parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    for part in parts {
        match merged.last_mut() {
            Some(last) if part.start < last.end => last.end = last.end.max(part.end),
            _ => merged.push(part),
        }
    }
    merged
}

/// Merges two lists of parts.
pub(super) fn joined(some: Vec<Range<usize>>, others: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut all = some;
    all.extend(others);
    all.sort_by_key(|part| (part.start, part.end));
    merged(all)
}
