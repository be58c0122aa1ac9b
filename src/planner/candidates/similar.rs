//! Texts that contain most of another text.
//!
//! - Input: the words of texts.
//! - Output: for one text, the texts that contain it, each with the share in per cent.
//! - Rules: S9 (near-duplicates and repeats).
//!
//! Runs of words are found by hash and then compared, so no decision depends on a hash.

use super::Rank;
use crate::text::words::Words;
use foldhash::quality::RandomState;
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::BuildHasher,
    rc::Rc,
};

/// The number of runs from which a text is compared by its runs. Shorter texts have to be equal.
pub(super) const FEWEST_RUNS: usize = 8;

/// Texts in which documents are searched. Each has a number, in the order of arrival.
///
/// A document is compared again only if texts have arrived since. With many budgets, most calls find the
/// answer of an earlier one.
#[derive(Debug)]
pub(crate) struct SimilarTexts<K> {
    numbers: BTreeMap<K, usize>,
    /// Texts that no document was compared with yet, by their number of words: a document is never left out
    /// for a shorter text, and many texts of a conversation are shorter than every document.
    waiting: BTreeMap<usize, Vec<(K, Rc<Words>)>>,
    indexed: Vec<(K, Rc<Words>)>,
    /// The places of runs by hash: the index of a text and of a word in it. A text has one place for each
    /// different run.
    runs: IndexMap<u64, SmallVec<[(u32, u32); 1]>, RandomState>,
    hasher: RandomState,
    /// By document, the number of texts that had arrived when it was compared, and those that contain it.
    found: BTreeMap<Rank, (usize, Vec<(K, u8)>)>,
}

impl<K> Default for SimilarTexts<K> {
    fn default() -> Self {
        Self {
            numbers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            indexed: Vec::new(),
            runs: IndexMap::default(),
            hasher: RandomState::default(),
            found: BTreeMap::new(),
        }
    }
}

impl<K: Copy + Ord> SimilarTexts<K> {
    /// Adds a text if it is new. Returns the number of texts up to this one.
    pub(crate) fn insert(&mut self, key: K, words: impl FnOnce() -> Rc<Words>) -> usize {
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let words = words();
            self.waiting.entry(words.len()).or_default().push((key, words));
        }
        number
    }

    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the texts that contain at least `least` per cent of the runs of a document, each with that
    /// share, among the first `texts` texts and perhaps later ones. A shorter text contains none, nor does
    /// one that lacks one of the numbers.
    pub(crate) fn containing(&mut self, rank: Rank, words: &Words, least: u8, texts: usize) -> &[(K, u8)] {
        if self.found.get(&rank).is_none_or(|(compared, _)| *compared < texts) {
            for (key, words) in self.waiting.split_off(&words.len()).into_values().flatten() {
                self.index(key, words);
            }
            self.found.insert(rank, (self.numbers.len(), self.search(words, least)));
        }
        self.found.get(&rank).map_or(&[], |(_, found)| found)
    }

    /// Adds the runs of a text to the index.
    fn index(&mut self, key: K, words: Rc<Words>) {
        let number = self.indexed.len() as u32;
        for at in 0..words.runs() {
            let run = words.run(at);
            let places = self.runs.entry(self.hasher.hash_one(run)).or_default();
            // A later place of the same run in the same text finds nothing more.
            let is_known = |(text, word): &(u32, u32)| *text == number && words.run(*word as usize) == run;
            if !places.iter().rev().take_while(|(text, _)| *text == number).any(is_known) {
                places.push((number, at as u32));
            }
        }
        self.indexed.push((key, words));
    }

    /// Searches a document in the index.
    fn search(&self, words: &Words, least: u8) -> Vec<(K, u8)> {
        let runs = words.runs();
        if runs < FEWEST_RUNS {
            let same = self.indexed.iter().filter(|(_, text)| !words.is_empty() && **text == *words);
            return same.map(|(key, _)| (*key, 100)).collect();
        }
        let numbers: BTreeSet<&str> = words.numbers().collect();
        // Numbers are few, so a text that lacks one is found at once. Most documents have numbers of their
        // own.
        let has_numbers: Vec<bool> = self.indexed.iter().map(|(_, text)| has_all(text, &numbers)).collect();
        if !has_numbers.contains(&true) {
            return Vec::new();
        }
        let needed = (runs as u64 * u64::from(least)).div_ceil(100);
        let mut found: Vec<(u32, u64)> = Vec::new();
        let mut missing = 0;
        for at in 0..runs {
            let run = words.run(at);
            let places = self.runs.get(&self.hasher.hash_one(run));
            let mut is_anywhere = false;
            for (text, word) in places.into_iter().flatten().filter(|(text, _)| has_numbers[*text as usize]) {
                if self.indexed[*text as usize].1.run(*word as usize) == run {
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
            let (key, other) = &self.indexed[text as usize];
            let is_contained = count >= needed && other.len() >= words.len();
            is_contained.then(|| (*key, (count * 100 / runs as u64) as u8))
        };
        found.into_iter().filter_map(contains).collect()
    }
}

/// Checks if a text has all of these numbers.
fn has_all(words: &Words, numbers: &BTreeSet<&str>) -> bool {
    let own: BTreeSet<&str> = if numbers.is_empty() { BTreeSet::new() } else { words.numbers().collect() };
    numbers.is_subset(&own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn containing(texts: &[&str], text: &str, least: u8) -> Vec<(usize, u8)> {
        let mut similar = SimilarTexts::default();
        for (at, text) in texts.iter().enumerate() {
            similar.insert(at, || Rc::new(Words::new(text)));
        }
        similar.containing(Rank::new(0), &Words::new(text), least, texts.len()).to_vec()
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
