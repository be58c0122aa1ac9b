//! The answerer that needs neither a key nor a server: it quotes the passages that have most in common with the question.

use super::{Piece, Prompt, Reply};
use context_window::usage::StopReason;
use context_window::{Message, RagItem};
use std::{collections::BTreeSet, time::Duration};
use unicode_segmentation::UnicodeSegmentation;

/// Passages that are quoted at most.
const QUOTES: usize = 3;
/// Words of a quote at most.
const WORDS: usize = 60;
/// Words that say nothing of what is asked for.
const COMMON: &str = "a about an and any are as at be by can do does for from had has have how i if in into is it its me my no not of on or \
    our so than that the their them then there these they this to was we were what when where which who why will with would you your";

pub(super) async fn answer(prompt: &Prompt, say: &(dyn Fn(Piece) + Sync)) -> Reply {
    let text = quotes(&prompt.question, &prompt.documents);
    // A little at a time, as a model would, so that a reply can be watched and stopped.
    for word in text.split_inclusive(' ') {
        say(Piece::Text(word.to_owned()));
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    (Message::assistant(text), StopReason::Done.into())
}

/// The best passages of the documents as quotes, each with its source.
#[must_use]
pub fn quotes(question: &str, documents: &[RagItem]) -> String {
    // A word that few of the documents have says more.
    let texts: Vec<BTreeSet<String>> = documents.iter().map(|document| words(document.text())).collect();
    let weight = |word: &String| 1 + texts.iter().filter(|text| !text.contains(word)).count();
    let asked = words(question);
    let mut passages: Vec<(usize, usize, &RagItem, &str)> = Vec::new();
    for (rank, document) in documents.iter().enumerate() {
        for passage in parts(document.text()) {
            // A row of a table says less than a sentence with the same words.
            let common: usize = words(passage).intersection(&asked).map(weight).sum();
            let common = if passage.starts_with('|') { common.div_ceil(2) } else { common };
            if common > 0 && passage.split_whitespace().nth(1).is_some() {
                passages.push((common, rank, document, passage));
            }
        }
    }
    // Most words in common first; then the better document.
    passages.sort_by_key(|(common, rank, ..)| (usize::MAX - common, *rank));
    passages.dedup_by_key(|(.., passage)| *passage);
    if passages.is_empty() {
        return "No document answers this: no passage in the prompt shares a word with the question.".into();
    }
    passages.truncate(QUOTES);
    let quoted: BTreeSet<String> = passages.iter().flat_map(|(.., passage)| words(passage)).collect();
    let shared: Vec<&str> = asked.intersection(&quoted).map(String::as_str).collect();
    // A word by chance is no answer: half of what is asked for has to be there.
    let doubt = if 2 * shared.len() < asked.len() {
        let shared = shared.join(", ");
        format!("No document answers this. Of the words of the question, these passages have: {shared}.\n\n")
    } else {
        String::new()
    };
    let quote = |(.., document, passage): &(usize, usize, &RagItem, &str)| {
        let words: Vec<&str> = passage.split_whitespace().collect();
        let cut = if words.len() > WORDS { " ..." } else { "" };
        format!("\"{}{cut}\" [{}]", words[..words.len().min(WORDS)].join(" "), document.id())
    };
    doubt + &passages.iter().map(quote).collect::<Vec<_>>().join("\n\n")
}

/// The paragraphs, list items and rows of tables of a document; no code, no headings.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('[').and_then(|rest| rest.split_once("]\n")).map_or(text, |(_, text)| text);
    // Every second part stands between fences.
    let paragraphs = text.split("```").step_by(2).flat_map(|text| text.split("\n\n"));
    let parts = paragraphs
        .flat_map(|part| part.trim().split(if part.trim().starts_with('|') { "\n" } else { "\n- " }));
    parts
        .map(str::trim)
        .filter(|part| !part.starts_with(['#', '[']) && !part.contains('│') && !part.starts_with("| --"))
}

/// Words as they are compared: in small letters, without common ones, a plural as its singular.
fn words(text: &str) -> BTreeSet<String> {
    let small = text.to_lowercase();
    let words = small.unicode_words().filter(|word| !COMMON.split_whitespace().any(|common| common == *word));
    words
        .map(|word| word.strip_suffix('s').filter(|stem| stem.len() > 3).unwrap_or(word).to_owned())
        .collect()
}
