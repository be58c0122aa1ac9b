//! The words of a text by which it is indexed.
//!
//! - Input: a text of any script.
//! - Output: its words in lower case, in order, each with the end of its place in the text.
//! - Rules: a word is a run of letters and digits. The plural or possessive `s` of an English word is
//!   removed. In a script without spaces, each character is a word, and so are two characters next to each
//!   other.

use context_window::text::words::is_spaceless;
use unicode_segmentation::UnicodeSegmentation;

/// The maximum length of a word in bytes. Longer words are cut, because they are data in a text form.
const LONGEST: usize = 64;

/// Calls `found` with each word, and with the byte offset at which it ends.
pub(crate) fn each_word(text: &str, mut found: impl FnMut(&str, usize)) {
    let bytes = text.as_bytes();
    let mut word = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        if at < bytes.len() && !bytes[at].is_ascii() {
            // The whole stretch, because a letter that is not ASCII may follow or precede others of the word.
            while at < bytes.len() && (!bytes[at].is_ascii() || bytes[at].is_ascii_alphanumeric()) {
                at += 1;
            }
            each_foreign_word(&text[start..at], start, &mut word, &mut found);
        } else if at > start {
            // The `s` of a possessive form is no word.
            let is_possessive = &bytes[start..at] == b"s" && start > 0 && bytes[start - 1] == b'\'';
            if !is_possessive {
                word.clear();
                word.push_str(&text[start..at.min(start + LONGEST)]);
                word.make_ascii_lowercase();
                found(without_plural(&word), at);
            }
        } else {
            at += 1;
        }
    }
}

/// Calls `found` with the words of a stretch that has letters outside of ASCII, and no ASCII punctuation.
fn each_foreign_word(stretch: &str, start: usize, word: &mut String, found: &mut impl FnMut(&str, usize)) {
    let mut rest = 0;
    while let Some(c) = stretch[rest..].chars().next() {
        let from = rest;
        if is_spaceless(c) {
            let mut before: Option<char> = None;
            for c in stretch[from..].chars().take_while(|c| is_spaceless(*c)) {
                rest += c.len_utf8();
                // Punctuation inside the ranges separates characters like in other scripts.
                if !c.is_alphanumeric() {
                    before = None;
                    continue;
                }
                word.clear();
                word.push(c);
                found(word, start + rest);
                if let Some(before) = before {
                    word.clear();
                    word.extend([before, c]);
                    found(word, start + rest);
                }
                before = Some(c);
            }
            continue;
        }
        rest += stretch[from..].find(is_spaceless).unwrap_or(stretch.len() - from);
        for (at, part) in stretch[from..rest].unicode_word_indices() {
            // A typographic apostrophe is punctuation as in ASCII.
            for (nth, piece) in part.split('\u{2019}').enumerate() {
                if piece.is_empty() || nth > 0 && piece == "s" {
                    continue;
                }
                let end = piece.as_ptr() as usize - part.as_ptr() as usize + piece.len();
                word.clear();
                word.extend(piece.chars().flat_map(char::to_lowercase));
                word.truncate(word.floor_char_boundary(LONGEST));
                found(without_plural(word), start + from + at + end);
            }
        }
    }
}

/// Removes the `s` of an English plural. Other words that end like one lose it in the index and in questions
/// alike.
fn without_plural(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if word.len() > 3 && !stem.ends_with('s') && word.is_ascii() => stem,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word, end| {
            assert!(text.is_char_boundary(end) && end > 0, "{text}: {end}");
            words.push(word.to_owned());
        });
        words
    }

    #[test]
    fn words_of_scripts_with_spaces_are_whole() {
        assert_eq!(words("My dog's 3 Collars, (No. 7b)!"), ["my", "dog", "3", "collar", "no", "7b"]);
        assert_eq!(words("Die Straßen in Köln; don’t"), ["die", "straßen", "in", "köln", "don", "t"]);
        assert_eq!(words("أين المفتاح؟"), ["أين", "المفتاح"]);
        assert_eq!(words("где ключ?naïve"), ["где", "ключ", "naïve"]);
        assert_eq!(words("glass bus gas"), ["glass", "bus", "gas"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn scripts_without_spaces_have_single_characters_and_pairs() {
        assert_eq!(words("钥匙在OK"), ["钥", "匙", "钥匙", "在", "匙在", "ok"]);
        assert_eq!(words("鍵は、青"), ["鍵", "は", "鍵は", "青"]);
        assert!(words("กุญแจอยู่ที่ไหน").len() > 10);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(words(&"a".repeat(1_000)), ["a".repeat(LONGEST)]);
        assert_eq!(words(&"é".repeat(1_000)), ["é".repeat(LONGEST / 2)]);
    }
}
