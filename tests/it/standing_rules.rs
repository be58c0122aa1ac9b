//! Labels of rules of the user: sentences with which a user sets how to work from then on. They were set by
//! reading 200 messages of users; the texts are those of the real sessions.

use crate::support::data;
use context_window::find_rules;
use serde::Deserialize;
use serde_json::Value;
use std::ops::Range;

const LABELS: &str = include_str!("../labels/standing_rules.json");

/// A message of a user, and the rules in it.
#[derive(Deserialize)]
struct Labelled {
    file: String,
    /// The line of the session in its file, and the message in the session, from 0.
    session: usize,
    message: usize,
    /// The places of the rules in the text, in characters.
    rules: Vec<(usize, usize)>,
}

/// Returns the text of a message of a session as it is in its file.
fn text(session: &Value, message: usize) -> String {
    let message = &session["messages"][message];
    assert_eq!(message["role"], "user");
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let texts = parts.as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn labels_are_sentences_of_users() {
    let labels: Vec<Labelled> = serde_json::from_str(LABELS).unwrap();
    assert_eq!(labels.len(), 200);
    let places = labels.iter().map(|one| (&one.file, one.session, one.message));
    assert!(places.is_sorted_by(|one, next| one < next), "no message is labelled twice");
    let mut file = (String::new(), Vec::new());
    for one in &labels {
        if file.0 != one.file {
            let Some(lines) = data::text(&format!("{}.jsonl.gz", one.file)) else { return };
            file =
                (one.file.clone(), lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect());
        }
        let letters: Vec<char> = text(&file.1[one.session], one.message).chars().collect();
        assert!(one.rules.is_sorted_by(|one, next| one.1 <= next.0), "rules do not overlap");
        for (start, end) in &one.rules {
            let rule: String = letters[*start..*end].iter().collect();
            assert!(!rule.is_empty() && rule.trim() == rule, "{} {}: {rule:?}", one.file, one.session);
        }
    }
}

/// Checks if two ranges share at least half of both.
fn agree(one: &Range<usize>, other: &Range<usize>) -> bool {
    let shared = one.end.min(other.end).saturating_sub(one.start.max(other.start));
    shared * 2 >= one.len() && shared * 2 >= other.len()
}

#[test]
fn nine_of_ten_labelled_rules_are_found_and_nine_of_ten_found_are_right() {
    let labels: Vec<Labelled> = serde_json::from_str(LABELS).unwrap();
    let (mut right, mut found, mut labelled) = (0, 0, 0);
    let mut file = (String::new(), Vec::new());
    for one in &labels {
        if file.0 != one.file {
            let Some(lines) = data::text(&format!("{}.jsonl.gz", one.file)) else { return };
            let sessions = lines.lines().map(|line| serde_json::from_str(line).unwrap());
            file = (one.file.clone(), sessions.collect());
        }
        let text = text(&file.1[one.session], one.message);
        let places: Vec<usize> = text.char_indices().map(|one| one.0).chain([text.len()]).collect();
        let mut rules: Vec<Range<usize>> =
            one.rules.iter().map(|rule| places[rule.0]..places[rule.1]).collect();
        labelled += rules.len();
        for range in find_rules(&text) {
            found += 1;
            if let Some(at) = rules.iter().position(|rule| agree(rule, &range)) {
                rules.remove(at);
                right += 1;
            }
        }
    }
    println!("{right} right of {found} found and {labelled} labelled");
    assert!(right * 10 >= found * 9 && right * 10 >= labelled * 9, "{right} of {found} and {labelled}");
}
