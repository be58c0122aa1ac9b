//! Values in a statement: numbers, dates, addresses, paths, names of code and of people.

use super::words::{Cues, Kind};
use std::collections::BTreeSet;

/// Minimum number of words of a statement that a later one may replace.
const FEWEST: usize = 4;

/// Checks if a word is a value: it has a digit, or its signs are those of an address, a path or code.
fn is_value(word: &str) -> bool {
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '`');
    let is_inside = |c: char| inner.trim_matches(|c: char| !c.is_alphanumeric()).contains(c);
    let pairs = inner.chars().zip(inner.chars().skip(1));
    inner.contains(char::is_numeric)
        || inner.starts_with('`')
        || (inner.contains('/') && inner.len() > 2)
        || is_inside('_')
        || is_file(inner)
        || pairs.into_iter().any(|(one, next)| one.is_lowercase() && next.is_uppercase())
}

/// Checks if a word has a point inside, with at least two letters on both sides.
fn is_file(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(name, ending)| {
        let ends = |text: &str| text.len() >= 2 && text.chars().all(char::is_alphanumeric);
        ends(ending) && name.chars().filter(|c| c.is_alphanumeric()).count() >= 2
    })
}

/// Checks if a sentence has a value. The cue words of the sentence are given.
pub(super) fn has_value(sentence: &str, kinds: &BTreeSet<Kind>) -> bool {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let is_name = |word: &&str| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    // The first word of a sentence has a capital letter in any case.
    let has_name = words.windows(2).skip(1).any(|pair| pair.iter().all(is_name));
    kinds.contains(&Kind::Amounts) || has_name || words.iter().any(|word| is_value(word))
}

/// Returns the words of a statement up to its first link, and a mark in place of each value after it. Two
/// statements with equal subjects give one value each for the same thing. Returns `None` for a text that is
/// no sentence, and for a question.
pub(super) fn subject(statement: &str) -> Option<String> {
    let is_prose = statement.trim_end_matches(['"', '\'', ')', '`']).ends_with(['.', '!'])
        && statement.starts_with(|c: char| c.is_uppercase() || matches!(c, '"' | '\'' | '(' | '`'));
    if !is_prose || statement.contains(['?', '\n']) {
        return None;
    }
    let words: Vec<String> = statement.split_whitespace().map(str::to_lowercase).collect();
    let link = Cues::embedded().end_of_link(&words).filter(|_| words.len() >= FEWEST)?;
    let masked = statement.split_whitespace().zip(&words).enumerate();
    let masked =
        masked.map(|(at, (word, lower))| if at >= link && is_changed(word) { "\u{0}" } else { lower });
    Some(masked.collect::<Vec<_>>().join(" "))
}

/// Checks if another statement may have another word in this place: a value, or a word with a capital letter.
fn is_changed(word: &str) -> bool {
    is_value(word) || word.starts_with(char::is_uppercase) || word.contains(['$', '€', '£', '\\'])
}

/// Checks if at most a quarter of the words differ, and at least one. The subjects of both are equal.
pub(super) fn has_few_changes(old: &str, new: &str) -> bool {
    let pairs = old.split_whitespace().zip(new.split_whitespace());
    let changes = pairs.filter(|(old, new)| old.to_lowercase() != new.to_lowercase()).count();
    (1..=(new.split_whitespace().count() / 4).max(1)).contains(&changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_words_with_digits_or_signs_of_code() {
        for value in [
            "8080",
            "$40,000",
            "src/lid.rs",
            "https://a.example/b",
            "max_len",
            "lidSize",
            "Cargo.toml.",
            "`lid`",
        ] {
            assert!(is_value(value), "{value}");
        }
        for other in ["lid", "lid.", "e.g.", "(lid)", "well-known", "Lid", "I'd", "/"] {
            assert!(!is_value(other), "{other}");
        }
    }

    #[test]
    fn a_subject_has_no_values() {
        assert_eq!(subject("The port is 80."), subject("The port is 8080."));
        assert_ne!(subject("The port is 80."), subject("The door is 80."));
        assert!(subject("Is the port 80?").is_none() && subject("the port is 80").is_none());
        assert!(has_few_changes("The port is 80.", "The port is 81."));
        assert!(!has_few_changes("The port is 80.", "The port is 80."));
        assert!(!has_few_changes("It is Ada Byron 1815.", "It is Alan Turing 1912."));
    }
}
