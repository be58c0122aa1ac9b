//! Rules of the user in messages of users: sentences that set how to work from then on (rule R2).
//!
//! Rules are found by the cue words of `config/standing_rules.toml` and by the lists and headings in which
//! sentences stand, without a model. Text that a person did not write (code, quotes, documents, outputs) has
//! none.

mod words;
mod cues;
mod tags;
mod quotes;
mod lines;
mod sections;
mod blocks;
mod sentences;
mod grades;

pub(crate) use words::Words;

use crate::text::plain::fold_white_space;
use blocks::Block;
use grades::Grade;
use sections::Section;
use std::ops::Range;

/// Maximum bytes of a rule. A longer sentence is a text without punctuation.
const LONGEST: usize = 700;

/// Marks at the end of a sentence, which a quote may lack.
pub(crate) const ENDS: [char; 5] = ['.', '!', '。', '！', ' '];

/// A sentence of a message, with its grade.
struct Sentence {
    range: Range<usize>,
    grade: Grade,
    is_first: bool,
}

/// The parts of a message that its author wrote.
struct OwnText<'a> {
    text: &'a str,
    /// The paragraphs and list items, without code, documents and outputs.
    blocks: Vec<Block>,
    /// Quotations, inline code and hidden parts, in ascending order.
    masks: Vec<Range<usize>>,
}

impl<'a> OwnText<'a> {
    fn new(text: &'a str) -> Self {
        let hidden = tags::hidden(text);
        let mut blocks = blocks::blocks(text, &hidden);
        // Pasted parts count here: a quotation mark in one of them may have its partner after it.
        let parts: Vec<Range<usize>> = blocks.iter().map(|block| block.range.clone()).collect();
        let masks = quotes::joined(quotes::quotes(text, &parts), hidden);
        blocks.retain(|block| block.section != Section::Pasted);
        Self { text, blocks, masks }
    }

    /// Returns the sentences of a block.
    fn sentences_of(&self, block: &Block) -> Vec<Range<usize>> {
        sentences::sentences(self.text, block.range.clone(), &self.masks)
    }

    /// Checks if a byte is in a quotation, in code or in a hidden part.
    fn is_masked(&self, at: usize) -> bool {
        let next = self.masks.partition_point(|mask| mask.end <= at);
        self.masks.get(next).is_some_and(|mask| mask.start <= at)
    }
}

/// Finds the user's rules in a message of a user, in ascending order: the bytes of each sentence.
#[must_use]
pub fn find_rules(text: &str) -> Vec<Range<usize>> {
    let own = OwnText::new(text);
    let blocks = own.blocks.iter().filter(|block| !block.is_lead);
    let graded: Vec<(&Block, Vec<Sentence>)> =
        blocks.map(|block| (block, graded_sentences(&own, block))).collect();
    let strong = |block: &(&Block, Vec<Sentence>)| block.1.iter().any(|one| one.grade == Grade::Strong);
    let has_strong = graded.iter().any(strong);
    let mut strong_lists: Vec<usize> =
        graded.iter().filter(|block| strong(block)).filter_map(|block| block.0.list).collect();
    strong_lists.dedup();
    let mut rules = Vec::new();
    for (block, sentences) in graded {
        let in_strong_list = block.list.is_some_and(|list| strong_lists.binary_search(&list).is_ok());
        let least = |sentence: &Sentence| least_grade(block, sentence, in_strong_list, has_strong);
        let found = sentences.into_iter().filter(|sentence| sentence.grade >= least(sentence));
        rules.extend(found.map(|sentence| sentence.range));
    }
    rules
}

/// Finds the sentences that the author of a message wrote, in ascending order, without code and documents.
pub(crate) fn find_sentences(text: &str) -> Vec<Range<usize>> {
    let own = OwnText::new(text);
    own.blocks.iter().flat_map(|block| own.sentences_of(block)).collect()
}

/// Finds the sentences of which a model quotes a part, apart from quotations, code and documents. A line
/// break counts as a space, and the mark at the end may differ. Returns `None` if the author does not say the
/// quote, or if its sentences are too long for a rule.
///
/// Whole sentences: a part may say the opposite ("touch it" of "never touch it").
pub(crate) fn find_quoted(text: &str, quote: &str) -> Option<Range<usize>> {
    let quote = fold_white_space(quote);
    let quote = quote.trim_end_matches(ENDS);
    // The longest word first: most texts lack it, and are not split into sentences.
    let longest = quote.split(' ').max_by_key(|word| word.len()).filter(|word| !word.is_empty())?;
    if !text.contains(longest) {
        return None;
    }
    let own = OwnText::new(text);
    let found = own.blocks.iter().find_map(|block| {
        let (folded, places) = folded(text, &block.range);
        let place = |at: usize| {
            let word = places.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            let (start, place) = places[word];
            place + at - start
        };
        // A quotation inside a rule belongs to it, a rule inside a quotation does not.
        let parts = folded.match_indices(quote).map(|(at, _)| place(at)..place(at + quote.len() - 1) + 1);
        let part = parts.into_iter().find(|part| !own.is_masked(part.start))?;
        let sentences = own.sentences_of(block).into_iter();
        let mut sentences = sentences.filter(|one| one.start < part.end && part.start < one.end);
        let first = sentences.next()?;
        Some(first.start..sentences.next_back().map_or(first.end, |last| last.end))
    });
    found.filter(|range| range.len() <= LONGEST)
}

/// Splits a block into sentences with their grades.
fn graded_sentences(own: &OwnText<'_>, block: &Block) -> Vec<Sentence> {
    let ranges = own.sentences_of(block);
    let grade = |range: &Range<usize>| match &own.text[range.clone()] {
        long if long.len() > LONGEST => Grade::Never,
        sentence if is_question(sentence) => Grade::Never,
        _ => grades::grade(&Words::new(own.text, range.clone(), &own.masks)),
    };
    let first = ranges.first().map(|range| range.start);
    let sentence =
        |range: Range<usize>| Sentence { grade: grade(&range), is_first: Some(range.start) == first, range };
    ranges.into_iter().map(sentence).collect()
}

/// Returns the lowest grade with which a sentence is a rule at its place.
fn least_grade(block: &Block, sentence: &Sentence, in_strong_list: bool, has_strong: bool) -> Grade {
    match (block.section, block.list) {
        (Section::Each, Some(_)) if sentence.is_first => Grade::Plain,
        (Section::Rules, _) | (Section::Case, Some(_)) => Grade::Modal,
        _ if in_strong_list || (has_strong && block.section != Section::Steps) => Grade::Weak,
        _ => Grade::Labelled,
    }
}

/// Returns a part of a text with each run of white space as one space, and the places of its words in both.
fn folded(text: &str, part: &Range<usize>) -> (String, Vec<(usize, usize)>) {
    let (mut folded, mut places) = (String::new(), Vec::new());
    let mut at = part.start;
    for word in text[part.clone()].split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        at += text[at..part.end].find(word).unwrap_or_default();
        places.push((folded.len(), at));
        folded.push_str(word);
        at += word.len();
    }
    (folded, places)
}

fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(['"', '\'', ')', '*', '”', '»', '!']).ends_with(['?', '？'])
}
