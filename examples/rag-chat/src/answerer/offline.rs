//! The answerer without key or server: it quotes the passages with the most words in common with the
//! question.

use super::{Piece, Prompt, Reply};
use context_window::usage::StopReason;
use context_window::{ItemId, Message, RagItem};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum number of quoted passages.
const QUOTES: usize = 3;
/// Maximum number of words in a quote.
const WORDS: usize = 60;
/// Words without information about the question's subject.
const COMMON: &str = "a about an and any are as at be by can do does for from had has have how i if in into is it its me my no not of on or \
    our so than that the their them then there these they this to was we were what when where which who why will with would you your";

pub(super) async fn answer(prompt: &Prompt, say: &(dyn Fn(Piece) + Sync)) -> Reply {
    let text = quotes(&prompt.question, &prompt.documents, &prompt.labels);
    // Sends a word at a time like a model, so that a reply can be watched and stopped.
    for word in text.split_inclusive(' ') {
        say(Piece::Text(word.to_owned()));
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    (Message::assistant(text), StopReason::Done.into())
}

/// Returns the best passages of the documents as quotes, each with the label of its document, or the id.
#[must_use]
pub fn quotes(question: &str, documents: &[RagItem], labels: &BTreeMap<ItemId, u32>) -> String {
    // A word in few documents has more weight.
    let texts: Vec<BTreeSet<String>> = documents.iter().map(|document| words(document.text())).collect();
    let weight = |word: &String| 1 + texts.iter().filter(|text| !text.contains(word)).count();
    let asked = words(question);
    let mut passages: Vec<(usize, usize, &RagItem, &str)> = Vec::new();
    for (rank, document) in documents.iter().enumerate() {
        for passage in parts(document) {
            // A table row is less informative than a sentence with the same words.
            let common: usize = words(passage).intersection(&asked).map(weight).sum();
            let common = if passage.starts_with('|') { common.div_ceil(2) } else { common };
            if common > 0 && passage.split_whitespace().nth(1).is_some() {
                passages.push((common, rank, document, passage));
            }
        }
    }
    // The passage with most common words comes first, then the one of the better document.
    passages.sort_by_key(|(common, rank, ..)| (usize::MAX - common, *rank));
    passages.dedup_by_key(|(.., passage)| *passage);
    if passages.is_empty() {
        return "No document answers this: no passage in the prompt shares a word with the question.".into();
    }
    passages.truncate(QUOTES);
    let quoted: BTreeSet<String> = passages.iter().flat_map(|(.., passage)| words(passage)).collect();
    let shared: Vec<&str> = asked.intersection(&quoted).map(String::as_str).collect();
    // A word in common may be chance: half of the question's words have to be present.
    let doubt = if 2 * shared.len() < asked.len() {
        let shared = shared.join(", ");
        format!("No document answers this. Of the words of the question, these passages have: {shared}.\n\n")
    } else {
        String::new()
    };
    let quote = |(.., document, passage): &(usize, usize, &RagItem, &str)| {
        let words: Vec<&str> = passage.split_whitespace().collect();
        let cut = if words.len() > WORDS { " ..." } else { "" };
        let source = labels.get(document.id()).map_or_else(|| document.id().to_string(), u32::to_string);
        format!("\"{}{cut}\" [{source}]", words[..words.len().min(WORDS)].join(" "))
    };
    doubt + &passages.iter().map(quote).collect::<Vec<_>>().join("\n\n")
}

/// Returns the paragraphs, list items and table rows of a document, without code and headings. Of earlier
/// turns of the conversation, returns the statements of the user.
fn parts(document: &RagItem) -> Vec<&str> {
    let text = document.text();
    if document.messages.is_some() {
        // Replies are quotes, which would be quoted again and again.
        let lines = text.lines().filter_map(|line| line.strip_prefix("user: "));
        return lines.filter(|line| !line.ends_with('?')).collect();
    }
    let text = text.strip_prefix('[').and_then(|rest| rest.split_once("]\n")).map_or(text, |(_, text)| text);
    // Every second part is code between delimiters.
    let paragraphs = text.split("```").step_by(2).flat_map(|text| text.split("\n\n"));
    let parts = paragraphs
        .flat_map(|part| part.trim().split(if part.trim().starts_with('|') { "\n" } else { "\n- " }));
    parts
        .map(str::trim)
        .filter(|part| !part.starts_with(['#', '[']) && !part.contains('│') && !part.starts_with("| --"))
        .collect()
}

/// Returns the words for comparison: in lower case, without common ones, a plural as its singular.
fn words(text: &str) -> BTreeSet<String> {
    let small = text.to_lowercase();
    let words = small.unicode_words().filter(|word| !COMMON.split_whitespace().any(|common| common == *word));
    words
        .map(|word| word.strip_suffix('s').filter(|stem| stem.len() > 3).unwrap_or(word).to_owned())
        .collect()
}
