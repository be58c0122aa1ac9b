//! The words of a question.
//!
//! - Input: the live question and the one before it.
//! - Output: words with weights.
//! - Rules: a word that only the live question has does not count. A word is rare if at most an eighth of the
//!   passages have it, or four. If fewer than two words of the live question are rare, it may refer to the
//!   one before it ("and the second one?"), whose words then count half. Of a long question, the 64 rarest
//!   words count.

use crate::{
    bm25::Bm25,
    index::{RecallIndex, plain_text},
    postings::Postings,
    words::each_word,
};
use context_window::{Conversation, Role};
use std::{cmp::Reverse, collections::BTreeMap};

/// The weight of a word of the live question, and of the one before it.
const LIVE: u32 = 2;
const BEFORE: u32 = 1;

/// The number of passages that a rare word may have in any conversation. In a short one, most words have more
/// than an eighth of them.
const FEW: usize = 4;

/// The number of passages up to which any word of a question is distinctive: with few passages, half of them
/// say nothing about a word.
const SMALL: usize = 16;

/// The maximum number of words, and the maximum weight of a word that is repeated.
const MOST_WORDS: usize = 64;
const MOST_WEIGHT: u32 = 8;

/// The words of a question that are in the index.
pub(crate) struct Query<'a> {
    pub(crate) words: Vec<QueryWord<'a>>,
    /// The sum of weight and rarity of all words.
    pub(crate) mass: u64,
    pub(crate) has_distinctive_word: bool,
}

/// A word of a question.
pub(crate) struct QueryWord<'a> {
    pub(crate) letters: &'a str,
    pub(crate) postings: &'a Postings,
    pub(crate) rarity: u64,
    pub(crate) weight: u32,
    /// The number of passages with it, without that of the live question.
    passages: u32,
}

impl<'a> Query<'a> {
    /// Reads a text without the question before it.
    pub(crate) fn new(index: &'a RecallIndex, bm25: &Bm25, text: &str) -> Self {
        Self::with_weights(index, bm25, &[(text, LIVE)], 0)
    }

    /// Reads the question at a position of a conversation.
    pub(crate) fn from_log(index: &'a RecallIndex, bm25: &Bm25, log: &Conversation, position: usize) -> Self {
        let text = plain_text(&log.messages()[position]);
        // The question itself has each of its words.
        let query = Self::with_weights(index, bm25, &[(&text, LIVE)], 1);
        let rare = query.words.iter().filter(|word| word.is_rare(index)).count();
        // One rare word may be by chance: "and the second one?" has "second".
        if rare >= 2 {
            return query;
        }
        let Some(before) = question_before(log, position) else { return query };
        let before = plain_text(&log.messages()[before]);
        Self::with_weights(index, bm25, &[(&text, LIVE), (&before, BEFORE)], 1)
    }

    /// Reads texts with the weights of their words. `own` passages have the words because of the question
    /// itself.
    fn with_weights(index: &'a RecallIndex, bm25: &Bm25, texts: &[(&str, u32)], own: u32) -> Self {
        // By number, so that the order of words with equal rarity is that of their first occurrence.
        let mut weights: BTreeMap<usize, u32> = BTreeMap::new();
        for (text, weight) in texts {
            each_word(text, |word, _| {
                if let Some(number) = index.words.get_index_of(word) {
                    let sum = weights.entry(number).or_default();
                    *sum = (*sum + weight).min(MOST_WEIGHT);
                }
            });
        }
        let words = weights.into_iter().filter_map(|(number, weight)| {
            let (letters, postings) = index.words.get_index(number)?;
            let passages = postings.passages().checked_sub(own).filter(|passages| *passages > 0)?;
            let rarity = bm25.rarity(u64::from(postings.passages()));
            Some(QueryWord { letters, postings, rarity, weight, passages })
        });
        let mut words: Vec<QueryWord<'a>> = words.collect();
        // A pasted file has thousands of words. The common ones change the ranking least and cost the most
        // time.
        words.sort_by_key(|word| Reverse(word.rarity));
        words.truncate(MOST_WORDS);
        let mass = words.iter().map(|word| u64::from(word.weight) * word.rarity).sum();
        // A word of most passages tells none of them apart.
        let passages = index.passages.len();
        let has_distinctive_word =
            passages <= SMALL || words.iter().any(|word| 2 * word.passages as usize <= passages);
        Self { words, mass, has_distinctive_word }
    }
}

impl QueryWord<'_> {
    fn is_rare(&self, index: &RecallIndex) -> bool {
        self.passages as usize <= (index.passages.len() / 8).max(FEW)
    }
}

/// Returns the position of the newest question if it is not answered yet.
pub(crate) fn unanswered_question(log: &Conversation) -> Option<usize> {
    let last = log.messages().last()?;
    let is_answer = last.role() == Role::Assistant && last.tool_calls().is_empty();
    live_question(log).filter(|_| !is_answer)
}

/// Returns the position of the newest question.
pub(crate) fn live_question(log: &Conversation) -> Option<usize> {
    question_before(log, log.messages().len())
}

/// Returns the position of the last question before a position.
fn question_before(log: &Conversation, position: usize) -> Option<usize> {
    log.messages()[..position].iter().rposition(|message| message.role() == Role::User && !message.is_empty())
}
