//! Lines of one message, as a call of the tool `recall` asks for them.
//!
//! - Input: a text, and the arguments of a call.
//! - Output: successive lines, or those that match a pattern, as many as a limit in tokens allows.

use crate::{
    arguments::Arguments,
    lines::{Line, fit, push_lines, split},
};
use context_window::{Error, TokenCounter};
use regex::{Regex, RegexBuilder};
use std::fmt::Write as _;

/// The text of a result, or a sentence for the model with its mistake and the remedy.
pub(crate) type Answer = Result<String, String>;

/// The largest memory of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// Returns the lines of a text that a call asks for. `handle` is the id of its message.
pub(crate) fn read(
    text: &str,
    handle: &str,
    arguments: &Arguments,
    counter: &TokenCounter,
    limit: u64,
) -> Result<Answer, Error> {
    let all = split(text);
    let (first, last) = arguments.lines;
    if first > last || first > all.len() {
        return Ok(Err(format!("no such lines: {handle} has the lines 1 to {}", all.len())));
    }
    // A range may end behind the text, because the model does not know its length.
    let lines = &all[first - 1..last.min(all.len())];
    let Some(pattern) = &arguments.pattern else {
        return Ok(read_range(handle, &all, lines, counter, limit)?.ok_or_else(no_room));
    };
    match compile(pattern) {
        Ok(pattern) => read_matches(text, handle, lines, &pattern, counter, limit),
        Err(mistake) => Ok(Err(mistake)),
    }
}

/// Returns successive lines.
fn read_range(
    handle: &str,
    all: &[Line<'_>],
    lines: &[Line<'_>],
    counter: &TokenCounter,
    limit: u64,
) -> Result<Option<String>, Error> {
    let first = lines[0].number;
    let render = |count: usize, bytes: usize| {
        // The number of a line that is shown only in part counts too.
        let last = first + count.max(1) - 1;
        let mut read = format!("[{handle}: lines {first} to {last} of {}]\n", all.len());
        push_lines(&mut read, lines, count, bytes);
        if count == 0 {
            let _ = writeln!(read, "[line {first} goes on]");
        } else if count < lines.len() {
            let _ = writeln!(read, "[more lines from {} on]", last + 1);
        }
        read
    };
    fit(lines, counter, limit, render)
}

/// Returns the lines with a match, each after its number.
fn read_matches(
    text: &str,
    handle: &str,
    lines: &[Line<'_>],
    pattern: &Regex,
    counter: &TokenCounter,
    limit: u64,
) -> Result<Answer, Error> {
    let matching = matching(text, lines, pattern);
    if matching.is_empty() {
        return Ok(Err(format!("no line of {handle} matches {pattern}")));
    }
    let render = |count: usize, bytes: usize| {
        let mut read = format!("[{handle}: {count} of {} lines that match]\n", matching.len());
        for (at, line) in matching.iter().take(count.max(1)).enumerate() {
            let text = if at < count { line.text } else { &line.text[..bytes] };
            let _ = writeln!(read, "{}: {text}", line.number);
        }
        if let Some(next) = matching.get(count) {
            let _ = writeln!(read, "[more matches from line {} on]", next.number);
        }
        read
    };
    Ok(fit(&matching, counter, limit, render)?.ok_or_else(no_room))
}

/// Returns the lines with a match. Matches are found in whole lines of the text, each of which may be several
/// lines here.
fn matching<'t>(text: &str, lines: &[Line<'t>], pattern: &Regex) -> Vec<Line<'t>> {
    let (mut found, mut at, mut start) = (Vec::new(), 0, 0);
    for whole in text.split_inclusive('\n') {
        let end = start + whole.len();
        let line = whole.trim_end_matches(['\n', '\r']);
        let mut matches =
            pattern.find_iter(line).map(|found| start + found.start()..start + found.end()).peekable();
        while let Some(part) = lines.get(at).filter(|part| part.bytes.start < end) {
            // A match without bytes, such as the end of a line, is in the line that it begins in.
            while matches.next_if(|found| found.end.max(found.start + 1) <= part.bytes.start).is_some() {}
            if matches.peek().is_some_and(|found| found.start < part.bytes.end) {
                found.push(part.clone());
            }
            at += 1;
        }
        start = end;
    }
    found
}

/// Compiles a pattern. The time of a search is linear in the text, whatever the pattern is.
fn compile(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
    compiled.map_err(|error| format!("this regular expression cannot be used: {error}"))
}

/// Returns the answer to a call whose limit holds no line.
pub(crate) fn no_room() -> String {
    "the limit in tokens is too low for any line".into()
}
