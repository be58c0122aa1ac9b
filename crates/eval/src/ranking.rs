//! Okapi BM25 (Robertson and others 1994) over texts, in whole numbers, so that every machine ranks alike.

use crate::{
    logarithm::{FRACTION, log2},
    words::Words,
};
use std::collections::BTreeMap;

/// The words of texts, indexed for queries.
pub(crate) struct Ranking {
    /// The texts that contain each word, with the number of times.
    postings: BTreeMap<String, Vec<(usize, u32)>>,
    /// The number of words of each text.
    lengths: Vec<usize>,
}

impl Ranking {
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ranking = Self { postings: BTreeMap::new(), lengths: Vec::new() };
        for (at, text) in texts.into_iter().enumerate() {
            let words = Words::new(text);
            ranking.lengths.push(words.iter().count());
            for word in words.iter() {
                let postings = ranking.postings.entry(word.to_owned()).or_default();
                // Texts are added in order, so only the last entry can be of the same text.
                match postings.last_mut() {
                    Some((last, count)) if *last == at => *count += 1,
                    _ => postings.push((at, 1)),
                }
            }
        }
        ranking
    }

    /// Returns the positions of the texts that share a word with the query, with their scores, best first.
    /// Texts of equal score keep their order.
    pub(crate) fn best(&self, query: &str) -> Vec<(usize, u64)> {
        let words: BTreeMap<String, u64> =
            Words::new(query).iter().fold(BTreeMap::new(), |mut counts, word| {
                *counts.entry(word.to_owned()).or_default() += 1;
                counts
            });
        let mut scores = vec![0u64; self.lengths.len()];
        for (word, times) in words {
            let Some(postings) = self.postings.get(&word) else { continue };
            let rarity = self.rarity(postings.len() as u64);
            for (at, count) in postings {
                scores[*at] += times * ((rarity * self.frequency(*at, *count)) >> FRACTION);
            }
        }
        let mut best: Vec<(usize, u64)> =
            scores.into_iter().enumerate().filter(|(_, score)| *score > 0).collect();
        // The position breaks ties: no hash order and no float takes part.
        best.sort_by_key(|(at, score)| (std::cmp::Reverse(*score), *at));
        best
    }

    /// Returns the logarithm of 1 + (N - n + 0.5) / (n + 0.5), to the base 2. The base changes no order.
    fn rarity(&self, containing: u64) -> u64 {
        log2(2 * self.lengths.len() as u64 + 2, 2 * containing + 1)
    }

    /// Returns f (k + 1) / (f + k (1 - b + b length / average)) with k = 1.2 and b = 0.75.
    fn frequency(&self, at: usize, count: u32) -> u64 {
        let (count, all) = (u128::from(count), self.lengths.iter().sum::<usize>() as u128);
        let relative_length = self.lengths[at] as u128 * self.lengths.len() as u128;
        let score = ((220 * count * all) << FRACTION) / (100 * count * all + 30 * all + 90 * relative_length);
        score as u64
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
        let ranking = Ranking::new(texts);
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
