//! Texts that contain most of another text.
//!
//! - Input: the words of texts.
//! - Output: for one text, the texts that contain it, each with the share in per cent.
//! - Rules: S9 (near-duplicates and repeats).
//!
//! Runs of words are found by hash and then compared, so no decision depends on a hash.

use crate::text::words::Words;
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::{collections::BTreeSet, hash::BuildHasher, rc::Rc};

/// The number of runs from which a text is compared by its runs. Shorter texts have to be equal.
const FEWEST_RUNS: usize = 8;

/// Texts in which other texts are searched.
#[derive(Debug)]
pub(crate) struct SimilarTexts<K> {
    texts: Vec<(K, Rc<Words>)>,
    /// The places of runs by hash: the number of a text and of a word in it. A text has one place for each
    /// different run.
    runs: IndexMap<u64, SmallVec<[(u32, u32); 1]>, RandomState>,
    hasher: RandomState,
}

impl<K> Default for SimilarTexts<K> {
    fn default() -> Self {
        Self { texts: Vec::new(), runs: IndexMap::default(), hasher: RandomState::default() }
    }
}

impl<K: Copy> SimilarTexts<K> {
    /// Adds a text.
    pub(crate) fn insert(&mut self, key: K, words: Rc<Words>) {
        let number = self.texts.len() as u32;
        for at in 0..words.runs() {
            let run = words.run(at);
            let places = self.runs.entry(self.hasher.hash_one(run)).or_default();
            // A later place of the same run in the same text finds nothing more.
            let is_known = |(text, word): &(u32, u32)| *text == number && words.run(*word as usize) == run;
            if !places.iter().rev().take_while(|(text, _)| *text == number).any(is_known) {
                places.push((number, at as u32));
            }
        }
        self.texts.push((key, words));
    }

    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the texts that contain at least `least` per cent of the runs of a text, in the order in which
    /// they were added, each with that share. A shorter text contains none, nor does one that lacks one of
    /// the numbers.
    pub(crate) fn containing(&self, words: &Words, least: u8) -> Vec<(K, u8)> {
        let runs = words.runs();
        if runs < FEWEST_RUNS {
            let same = self.texts.iter().filter(|(_, text)| !words.is_empty() && **text == *words);
            return same.map(|(key, _)| (*key, 100)).collect();
        }
        let numbers: BTreeSet<&str> = words.numbers().collect();
        // Numbers are few, and a text without one of them need not be searched.
        if !numbers.is_empty() && !self.texts.iter().any(|(_, text)| has_all(text, &numbers)) {
            return Vec::new();
        }
        let needed = (runs as u64 * u64::from(least)).div_ceil(100);
        let mut found: Vec<(u32, u64)> = Vec::new();
        let mut missing = 0;
        for at in 0..runs {
            let run = words.run(at);
            let places = self.runs.get(&self.hasher.hash_one(run));
            let mut is_anywhere = false;
            for (text, word) in places.into_iter().flatten() {
                if self.texts[*text as usize].1.run(*word as usize) == run {
                    is_anywhere = true;
                    match found.binary_search_by_key(text, |(number, _)| *number) {
                        Ok(place) => found[place].1 += 1,
                        Err(place) => found.insert(place, (*text, 1)),
                    }
                }
            }
            // No text can have enough runs if all of them together lack too many.
            missing += u64::from(!is_anywhere);
            if missing > runs as u64 - needed {
                return Vec::new();
            }
        }
        let contains = |(text, count): (u32, u64)| {
            let (key, other) = &self.texts[text as usize];
            let is_longer = other.len() >= words.len();
            (count >= needed && is_longer && has_all(other, &numbers))
                .then(|| (*key, (count * 100 / runs as u64) as u8))
        };
        found.into_iter().filter_map(contains).collect()
    }
}

/// Checks if a text has all of these numbers.
fn has_all(words: &Words, numbers: &BTreeSet<&str>) -> bool {
    let mut left = numbers.clone();
    for number in words.numbers() {
        if left.is_empty() {
            break;
        }
        left.remove(number);
    }
    left.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn containing(texts: &[&str], text: &str, least: u8) -> Vec<(usize, u8)> {
        let mut similar = SimilarTexts::default();
        for (at, text) in texts.iter().enumerate() {
            similar.insert(at, Rc::new(Words::new(text)));
        }
        similar.containing(&Words::new(text), least)
    }

    const TEXT: &str =
        "The spare key is under the blue pot; the other one hangs behind the kitchen door, on the left.";

    #[test]
    fn punctuation_makes_no_difference() {
        assert_eq!(containing(&["Nothing.", TEXT], &TEXT.replace(';', "."), 100), [(1, 100)]);
    }

    #[test]
    fn longer_text_is_never_left_out_for_a_shorter_one() {
        let long = format!("{TEXT} And this follows.");
        assert_eq!(containing(&[TEXT], &long, 80), []);
        assert_eq!(containing(&[&long], TEXT, 100), [(0, 100)]);
    }

    #[test]
    fn other_number_makes_another_text() {
        let old = format!("{TEXT} It costs 40 crowns.");
        assert_eq!(containing(&[&old], &old.replace("40", "45"), 50), []);
        assert_eq!(containing(&[&old], &old.replace("left", "right"), 50), [(0, 73)]);
    }

    #[test]
    fn short_texts_have_to_be_equal() {
        assert_eq!(containing(&["Yes, at noon. Not later.", "yes at noon"], "Yes, at noon.", 50), [(1, 100)]);
        assert_eq!(containing(&["...", ""], "...", 50), []);
    }
}
