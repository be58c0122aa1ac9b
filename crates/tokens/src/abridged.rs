//! Shortens long texts for error messages.

use std::borrow::Cow;

/// Returns a text of at most `most` characters unchanged. A longer text is shortened to its first `head`
/// characters, an ellipsis, its last characters and its length in bytes. The last part has `most - head`
/// characters, less an eighth of `most` reserved for the length.
#[doc(hidden)]
#[must_use]
pub fn abridged(text: &str, most: usize, head: usize) -> Cow<'_, str> {
    let place = |nth: usize| text.char_indices().nth(nth).map(|(at, _)| at);
    // Complexity: reads O(`most`) characters; the middle of a longer text is never scanned. A text of at most
    // `most` bytes has at most `most` characters, so the length alone decides for short texts.
    let (false, Some(_), Some(to)) = (text.len() <= most, place(most), place(head)) else {
        return text.into();
    };
    let tail = most.saturating_sub(head + most / 8).max(1);
    let from = text.char_indices().rev().nth(tail - 1).map_or(text.len(), |(at, _)| at);
    let digits = text.len().to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = (at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(',');
        comma.into_iter().chain([digit])
    };
    let bytes: String = digits.chars().enumerate().flat_map(group).collect();
    format!("{}…{} ({bytes} bytes)", &text[..to], &text[from..]).into()
}
