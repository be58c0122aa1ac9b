//! The words of texts, in which evidence is found even if case, spaces or punctuation differ.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

/// The number of neighbouring words in a shingle.
const SHINGLE: usize = 5;

/// A text with fewer words proves nothing, because another item may have the same words.
const FEWEST: usize = 8;

/// The share of a text's shingles, in per cent, that a near-duplicate has.
const NEAR: usize = 90;

/// The words of a text in lower case. A character of a script without spaces is a word of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn new(text: &str) -> Self {
        let mut words = Vec::new();
        let mut word = String::new();
        for c in text.chars() {
            if is_spaceless(c) {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                words.push(c.to_string());
            } else if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
            } else if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
        }
        words.extend((!word.is_empty()).then_some(word));
        Self(words)
    }

    /// Returns true if there is no word.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks if these words contain others, next to each other and in their order.
    pub(crate) fn contains(&self, part: &Self) -> bool {
        !part.is_empty() && self.0.windows(part.0.len()).any(|words| words == part.0)
    }

    /// Returns the words in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns a hash of each run of neighbouring words.
    fn shingles(&self) -> impl Iterator<Item = u64> {
        self.0.windows(SHINGLE).map(|words| {
            // Hashes are only compared with those of the same run. The default keys are fixed.
            let mut hasher = DefaultHasher::new();
            words.hash(&mut hasher);
            hasher.finish()
        })
    }
}

/// Checks if a character belongs to a script that is written without spaces.
fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The texts of a prompt, in which other texts are found.
#[derive(Debug, Default)]
pub(crate) struct SentWords(BTreeSet<u64>);

impl SentWords {
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(texts.into_iter().flat_map(|text| Words::new(text).shingles().collect::<Vec<_>>()).collect())
    }

    /// Checks if a text of at least 8 words, or a near-duplicate of it, is in the prompt.
    pub(crate) fn contains(&self, text: &Words) -> bool {
        // A set, so that a text that repeats a phrase does not weigh it twice.
        let all: BTreeSet<u64> = text.shingles().collect();
        let found = all.intersection(&self.0).count();
        text.0.len() >= FEWEST && found * 100 >= all.len() * NEAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "The spare key is under the blue pot; the other one hangs behind the kitchen door, on the left.";

    #[test]
    fn text_is_found_in_another_case_and_with_other_punctuation() {
        let sent = format!("Earlier:\n> {}\nEnd.", TEXT.to_uppercase().replace(';', " - "));
        assert!(SentWords::new([sent.as_str()]).contains(&Words::new(TEXT)));
    }

    #[test]
    fn near_duplicate_is_found_and_half_a_text_is_not() {
        let long = [TEXT, &TEXT.replace("key", "ticket"), &TEXT.replace("pot", "chair")].concat();
        let near = long.replacen("left", "right", 1);
        assert!(SentWords::new([near.as_str()]).contains(&Words::new(&long)));
        let half = &long[..long.len() / 2];
        assert!(!SentWords::new([half]).contains(&Words::new(&long)));
    }

    #[test]
    fn short_text_is_not_found_among_others() {
        let short = Words::new("Yes, at noon.");
        assert!(!SentWords::new(["Is it open? Yes, at noon. Not later."]).contains(&short));
        assert!(Words::new("Ida: Yes, at noon.").contains(&short));
        assert!(!Words::new("Yes, not at noon.").contains(&short));
        assert!(!Words::new("...").contains(&Words::new("...")));
    }

    #[test]
    fn scripts_without_spaces_have_a_word_for_each_character() {
        let words = Words::new("我的钥匙在蓝色花盆下面 OK");
        assert_eq!(words.iter().count(), 12);
        assert_eq!(words.iter().last(), Some("ok"));
    }
}
