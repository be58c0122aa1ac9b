//! Lines of a text, and as many of them as a limit in tokens allows.

use context_window::{Error, TokenCounter};
use std::ops::Range;

/// The maximum bytes of a line. A longer one counts as several, so that a text without line breaks can be
/// read in parts.
const LONGEST: usize = 1_000;

/// A line of a text.
#[derive(Debug, Clone)]
pub(crate) struct Line<'t> {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// Its bytes in the text, with the line break.
    pub(crate) bytes: Range<usize>,
    /// Its text without the line break.
    pub(crate) text: &'t str,
}

/// Splits a text into lines. A line of more than 1,000 bytes becomes several.
pub(crate) fn split(text: &str) -> Vec<Line<'_>> {
    let (mut lines, mut start) = (Vec::new(), 0);
    for whole in text.split_inclusive('\n') {
        let end = start + whole.len();
        let mut rest = whole.strip_suffix('\n').unwrap_or(whole);
        loop {
            let (part, after) = rest.split_at(rest.floor_char_boundary(LONGEST));
            let next = if after.is_empty() { end } else { start + part.len() };
            lines.push(Line { number: lines.len() + 1, bytes: start..next, text: part });
            (rest, start) = (after, next);
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

/// Returns the first byte of each line of a text.
pub(crate) fn line_starts(text: &str) -> Vec<usize> {
    split(text).into_iter().map(|line| line.bytes.start).collect()
}

/// Returns the longest text that `render` makes of the first lines and that has at most `limit` tokens.
/// `render` gets a number of whole lines, and a number of bytes of the line after them, which is 0 unless not
/// even the first line fits. Returns `None` if no text fits.
pub(crate) fn fit(
    lines: &[Line<'_>],
    counter: &TokenCounter,
    limit: u64,
    render: impl Fn(usize, usize) -> String,
) -> Result<Option<String>, Error> {
    let fits = |text: &str| Ok(counter.count_within(text, limit)?.is_some());
    let whole = |count| render(count, 0);
    // Most results need few of many lines, so the number is doubled before it is bisected.
    let mut most = 1.min(lines.len());
    while most < lines.len() && fits(&whole(most))? {
        most = (most * 2).min(lines.len());
    }
    if let Some((1.., text)) = find_largest(most / 2, most, whole, fits)? {
        return Ok(Some(text));
    }
    // The first line alone is too long, so its beginning is better than nothing.
    let first = lines.first().map_or("", |line| line.text);
    let part = |bytes| render(0, first.floor_char_boundary(bytes));
    Ok(find_largest(1, first.len(), part, fits)?.map(|(_, text)| text))
}

/// Returns the largest number from `low` to `high` whose text fits, found by bisection, with its text.
fn find_largest(
    mut low: usize,
    mut high: usize,
    render: impl Fn(usize) -> String,
    fits: impl Fn(&str) -> Result<bool, Error>,
) -> Result<Option<(usize, String)>, Error> {
    let mut best = None;
    while low <= high {
        let middle = usize::midpoint(low, high);
        let text = render(middle);
        if fits(&text)? {
            best = Some((middle, text));
            low = middle + 1;
        } else if let Some(lower) = middle.checked_sub(1) {
            high = lower;
        } else {
            break;
        }
    }
    Ok(best)
}

/// Writes lines, and bytes of the one after them.
pub(crate) fn push_lines(text: &mut String, lines: &[Line<'_>], count: usize, bytes: usize) {
    for line in &lines[..count] {
        text.push_str(line.text);
        text.push('\n');
    }
    if bytes > 0 {
        text.push_str(&lines[count].text[..bytes]);
        text.push('\n');
    }
}
