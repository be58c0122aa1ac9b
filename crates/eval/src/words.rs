//! The words of texts, in which evidence is found even if case, spaces or punctuation differ.

pub(crate) use context_window::text::words::Words;
use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

/// A text with fewer words proves nothing, because another item may have the same words.
const FEWEST: usize = 8;

/// The share of a text's runs of words, in per cent, that a near-duplicate has.
const NEAR: usize = 90;

/// Checks if a text contains the words of another one, next to each other and in their order.
pub(crate) fn contains(text: &Words, part: &Words) -> bool {
    let (text, part): (Vec<&str>, Vec<&str>) = (text.iter().collect(), part.iter().collect());
    !part.is_empty() && text.windows(part.len()).any(|words| words == part)
}

/// The texts of a prompt, in which other texts are found.
#[derive(Debug, Default)]
pub(crate) struct SentWords(BTreeSet<u64>);

impl SentWords {
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(texts.into_iter().flat_map(|text| runs(&Words::new(text))).collect())
    }

    /// Checks if a text of at least 8 words, or a near-duplicate of it, is in the prompt.
    pub(crate) fn contains(&self, text: &Words) -> bool {
        // A set, so that a text that repeats a phrase does not weigh it twice.
        let all = runs(text);
        let found = all.intersection(&self.0).count();
        text.len() >= FEWEST && found * 100 >= all.len() * NEAR
    }
}

/// Returns a hash of each run of neighbouring words.
fn runs(words: &Words) -> BTreeSet<u64> {
    let hash = |at| {
        // Hashes are only compared with those of the same run. The default keys are fixed.
        let mut hasher = DefaultHasher::new();
        words.run(at).hash(&mut hasher);
        hasher.finish()
    };
    (0..words.runs()).map(hash).collect()
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
        assert!(contains(&Words::new("Ida: Yes, at noon."), &short));
        assert!(!contains(&Words::new("Yes, not at noon."), &short));
        assert!(!contains(&Words::new("..."), &Words::new("...")));
    }
}
