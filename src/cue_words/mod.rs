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

use blocks::Block;
use grades::Grade;
use sections::Section;
use std::ops::Range;

/// Maximum bytes of a rule. A longer sentence is a text without punctuation.
const LONGEST: usize = 700;

/// A sentence of a message, with its grade.
struct Sentence {
    range: Range<usize>,
    grade: Grade,
    is_first: bool,
}

/// Finds the user's rules in a message of a user, in ascending order: the bytes of each sentence.
#[must_use]
pub fn find_rules(text: &str) -> Vec<Range<usize>> {
    let hidden = tags::hidden(text);
    let blocks = blocks::blocks(text, &hidden);
    let parts: Vec<Range<usize>> = blocks.iter().map(|block| block.range.clone()).collect();
    let masks = quotes::joined(quotes::quotes(text, &parts), hidden);
    let mut graded: Vec<(&Block, Vec<Sentence>)> = Vec::new();
    for block in blocks.iter().filter(|block| block.section != Section::Pasted && !block.is_lead) {
        graded.push((block, sentences_of(text, block, &masks)));
    }
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
    let hidden = tags::hidden(text);
    let blocks = blocks::blocks(text, &hidden);
    let parts: Vec<Range<usize>> = blocks.iter().map(|block| block.range.clone()).collect();
    let masks = quotes::joined(quotes::quotes(text, &parts), hidden);
    let own = blocks.iter().filter(|block| block.section != Section::Pasted);
    own.flat_map(|block| sentences::sentences(text, block.range.clone(), &masks)).collect()
}

/// Splits a block into sentences with their grades.
fn sentences_of(text: &str, block: &Block, masks: &[Range<usize>]) -> Vec<Sentence> {
    let ranges = sentences::sentences(text, block.range.clone(), masks);
    let grade = |range: &Range<usize>| match &text[range.clone()] {
        long if long.len() > LONGEST => Grade::Never,
        sentence if is_question(sentence) => Grade::Never,
        _ => grades::grade(&Words::new(text, range.clone(), masks)),
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

/// Checks if a user's message says a text word for word, apart from quotations, code and documents. A line
/// break counts as a space.
pub(crate) fn says(text: &str, quote: &str) -> bool {
    let quote = quote.split_whitespace().collect::<Vec<_>>().join(" ");
    let hidden = tags::hidden(text);
    let blocks = blocks::blocks(text, &hidden);
    let parts: Vec<Range<usize>> = blocks.iter().map(|block| block.range.clone()).collect();
    let masks = quotes::joined(quotes::quotes(text, &parts), hidden);
    let is_masked = |at: usize| {
        let next = masks.partition_point(|mask| mask.end <= at);
        masks.get(next).is_some_and(|mask| mask.start <= at)
    };
    let own = blocks.iter().filter(|block| block.section != Section::Pasted);
    !quote.is_empty()
        && own.map(|block| folded(text, &block.range)).any(|(folded, places)| {
            // A quotation inside a rule belongs to it, a rule inside a quotation does not.
            folded.match_indices(&quote).any(|(at, _)| {
                let word = places.partition_point(|(start, _)| *start <= at).checked_sub(1);
                word.and_then(|word| places.get(word))
                    .is_some_and(|(start, place)| !is_masked(place + at - start))
            })
        })
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
