//! The search for the passages that a question needs.
//!
//! - Input: an index, its conversation, and the words of a question.
//! - Output: passages with scores, best first.
//! - Rules: the score of a passage is its BM25. In a dialogue of short turns, the passages within 500 words
//!   add to it, the near ones more: a topic is a stretch of the dialogue. Passages are ordered by this score
//!   in relation to their length, because several short ones fit into the tokens of a long one. The 256 best
//!   passages and their neighbours are compared. Of equal scores, the newer passage comes first. The question
//!   itself, messages that a rewind removed, and those before a fresh start are left out.

use crate::{bm25::Bm25, index::RecallIndex, passage::Passage, query::Query, words::each_word};
use context_window::Conversation;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    ops::Range,
};

/// The weight of the length of a passage in per mille. Long replies would win by their length otherwise.
const LENGTH_WEIGHT: u64 = 1_000;

/// The number of best passages whose neighbours are compared.
const PEAKS: usize = 256;

/// The distance in words from which a neighbour adds nothing.
const REACH: u64 = 500;

/// The length in words that halves the score of a passage. With less, the order would be that of the score
/// per word, and the shortest passages would win.
const HALF: u64 = 200;

/// A passage that was found, and the end of its messages that may be quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) passage: usize,
    /// The position after the last message that may be quoted.
    pub(crate) end: u32,
    pub(crate) score: u64,
}

/// The parts of a conversation that are not searched.
pub(crate) struct Cuts {
    /// Passages of which only the messages before a position are searched.
    partial: BTreeMap<usize, u32>,
    /// Passages that are left out.
    whole: Vec<Range<usize>>,
}

impl Cuts {
    pub(crate) fn new(index: &RecallIndex, question: Option<usize>) -> Self {
        let mut cuts = Self { partial: BTreeMap::new(), whole: Vec::new() };
        let question = question.map(|at| at as u32..at as u32 + 1);
        for range in question.iter().chain(index.removed()).chain(&index.before_fresh_start()) {
            let from = index.passages.partition_point(|passage| passage.start.message < range.start);
            // A rewind ends a passage, so only the messages before its range remain in one.
            if let Some(before) = from.checked_sub(1)
                && index.passages[before].end.message >= range.start
            {
                let end = cuts.partial.entry(before).or_insert(range.start);
                *end = (*end).min(range.start);
            }
            let to = index.passages.partition_point(|passage| passage.start.message < range.end);
            cuts.whole.push(from..to);
        }
        cuts
    }

    /// Returns the position after the last message of a passage that may be quoted. Returns `None` if the
    /// passage is left out.
    pub(crate) fn end(&self, index: &RecallIndex, passage: usize) -> Option<u32> {
        if self.whole.iter().any(|range| range.contains(&passage)) {
            return None;
        }
        let end = index.passages[passage].end.message + 1;
        Some(self.partial.get(&passage).map_or(end, |cut| end.min(*cut)))
    }
}

/// Returns the statistics of an index.
pub(crate) fn statistics(index: &RecallIndex) -> Bm25 {
    Bm25::new(index.passages.len() as u64, index.sum, LENGTH_WEIGHT)
}

/// Returns the best passages for a query, best first, with at least `least` as score.
pub(crate) fn search(
    index: &RecallIndex,
    log: &Conversation,
    query: &Query<'_>,
    cuts: &Cuts,
    bm25: &mut Bm25,
    least: u64,
) -> Vec<Found> {
    let mut own = vec![0u32; index.passages.len()];
    for word in &query.words {
        word.postings.each(|passage, count| {
            let length = u32::from(index.lengths[passage as usize]);
            let score = u64::from(word.weight) * bm25.score(word.rarity, count, length);
            let sum = &mut own[passage as usize];
            *sum = sum.saturating_add(score as u32);
        });
    }
    // Before the best are chosen, so that the question does not displace one of them.
    for range in &cuts.whole {
        own[range.clone()].fill(0);
    }
    for (passage, end) in &cuts.partial {
        if own[*passage] > 0 {
            own[*passage] = partial_score(index, log, query, bm25, *passage, *end);
        }
    }
    let mut found: Vec<Found> = candidates(index, &best(&own))
        .into_iter()
        .filter_map(|passage| {
            let score = with_neighbours(index, &own, passage);
            let is_hit = score > 0 && score >= least;
            let end = cuts.end(index, passage).filter(|_| is_hit)?;
            Some(Found { passage, end, score: by_length(score, u64::from(index.lengths[passage])) })
        })
        .collect();
    found.sort_by_key(|found| Reverse((found.score, found.passage)));
    found
}

/// Returns a score in relation to the length of its passage.
fn by_length(score: u64, words: u64) -> u64 {
    score * HALF / (HALF + words)
}

/// Returns the passages with the best scores of their own.
fn best(own: &[u32]) -> Vec<usize> {
    let mut best: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::with_capacity(PEAKS + 1);
    let mut least = 1;
    for (passage, score) in own.iter().enumerate() {
        // A later passage with an equal score replaces an earlier one.
        if *score >= least {
            best.push(Reverse((*score, passage)));
            if best.len() > PEAKS {
                best.pop();
                least = best.peek().map_or(least, |Reverse((score, _))| *score);
            }
        }
    }
    best.into_iter().map(|Reverse((_, passage))| passage).collect()
}

/// Returns the best passages and those within their reach, in order.
fn candidates(index: &RecallIndex, best: &[usize]) -> BTreeSet<usize> {
    let mut candidates: BTreeSet<usize> = best.iter().copied().collect();
    for passage in best {
        if dialogue(index, *passage) > 0 {
            each_neighbour(index, *passage, |neighbour, _| {
                candidates.insert(neighbour);
            });
        }
    }
    candidates
}

/// Returns the score of a passage with that of its neighbours.
fn with_neighbours(index: &RecallIndex, own: &[u32], passage: usize) -> u64 {
    let mut sum = 0;
    let share = dialogue(index, passage);
    if share > 0 {
        each_neighbour(index, passage, |neighbour, weight| {
            sum += (u64::from(own[neighbour]) * dialogue(index, neighbour) * weight) >> 20;
        });
    }
    u64::from(own[passage]) + ((sum * share) >> 10)
}

/// Calls `each` with the passages before and after one, and with their weights in 1024ths: the nearer, the
/// more.
fn each_neighbour(index: &RecallIndex, passage: usize, mut each: impl FnMut(usize, u64)) {
    // Both sides alike, from the nearest passage on.
    let mut side = |passages: &mut dyn Iterator<Item = usize>| {
        let mut distance = 0;
        for neighbour in passages {
            let words = u64::from(index.lengths[neighbour]);
            // The distance of its middle.
            let Some(weight) = (2 * REACH).checked_sub(2 * distance + words).filter(|weight| *weight > 0)
            else {
                break;
            };
            each(neighbour, 1_024 * weight / (2 * REACH));
            distance += words;
        }
    };
    side(&mut (0..passage).rev());
    side(&mut (passage + 1..index.passages.len()));
}

/// Returns the share of a passage's words that are outside of its longest message, in 1024ths.
fn dialogue(index: &RecallIndex, passage: usize) -> u64 {
    index.passages[passage].dialogue(u32::from(index.lengths[passage]))
}

/// Returns the score of the messages of a passage before a position.
fn partial_score(
    index: &RecallIndex,
    log: &Conversation,
    query: &Query<'_>,
    bm25: &mut Bm25,
    passage: usize,
    end: u32,
) -> u32 {
    let mut counts = WordCounts::default();
    each_text(index, log, &index.passages[passage], end, |_, text, part| counts.add(query, text, &part));
    counts.score(query, bm25) as u32
}

/// Returns the score of a part of a text by its own words.
pub(crate) fn text_score(query: &Query<'_>, bm25: &mut Bm25, text: &str, part: &Range<usize>) -> u64 {
    let mut counts = WordCounts::default();
    counts.add(query, text, part);
    counts.score(query, bm25)
}

/// The number of times that a text has each word of a query.
#[derive(Default)]
struct WordCounts<'q> {
    counts: BTreeMap<&'q str, u32>,
    length: u32,
}

impl<'q> WordCounts<'q> {
    /// Adds the words of a text that end in a part of it. A word may begin before the part, because a pair of
    /// characters may have its first one there.
    fn add(&mut self, query: &Query<'q>, text: &str, part: &Range<usize>) {
        // No word crosses a space, so the rest of a long message is not read. A part ends with a word.
        let from = text[..part.start].rfind(|c: char| c.is_ascii_whitespace()).map_or(0, |at| at + 1);
        each_word(&text[from..part.end], |word, end| {
            if from + end <= part.start {
                return;
            }
            self.length += 1;
            if let Some(word) = query.words.iter().find(|known| known.letters == word) {
                *self.counts.entry(word.letters).or_default() += 1;
            }
        });
    }

    fn score(&self, query: &Query<'q>, bm25: &mut Bm25) -> u64 {
        let mut sum = 0;
        for word in &query.words {
            if let Some(count) = self.counts.get(word.letters) {
                sum += u64::from(word.weight) * bm25.score(word.rarity, *count, self.length);
            }
        }
        sum
    }
}

/// Calls `each` with the position of each message of a passage before `end`, its whole text, and the part of
/// it that is in the passage. Returns false if a text is not loaded.
pub(crate) fn each_text(
    index: &RecallIndex,
    log: &Conversation,
    passage: &Passage,
    end: u32,
    mut each: impl FnMut(usize, &str, Range<usize>),
) -> bool {
    for position in passage.messages() {
        if position >= end as usize {
            break;
        }
        let Some(message) = log.messages().get(position) else { return false };
        if !message.is_loaded() {
            return false;
        }
        let Some(text) = index.text_of(log, position) else { continue };
        let from = if position as u32 == passage.start.message { passage.start.byte as usize } else { 0 };
        let to = if position as u32 == passage.end.message { passage.end.byte as usize } else { text.len() };
        // A file may have other places than this text.
        if text.get(from..to).is_none() {
            return false;
        }
        // The whole text, because a word of the part may begin before it.
        each(position, &text, from..to);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{passage::Place, query::live_question};
    use context_window::Message;
    use proptest::prelude::*;

    /// Returns the words of a passage before a position.
    fn words(index: &RecallIndex, log: &Conversation, passage: usize, end: u32) -> Vec<String> {
        let (mut words, passage) = (Vec::new(), &index.passages[passage]);
        for position in passage.messages().filter(|position| *position < end as usize) {
            // Words are those of the whole text: a pair of characters may have its first one in the piece
            // before.
            let is_in = |end: usize| {
                let place = Place { message: position as u32, byte: end as u32 };
                passage.start < place && place <= passage.end
            };
            each_word(log.messages()[position].text(), |word, end| {
                words.extend(is_in(end).then(|| word.to_owned()));
            });
        }
        words
    }

    /// Returns the scores of all passages by the formula of BM25 and the rule for neighbours, in floats.
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    fn by_formula(index: &RecallIndex, log: &Conversation, query: &Query<'_>, cuts: &Cuts) -> Vec<f64> {
        let texts: Vec<Vec<String>> =
            (0..index.passages.len()).map(|at| words(index, log, at, u32::MAX)).collect();
        let all = texts.len() as f64;
        let average = texts.iter().map(Vec::len).sum::<usize>() as f64 / all;
        let own: Vec<f64> = (0..texts.len())
            .map(|at| {
                let Some(end) = cuts.end(index, at) else { return 0.0 };
                let text = words(index, log, at, end);
                let score = |word: &crate::query::QueryWord<'_>| {
                    let containing =
                        texts.iter().filter(|text| text.iter().any(|one| one == word.letters)).count() as f64;
                    let rarity = (1.0 + (all - containing + 0.5) / (containing + 0.5)).log2();
                    let count = text.iter().filter(|one| *one == word.letters).count() as f64;
                    let length = text.len() as f64 / average;
                    f64::from(word.weight) * rarity * count * 2.2 / (count + 1.2 * length)
                };
                if text.is_empty() { 0.0 } else { query.words.iter().map(score).sum() }
            })
            .collect();
        let share: Vec<f64> = (0..texts.len()).map(|at| dialogue(index, at) as f64 / 1_024.0).collect();
        (0..texts.len())
            .map(|at| {
                let mut sum = 0.0;
                for other in (0..texts.len()).filter(|other| *other != at) {
                    let between = &texts[at.min(other) + 1..at.max(other)];
                    let distance = between.iter().map(Vec::len).sum::<usize>() as f64;
                    let middle = distance + texts[other].len() as f64 / 2.0;
                    sum += own[other] * share[other] * (1.0 - middle / REACH as f64).max(0.0);
                }
                own[at] + sum * share[at]
            })
            .collect()
    }

    const WORDS: [&str; 14] = [
        "key",
        "pot",
        "blue",
        "door",
        "refund",
        "day",
        "cat's",
        "sofa",
        "the",
        "a",
        "is",
        "钥匙",
        "门key钥匙",
        "été",
    ];

    fn text(most: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(&WORDS[..]), 1..most).prop_map(|words| words.join(" "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
        fn scores_are_those_of_the_formula(
            texts in prop::collection::vec(prop_oneof![4 => text(20), 1 => text(150), 1 => text(900)], 1..60),
            question in text(8),
        ) {
            let mut log: Conversation = texts.into_iter().map(Message::user).collect();
            log.push(Message::user(question));
            let mut index = RecallIndex::new();
            index.update(&log);
            let live = live_question(&log);
            let (mut bm25, cuts) = (statistics(&index), Cuts::new(&index, live));
            let query = Query::from_log(&index, &bm25, &log, live.unwrap());
            let expected = by_formula(&index, &log, &query, &cuts);
            let found = search(&index, &log, &query, &cuts, &mut bm25, 1);
            for found in &found {
                let score = found.score as f64 / 65_536.0;
                let length = f64::from(index.lengths[found.passage]);
                let expected = expected[found.passage] * HALF as f64 / (HALF as f64 + length);
                prop_assert!((score - expected).abs() < 0.01 + expected * 0.003, "{found:?}: {expected}");
            }
            // Every passage with a score is found. Rounding may lose tiny ones.
            let passages: BTreeSet<usize> = found.iter().map(|found| found.passage).collect();
            for (at, score) in expected.iter().enumerate() {
                prop_assert!(*score < 0.01 || passages.contains(&at) || cuts.end(&index, at).is_none(), "{at}: {score}");
            }
            prop_assert!(found.is_sorted_by_key(|found| Reverse((found.score, found.passage))));
        }
    }
}
