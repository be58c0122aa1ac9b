//! The cue words of statements, from `config/digest_words.toml`.

use crate::cue_words::Words;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

/// The kind of a cue: the key of the data file under which it is listed. The file describes each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Rules,
    Requests,
    Orders,
    Preferences,
    OpenTasks,
    Decisions,
    Links,
    Amounts,
    FirstPerson,
    Replies,
}

/// All cues, of all languages, by their first word.
#[derive(Debug, Default)]
pub(super) struct Cues {
    by_word: BTreeMap<String, Vec<Cue>>,
}

/// A cue: its words after the first one, in parts between which other words may be, and its kind.
#[derive(Debug)]
struct Cue {
    parts: Vec<Vec<String>>,
    kind: Kind,
}

/// Maximum number of words between two parts of a cue.
const GAP: usize = 3;

/// Maximum number of words and commas after a reply that has no content of its own.
const AFTER_REPLY: usize = 3;

static CUES: LazyLock<Cues> =
    LazyLock::new(|| Cues::parse(include_str!("../../../config/digest_words.toml")).unwrap_or_default());

impl Cues {
    /// Returns the cues of the data file.
    pub(super) fn embedded() -> &'static Self {
        &CUES
    }

    fn parse(file: &str) -> Result<Self, toml::de::Error> {
        let tables: BTreeMap<String, BTreeMap<Kind, Vec<String>>> = toml::from_str(file)?;
        let mut cues = Self::default();
        for (kind, phrases) in tables.into_values().flatten() {
            for phrase in &phrases {
                cues.insert(phrase, kind);
            }
        }
        Ok(cues)
    }

    fn insert(&mut self, phrase: &str, kind: Kind) {
        let words = |part: &str| Words::new(part, 0..part.len(), &[]).iter().map(str::to_owned).collect();
        let mut parts: Vec<Vec<String>> = phrase.split('…').map(words).collect();
        if parts[0].is_empty() {
            return;
        }
        let first = parts[0].remove(0);
        self.by_word.entry(first).or_default().push(Cue { parts, kind });
    }

    /// Returns the place after each cue that begins at a word, with its kind.
    fn at<'a>(
        &'a self,
        at: usize,
        word: &'a dyn Fn(usize) -> &'a str,
    ) -> impl Iterator<Item = (Kind, usize)> + 'a {
        let cues = self.by_word.get(word(at)).map_or(&[][..], Vec::as_slice);
        cues.iter().filter_map(move |cue| Some((cue.kind, cue.end(at + 1, word)?)))
    }

    /// Returns the kinds of the cues in a sentence. Orders, the first person and replies count only at its
    /// beginning.
    pub(super) fn kinds(&self, sentence: &str) -> BTreeSet<Kind> {
        let words = Words::new(sentence, 0..sentence.len(), &[]);
        let word = |at: usize| words.word(at);
        let mut kinds = BTreeSet::new();
        for at in 0..words.len() {
            let counts = |(kind, end): &(Kind, usize)| match kind {
                Kind::Orders | Kind::FirstPerson => at == 0,
                Kind::Replies => at == 0 && words.len() <= end + AFTER_REPLY,
                _ => true,
            };
            kinds.extend(self.at(at, &word).filter(counts).map(|(kind, _)| kind));
        }
        kinds
    }

    /// Returns the place after the first link of a sentence, which is given as words in lower case.
    pub(super) fn end_of_link(&self, words: &[String]) -> Option<usize> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let link = |at: usize| self.at(at, &word).find(|(kind, _)| *kind == Kind::Links).map(|(_, end)| end);
        (1..words.len()).find_map(|at| {
            let is_mark = words[at] == "=" || words[at].ends_with([':', '：']);
            link(at).or_else(|| is_mark.then_some(at + 1))
        })
    }
}

impl Cue {
    /// Returns the place after the cue, if its words after the first one follow from a place on.
    fn end<'a>(&self, from: usize, word: &dyn Fn(usize) -> &'a str) -> Option<usize> {
        let is_at = |part: &[String], at: usize| {
            part.iter().enumerate().all(|(index, expected)| word(at + index) == expected)
        };
        let (first, rest) = self.parts.split_first()?;
        let mut end = is_at(first, from).then_some(from + first.len())?;
        for part in rest {
            end = (end..=end + GAP).find(|at| is_at(part, *at))? + part.len();
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid() {
        let cues = Cues::parse(include_str!("../../../config/digest_words.toml")).unwrap();
        assert!(cues.by_word.len() > 200);
        let has = |text: &str, kind: Kind| cues.kinds(text).contains(&kind);
        assert!(has("Merge nothing without Ada's approval.", Kind::Rules));
        assert!(!has("Merge without a look. One two three, approval.", Kind::Rules));
        assert!(has("Use tabs.", Kind::Orders) && !has("They use tabs.", Kind::Orders));
        assert!(has("Ok, thank you!", Kind::Replies) && !has("Ok, now make it green.", Kind::Replies));
        assert!(has("不要改名", Kind::Rules) && has("まだです", Kind::OpenTasks));
    }
}
