//! Long texts as an error may hold them.

use std::borrow::Cow;

/// A text of at most `most` characters as it is; of a longer one its first `head`, its last, and how many bytes it has. The end
/// has what `head` leaves, less an eighth for that number.
#[doc(hidden)]
#[must_use]
pub fn abridged(text: &str, most: usize, head: usize) -> Cow<'_, str> {
    let place = |nth: usize| text.char_indices().nth(nth).map(|(at, _)| at);
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
