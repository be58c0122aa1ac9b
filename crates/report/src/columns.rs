//! Functions that cut, pad and wrap text to a number of terminal columns.
//!
//! Text is split only between grapheme clusters: a letter keeps its combining marks, and an emoji made of
//! several characters stays whole.

use std::collections::{BTreeMap, BTreeSet};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};
use unicode_width::UnicodeWidthStr;

/// Cuts a text to at most `columns` columns. A longer text ends with an ellipsis. Letters keep their
/// combining marks, and emoji of several characters stay whole.
#[must_use]
#[doc(hidden)]
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.into();
    }
    // The ellipsis takes one column.
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    text[..fitting(text, room)].to_owned() + "…"
}

/// Returns a text of exactly `columns` columns. A shorter text is padded with spaces, a longer one is cut
/// with an ellipsis.
#[must_use]
#[doc(hidden)]
pub fn fitted(text: &str, columns: usize) -> String {
    let cut = cut(text, columns);
    let fill = columns.saturating_sub(cut.width());
    cut + &" ".repeat(fill)
}

/// Returns an id in exactly `columns` columns. A longer id loses its middle, because ids often differ only at
/// their end.
#[must_use]
#[doc(hidden)]
pub fn fitted_id(id: &str, columns: usize) -> String {
    fitted(&cut_id(id, columns), columns)
}

/// Cuts each id to at most `columns` columns by removing its middle.
///
/// If two different ids look the same after the cut, each of them ends with `#` and its number from `ids`.
#[must_use]
#[doc(hidden)]
pub fn cut_ids<'a>(ids: impl IntoIterator<Item = (usize, &'a str)>, columns: usize) -> Vec<String> {
    let cut: Vec<(usize, &str, String)> =
        ids.into_iter().map(|(number, id)| (number, id, cut_id(id, columns))).collect();
    // Maps each cut id to the first full id that produced it. A second, different id makes the cut ambiguous.
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut alike: BTreeSet<&str> = BTreeSet::new();
    for (_, id, cut) in &cut {
        if *first.entry(cut).or_insert(id) != *id {
            alike.insert(cut);
        }
    }
    let told_apart = |(number, id, cut): &(usize, &str, String)| {
        if !alike.contains(cut.as_str()) {
            return cut.clone();
        }
        let number = format!("#{number}");
        // The number survives even if nothing of the id does.
        match columns.checked_sub(number.width()) {
            Some(room) => cut_id(id, room) + &number,
            None => cut_id(&number, columns),
        }
    };
    cut.iter().map(told_apart).collect()
}

/// Cuts an id to at most `columns` columns. A longer id loses its middle.
fn cut_id(id: &str, columns: usize) -> String {
    if id.width() <= columns || columns < 3 {
        return cut(id, columns);
    }
    // The end of the id gets half of the columns without the ellipsis. The start gets the rest.
    let (mut from, mut used) = (id.len(), 0);
    for (at, letter) in id.grapheme_indices(true).rev() {
        used += letter.width();
        if used > (columns - 1) / 2 {
            break;
        }
        from = at;
    }
    let end = &id[from..];
    let start = &id[..fitting(id, (columns - 1).saturating_sub(end.width()))];
    format!("{start}…{end}")
}

/// Breaks a text into lines of at most `columns` columns.
///
/// Lines break between words, and inside a word only if it is longer than a line. A letter that is wider than
/// `columns` gets a line of its own.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word;
        loop {
            let line = lines.last_mut().map(|line| (line.width(), line));
            let Some((used, line)) = line else { return lines };
            // A space precedes every word but the first of a line. The check uses the length and not the
            // width, because a word can have no width, for example a zero-width space.
            let space = usize::from(!line.is_empty());
            if used + space + word.width() <= columns {
                if space > 0 {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            if space > 0 {
                lines.push(String::new());
                continue;
            }
            // Taking at least one letter guarantees progress if even that letter is too wide.
            let first = word.graphemes(true).next().map_or(0, str::len);
            let at = fitting(word, columns).max(first);
            line.push_str(&word[..at]);
            word = &word[at..];
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// Returns the first `characters` characters of a text, or `None` if the text is not longer than that. A cut
/// inside a grapheme cluster moves to the start of the cluster.
pub(super) fn head(text: &str, characters: usize) -> Option<&str> {
    let (at, _) = text.char_indices().nth(characters)?;
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let between = cursor.is_boundary(text, 0).unwrap_or(true);
    let before = if between { None } else { cursor.prev_boundary(text, 0).ok().flatten() };
    // If one cluster fills the whole beginning (a letter can have a thousand marks), it is cut inside.
    Some(&text[..before.filter(|before| *before > 0).unwrap_or(at)])
}

/// Returns a text of at most `characters` characters: the beginning and the end of `text` with an ellipsis
/// between them. Returns `None` if the text is not longer than that, or if `characters` is
/// less than 3.
pub(super) fn middle_cut(text: &str, characters: usize) -> Option<String> {
    text.char_indices().nth(characters)?;
    let end = (characters - 1) / 2;
    let start = head(text, characters - 1 - end)?;
    // Searching from the end reads only the part that is kept.
    let (at, _) = text.char_indices().rev().nth(end.checked_sub(1)?)?;
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let between = cursor.is_boundary(text, 0).unwrap_or(true);
    let after = if between { None } else { cursor.next_boundary(text, 0).ok().flatten() };
    let from = after.filter(|after| *after < text.len()).unwrap_or(at);
    Some(format!("{start}…{}", &text[from..]))
}

/// Returns the length in bytes of the longest beginning of a text that fits into `columns` columns.
fn fitting(text: &str, columns: usize) -> usize {
    let (mut end, mut used) = (0, 0);
    for (at, letter) in text.grapheme_indices(true) {
        used += letter.width();
        if used > columns {
            break;
        }
        end = at + letter.len();
    }
    // In a few scripts a text is wider than the sum of its letters.
    while text[..end].width() > columns {
        end = text[..end].grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grapheme_clusters_are_not_split() {
        let family = "👩\u{200d}👩\u{200d}👧\u{200d}👦";
        for (text, columns, expected) in [
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("abc", 0, ""),
            ("🇩🇪🇫🇷", 3, "🇩🇪…"),
            ("👍🏽👍🏽", 3, "👍🏽…"),
        ] {
            assert_eq!(cut(text, columns), expected, "{text} in {columns}");
        }
        assert_eq!(cut(&format!("{family}{family}"), 3), format!("{family}…"));
        assert_eq!(wrapped(&format!("{family}{family}"), 2), [family, family]);
        assert_eq!(wrapped("\u{200b} \u{e9}t\u{e9} x", 4), ["\u{200b} \u{e9}t\u{e9}", "x"]);
        assert_eq!(wrapped("\u{200b} abcdef", 4), ["\u{200b}", "abcd", "ef"]);
        assert_eq!(head(&format!("a{family}b"), 3), Some("a"));
        assert_eq!(head("abc", 3), None);
        for (id, columns, expected) in [
            ("2hop__150763_14904#6", 20, "2hop__150763_14904#6"),
            ("2hop__150763_14904#6", 14, "2hop__1…4904#6"),
            ("m0..m228 (229)", 11, "m0..m…(229)"),
            ("日本語の名前", 7, "日本…前"),
            ("日本語の名前", 6, "日…前"),
            ("abcdef", 2, "a…"),
        ] {
            let expected = fitted(expected, columns);
            assert_eq!(fitted_id(id, columns), expected, "{id} in {columns}");
        }
        let marks = format!("e{}", "\u{301}".repeat(900));
        assert_eq!(head(&marks, 300).unwrap().chars().count(), 300);
    }

    /// Uses ids like those of retrievers: with a long common prefix, a long common suffix, or both.
    #[test]
    fn ids_that_differ_look_different() {
        let long = "corpus/2026/reports/quarter".repeat(3);
        let by_end: Vec<String> = (0..30).map(|n| format!("{long}#{n}")).collect();
        let by_start: Vec<String> = (0..30).map(|n| format!("{n}-{long}")).collect();
        let by_middle: Vec<String> = (0..30).map(|n| format!("{long}{n}{long}")).collect();
        let wide: Vec<String> =
            (0..30).map(|n| format!("{}{n}{}", "日本".repeat(20), "語".repeat(40))).collect();
        for ids in [&by_end, &by_start, &by_middle, &wide] {
            for columns in [8, 12, 20, 41, 60] {
                let numbered = ids.iter().enumerate().map(|(at, id)| (at + 1, id.as_str()));
                let cut = cut_ids(numbered, columns);
                let seen: BTreeSet<&String> = cut.iter().collect();
                assert_eq!(seen.len(), ids.len(), "{columns}: {cut:?}");
                assert!(cut.iter().all(|id| id.width() <= columns), "{columns}: {cut:?}");
            }
        }
        assert_eq!(cut_ids([(1, by_end[7].as_str()), (2, &by_end[8])], 9), ["corp…er#7", "corp…er#8"]);
        assert_eq!(cut_ids([(1, by_middle[7].as_str()), (9, &by_middle[8])], 9), ["cor…ter#1", "cor…ter#9"]);
        // Two rows with the same id are not ambiguous.
        assert_eq!(cut_ids([(1, by_middle[7].as_str()), (9, &by_middle[7])], 9), ["corp…rter", "corp…rter"]);
        assert_eq!(middle_cut("abc", 3), None);
        assert_eq!(middle_cut("abcdefgh", 5).unwrap(), "ab…gh");
        let family = "👩\u{200d}👩\u{200d}👧\u{200d}👦";
        let cut = middle_cut(&format!("{family}{}{family}", "x".repeat(70)), 60).unwrap();
        assert!(cut.starts_with(family) && cut.ends_with(family), "{cut}");
    }

    #[test]
    fn lines_fit_in_every_script() {
        let texts = [("日本語の長い名前", 7), ("abc", 7), ("🦀🦀🦀🦀", 5), ("e\u{301}e\u{301}", 2)];
        for (text, columns) in texts {
            assert!(cut(text, columns).width() <= columns, "{text}");
            assert_eq!(fitted(text, columns).width(), columns, "{text}");
            assert_eq!(fitted_id(text, columns).width(), columns, "{text}");
            let lines = wrapped(text, columns);
            assert!(lines.iter().all(|line| line.width() <= columns), "{lines:?}");
            assert_eq!(lines.concat(), text);
        }
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("🦀", 1), ["🦀"]);
    }
}
