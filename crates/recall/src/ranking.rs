//! The ranking of whole texts for a query, for evaluations that compare with plain retrieval.

use crate::{bm25::Bm25, postings::Postings, words::each_word};
use std::{cmp::Reverse, collections::BTreeMap};

/// The weight of the length of a text in per mille, as most libraries have it.
const LENGTH_WEIGHT: u64 = 750;

/// Texts, indexed for queries.
#[derive(Debug, Clone, Default)]
pub struct TextRanking {
    postings: BTreeMap<String, Postings>,
    lengths: Vec<u32>,
}

impl TextRanking {
    /// Indexes texts.
    #[must_use]
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ranking = Self::default();
        for (text, at) in texts.into_iter().zip(0..) {
            let mut length = 0;
            each_word(text, |word, _| {
                length += 1;
                match ranking.postings.get_mut(word) {
                    Some(postings) => postings.add(at, 1),
                    None => drop(ranking.postings.insert(word.to_owned(), Postings::new(at, 1))),
                }
            });
            ranking.lengths.push(length);
        }
        ranking
    }

    /// Returns the positions of the texts that share a word with the query, with their scores, best first.
    /// Texts of equal score keep their order.
    #[must_use]
    pub fn best(&self, query: &str) -> Vec<(usize, u64)> {
        let mut words: BTreeMap<String, u64> = BTreeMap::new();
        each_word(query, |word, _| *words.entry(word.to_owned()).or_default() += 1);
        let sum = self.lengths.iter().map(|length| u64::from(*length)).sum();
        let mut bm25 = Bm25::new(self.lengths.len() as u64, sum, LENGTH_WEIGHT);
        let mut scores = vec![0u64; self.lengths.len()];
        for (word, times) in words {
            let Some(postings) = self.postings.get(&word) else { continue };
            let rarity = bm25.rarity(u64::from(postings.passages()));
            postings.each(|at, count| {
                scores[at as usize] += times * bm25.score(rarity, count, self.lengths[at as usize]);
            });
        }
        let scores = scores.into_iter().enumerate();
        let mut best: Vec<(usize, u64)> = scores.filter(|(_, score)| *score > 0).collect();
        // The position breaks ties: no hash order and no float takes part.
        best.sort_by_key(|(at, score)| (Reverse(*score), *at));
        best
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_formula() {
        let texts =
            ["the cat sat on the mat", "the dog", "a cat and a dog and a bird met in the yard", "fish"];
        let ranking = TextRanking::new(texts);
        let lengths: Vec<f64> = texts.iter().map(|text| text.split(' ').count() as f64).collect();
        let average = lengths.iter().sum::<f64>() / lengths.len() as f64;
        let expected = |at: usize, word: &str| {
            let containing =
                texts.iter().filter(|text| text.split(' ').any(|one| one == word)).count() as f64;
            let count = texts[at].split(' ').filter(|one| *one == word).count() as f64;
            let rarity = (1.0 + (4.0 - containing + 0.5) / (containing + 0.5)).log2();
            rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[at] / average))
        };
        for (at, score) in ranking.best("the cat") {
            let expected = expected(at, "the") + expected(at, "cat");
            assert!((score as f64 / 65_536.0 - expected).abs() < 0.001, "{at}: {score}");
        }
        let order: Vec<usize> = ranking.best("cat").into_iter().map(|(at, _)| at).collect();
        assert_eq!(order, [0, 2]);
        assert!(ranking.best("horse").is_empty());
    }
}
