//! The cue words of the data file, by their first word.

use super::words::Words;
use serde::Deserialize;
use std::{collections::BTreeMap, sync::LazyLock};

/// The kind of a cue: the key of the data file under which it is listed. The file describes each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Starts,
    Anywhere,
    Prohibitions,
    Requests,
    Imperatives,
    Lasting,
    Exceptions,
    Relatives,
    Conditions,
    Cases,
    Modals,
    Fillers,
    Labels,
    FirstPerson,
    Reports,
    OneOff,
    RuleHeadings,
    StepHeadings,
    PastedHeadings,
    EachHeadings,
    OpenTags,
}

/// All cues, of all languages.
#[derive(Debug, Default)]
pub(super) struct Cues {
    /// Cues by their first word.
    by_word: BTreeMap<String, Vec<Cue>>,
    /// Endings of a verb that reports a behaviour, and endings of words that look like one.
    endings: Vec<String>,
    other_endings: Vec<String>,
}

/// A cue: the words after its first one, and its kind.
#[derive(Debug)]
struct Cue {
    rest: Vec<String>,
    kind: Kind,
    /// True if the endings of verbs tell reports from orders in the cue's language.
    has_endings: bool,
}

/// The place of a cue in a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) kind: Kind,
    pub(super) start: usize,
    /// The place after the last word.
    pub(super) end: usize,
    pub(super) has_endings: bool,
}

/// A table of the data file.
#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    report_endings: Vec<String>,
    #[serde(default)]
    other_endings: Vec<String>,
    #[serde(flatten)]
    phrases: BTreeMap<Kind, Vec<String>>,
}

static CUES: LazyLock<Cues> =
    LazyLock::new(|| Cues::parse(include_str!("../../config/standing_rules.toml")).unwrap_or_default());

impl Cues {
    /// Returns the cues of the data file.
    pub(super) fn embedded() -> &'static Self {
        &CUES
    }

    fn parse(file: &str) -> Result<Self, toml::de::Error> {
        let tables: BTreeMap<String, Table> = toml::from_str(file)?;
        let mut cues = Self::default();
        for table in tables.into_values() {
            let has_endings = !table.report_endings.is_empty();
            cues.endings.extend(table.report_endings);
            cues.other_endings.extend(table.other_endings);
            for (kind, phrases) in table.phrases {
                for phrase in &phrases {
                    cues.insert(phrase, kind, has_endings);
                }
            }
        }
        Ok(cues)
    }

    fn insert(&mut self, phrase: &str, kind: Kind, has_endings: bool) {
        let words = Words::new(phrase, 0..phrase.len(), &[]);
        let mut words = words.iter().map(str::to_owned);
        let Some(first) = words.next() else { return };
        let cue = Cue { rest: words.collect(), kind, has_endings };
        self.by_word.entry(first).or_default().push(cue);
    }

    /// Finds all cues in a sentence.
    pub(super) fn matches(&self, words: &Words) -> Matches {
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let cues = self.by_word.get(word).map_or(&[][..], Vec::as_slice);
            let fits = |cue: &&Cue| {
                cue.rest.iter().enumerate().all(|(index, word)| words.word(at + 1 + index) == word)
            };
            found.extend(cues.iter().filter(fits).map(|cue| Match {
                kind: cue.kind,
                start: at,
                end: at + 1 + cue.rest.len(),
                has_endings: cue.has_endings,
            }));
        }
        Matches { found }
    }

    /// Checks if a word has the ending of a verb that reports a behaviour: "fails", "failed".
    pub(super) fn is_report(&self, word: &str) -> bool {
        self.endings.iter().any(|ending| word.ends_with(ending.as_str()))
            && !self.other_endings.iter().any(|ending| word.ends_with(ending.as_str()))
    }
}

/// The cues in a sentence, in the order of their first words.
#[derive(Debug)]
pub(super) struct Matches {
    found: Vec<Match>,
}

impl Matches {
    /// Returns the cues from a word on.
    pub(super) fn from(&self, at: usize) -> &[Match] {
        &self.found[self.found.partition_point(|cue| cue.start < at)..]
    }

    /// Returns the cues that begin at a word.
    pub(super) fn at(&self, at: usize) -> impl Iterator<Item = &Match> {
        self.from(at).iter().take_while(move |cue| cue.start == at)
    }

    /// Checks if a cue of a kind begins at a word.
    pub(super) fn is_at(&self, at: usize, kind: Kind) -> bool {
        self.at(at).any(|cue| cue.kind == kind)
    }

    /// Returns the place after the longest cue of a kind that begins at a word.
    pub(super) fn end(&self, at: usize, kind: Kind) -> Option<usize> {
        self.at(at).filter(|cue| cue.kind == kind).map(|cue| cue.end).max()
    }

    /// Checks if there is a cue of a kind from a word on.
    pub(super) fn has_after(&self, at: usize, kind: Kind) -> bool {
        self.from(at).iter().any(|cue| cue.kind == kind)
    }

    /// Returns the cues of a kind, in their order.
    pub(super) fn each_of_kind(&self, kind: Kind) -> impl Iterator<Item = &Match> {
        self.found.iter().filter(move |cue| cue.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_valid() {
        let cues = Cues::parse(include_str!("../../config/standing_rules.toml")).unwrap();
        assert!(cues.by_word.len() > 200);
        let words = |text: &str| Words::new(text, 0..text.len(), &[]);
        assert_eq!(cues.matches(&words("From now on, answer")).end(0, Kind::Anywhere), Some(3));
        assert!(cues.is_report("fails") && !cues.is_report("pass"));
    }
}
