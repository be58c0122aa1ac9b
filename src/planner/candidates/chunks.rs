//! Chunks of one source that overlap.
//!
//! - Input: two documents of one source.
//! - Output: the text at the end of the first with which the second begins.
//! - Rules: S14.

use crate::{rag::RagItem, text::words::Words};

/// The least words of an overlap if nothing else says that a chunk follows another one.
const FEWEST_WORDS: usize = 8;

/// The least words if positions say so. Fewer words may be the same by chance.
const FEWEST_WORDS_IN_ORDER: usize = 3;

/// The least bytes of an overlap of [`FEWEST_WORDS`] words.
pub(super) const FEWEST_BYTES: usize = 2 * FEWEST_WORDS - 1;

/// Returns the overlap of two documents of one source, in bytes: the second begins with the end of the first.
/// Returns `None` if the second does not follow the first.
pub(super) fn overlap(before: &RagItem, after: &RagItem) -> Option<usize> {
    // The line before recalled messages says that they are a record, which is true of no other document.
    if before.messages.is_some() != after.messages.is_some() {
        return None;
    }
    if let (Some(first), Some(second)) = (&before.span, &after.span)
        && let Some(length) = span_overlap(before, after, first.end.checked_sub(second.start))
    {
        return (first.start < second.start && first.end < second.end).then_some(length);
    }
    let fewest = match (before.position, after.position) {
        (Some(first), Some(second)) if first.checked_add(1) == Some(second) => FEWEST_WORDS_IN_ORDER,
        (Some(_), Some(_)) => return None,
        _ => FEWEST_WORDS,
    };
    let length = longest_overlap(&before.text, &after.text)?;
    (Words::new(&after.text[..length]).len() >= fewest).then_some(length)
}

/// Checks if the spans or positions of two documents allow that one follows the other.
pub(super) fn may_be_neighbours(one: &RagItem, other: &RagItem) -> bool {
    if let (Some(one), Some(other)) = (&one.span, &other.span)
        && one.start <= other.end
        && other.start <= one.end
    {
        return true;
    }
    match (one.position, other.position) {
        (Some(one), Some(other)) => one.abs_diff(other) == 1,
        _ => true,
    }
}

/// Returns the overlap that spans state, in bytes. `length` counts bytes or characters. Returns `None` if the
/// texts do not overlap so.
fn span_overlap(before: &RagItem, after: &RagItem, length: Option<u64>) -> Option<usize> {
    let length = usize::try_from(length?).ok()?;
    let text = &*after.text;
    let in_bytes = Some(length).filter(|length| text.is_char_boundary(*length));
    let in_characters = text.char_indices().map(|(at, _)| at).nth(length);
    let ends = |length: &usize| *length < text.len() && before.text.ends_with(&text[..*length]);
    in_bytes.into_iter().chain(in_characters).find(ends)
}

/// Returns the length of the longest end of `before` with which `after` begins, shorter than both. Returns
/// `None` if there is none.
fn longest_overlap(before: &str, after: &str) -> Option<usize> {
    let pattern = after.as_bytes();
    let borders = borders(pattern);
    let most = before.len().min(after.len()).saturating_sub(1);
    let mut length = 0;
    // The search of Knuth, Morris and Pratt: linear in both texts, whatever they contain.
    for byte in &before.as_bytes()[before.len() - most..] {
        while length > 0 && pattern[length] != *byte {
            length = borders[length - 1];
        }
        length += usize::from(pattern[length] == *byte);
    }
    while length > 0 && !after.is_char_boundary(length) {
        length = borders[length - 1];
    }
    (length > 0).then_some(length)
}

/// Returns the length of the longest proper beginning of each prefix that is also its end.
fn borders(pattern: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[at] != pattern[length] {
            length = borders[length - 1];
        }
        length += usize::from(pattern[at] == pattern[length]);
        borders[at] = length;
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunk(text: &str) -> RagItem {
        RagItem::new("i", 1.0, text).with_origin("o")
    }

    #[test]
    fn eight_words_are_an_overlap() {
        let before = chunk("First part. One two three four five six seven eight");
        let after = chunk("One two three four five six seven eight nine.");
        assert_eq!(overlap(&before, &after), Some(39));
        assert_eq!(overlap(&after, &before), None);
        let seven = chunk("two three four five six seven eight nine.");
        assert_eq!(overlap(&before, &seven), None);
    }

    #[test]
    fn positions_need_three_words_and_spans_none() {
        let (before, after) = (chunk("one two three four"), chunk("two three four five"));
        assert_eq!(overlap(&before, &after), None);
        let at = |chunk: &RagItem, position| chunk.clone().with_position(position);
        assert_eq!(overlap(&at(&before, 4), &at(&after, 5)), Some(14));
        assert_eq!(overlap(&at(&before, 4), &at(&after, 6)), None);
        let two = chunk("three four five six");
        assert_eq!(overlap(&at(&before, 4), &at(&two, 5)), None);
        let touching = (chunk("one ").with_span(0..4), chunk("two").with_span(4..7));
        assert_eq!(overlap(&touching.0, &touching.1), Some(0));
        let characters = (chunk("über uns").with_span(0..8), chunk("uns alle").with_span(5..13));
        assert_eq!(overlap(&characters.0, &characters.1), Some(3));
    }

    #[test]
    fn stated_places_exclude_an_overlap() {
        let text = "one two three four five six seven eight nine";
        let (before, after) = (chunk(&format!("zero {text}")), chunk(&format!("{text} ten")));
        assert_eq!(overlap(&before, &after), Some(text.len()));
        let at = |chunk: &RagItem, position| chunk.clone().with_position(position);
        assert_eq!(overlap(&at(&before, 1), &at(&after, 3)), None);
        // A text that begins where the other one does is no continuation, whatever its end.
        let longer = chunk(&format!("zero {text} ten")).with_span(0..53);
        assert_eq!(overlap(&before.clone().with_span(0..49), &longer), None);
        // A span that the texts contradict counts for nothing.
        assert_eq!(overlap(&before.with_span(0..49), &after.with_span(40..88)), Some(text.len()));
    }

    proptest! {
        #[test]
        fn longest_overlap_is_found(before in "[aä]{0,8}", after in "[aä]{0,8}") {
            let fits = |length: &usize| after.is_char_boundary(*length) && before.ends_with(&after[..*length]);
            let longest = (1..before.len().min(after.len())).rev().find(fits);
            prop_assert_eq!(longest_overlap(&before, &after), longest);
        }
    }
}
