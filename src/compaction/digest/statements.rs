//! Statements of the user: short messages, and the sentences of long ones, each with points for its kind.

use super::{
    texts::joined_words,
    values,
    words::{Cues, Kind},
};
use crate::cue_words;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// Maximum bytes of a message that is one statement. A longer one is divided into its sentences.
const WHOLE: usize = 320;

/// A user request, or a statement of an earlier digest.
pub(super) struct Request {
    pub(super) text: String,
    /// The number of requests with this text.
    pub(super) times: u64,
}

impl Request {
    /// Formats a statement of an earlier digest as its line.
    pub(super) fn line(&self) -> String {
        with_times(&self.text, self.times)
    }
}

/// A text that the user wrote, as one line.
pub(super) struct Statement {
    pub(super) text: String,
    /// The number of messages with this text.
    pub(super) times: u64,
    /// True for a sentence of a long message.
    pub(super) is_part: bool,
    points: u64,
    /// The key under which a later message has a newer value. `None` for a sentence of a long message.
    subject: Option<String>,
}

impl Statement {
    /// Formats the statement as a line of a digest.
    pub(super) fn line(&self) -> String {
        with_times(&self.text, self.times)
    }

    /// Compares the places in the order in which statements are kept: most points first, for their length.
    /// The points are squared, so that twice the points outweigh four times the length.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let weight = |one: &Self, other: &Self| one.points * one.points * other.text.len() as u64;
        weight(other, self).cmp(&weight(self, other))
    }
}

fn with_times(text: &str, times: u64) -> String {
    match times {
        1 => text.to_owned(),
        _ => format!("{text} [{times} times]"),
    }
}

/// Returns the statements in requests in their order. Of equal ones and of those that differ in values only,
/// the newest stays.
pub(super) fn statements(requests: &[&Request]) -> Vec<Statement> {
    let mut newest: Vec<Statement> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for request in requests.iter().rev() {
        for statement in divided(request).into_iter().rev() {
            if let Some(place) = places.get(&statement.text) {
                newest[*place].times += statement.times;
                continue;
            }
            // Compared with the nearest later statement only, so that the time stays linear.
            let later = statement.subject.clone().and_then(|key| values.insert(key, statement.text.clone()));
            if later.is_some_and(|later| values::has_few_changes(&statement.text, &later)) {
                continue;
            }
            places.insert(statement.text.clone(), newest.len());
            newest.push(statement);
        }
    }
    newest.reverse();
    newest
}

/// Returns the indices of statements in the order in which they are kept.
pub(super) fn ranked(statements: &[Statement]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..statements.len()).rev().collect();
    // A stable sort, so that the newest is first among equals.
    order.sort_by(|one, other| statements[*one].compare(&statements[*other]));
    order
}

/// Divides a request into its statements.
fn divided(request: &Request) -> Vec<Statement> {
    let (text, times) = (&request.text, request.times);
    let rules = cue_words::find_rules(text);
    let statement = |part: &str, is_rule: bool, subject: Option<String>, is_part: bool| {
        let part = joined_words(part);
        Statement { points: points(&part, is_rule), text: part, times, is_part, subject }
    };
    let sentences = if text.len() > WHOLE { cue_words::find_sentences(text) } else { Vec::new() };
    if sentences.is_empty() {
        let subject = values::subject(without_label(text)).filter(|_| text.len() <= WHOLE);
        return vec![statement(text, !rules.is_empty(), subject, text.len() > WHOLE)];
    }
    // A line that announces others says nothing without them.
    let is_lead =
        |range: &Range<usize>| text[range.clone()].trim_end_matches(['*', '_']).ends_with([':', '：']);
    let divided = sentences.into_iter().filter(|range| !is_lead(range)).map(|range| {
        // The first rule that ends after the sentence's beginning: both are in ascending order.
        let next = rules.partition_point(|rule| rule.end <= range.start);
        let is_rule = rules.get(next).is_some_and(|rule| rule.start < range.end);
        statement(&text[range], is_rule, None, true)
    });
    divided.collect()
}

/// Returns the points of a statement (rule C6). Each kind counts once.
fn points(statement: &str, is_rule: bool) -> u64 {
    let body = without_label(statement);
    let sentences = cue_words::find_sentences(body);
    let is_one = sentences.len() == 1;
    let kinds = |sentence: &str| Cues::embedded().kinds(sentence);
    let asserted: Vec<(&str, BTreeSet<Kind>)> = sentences
        .into_iter()
        .map(|range| &body[range])
        .filter(|sentence| !sentence.trim_end_matches(['"', '\'', ')', '”', '»']).ends_with(['?', '？']))
        .map(|sentence| (sentence, kinds(sentence)))
        .collect();
    if matches!(&asserted[..], [(_, kinds)] if is_one && kinds.contains(&Kind::Replies)) {
        return 0;
    }
    let has = |kind: Kind| asserted.iter().any(|(_, kinds)| kinds.contains(&kind));
    // "I never saw it" is about the person, and no rule.
    let orders = |kind: Kind| {
        asserted.iter().any(|(_, kinds)| kinds.contains(&kind) && !kinds.contains(&Kind::FirstPerson))
    };
    let is_open =
        has(Kind::OpenTasks) || kinds(&statement[..statement.len() - body.len()]).contains(&Kind::OpenTasks);
    let has_value = asserted.iter().any(|(sentence, kinds)| values::has_value(sentence, kinds));
    let has_link = has(Kind::Links) || body.contains(": ") || body.contains(['=', '：']);
    let rule = match () {
        () if is_rule || orders(Kind::Rules) => 6,
        () if orders(Kind::Requests) || orders(Kind::Orders) => 4,
        () => 0,
    };
    let fact = match (has_value, has_link) {
        (true, true) => 4,
        (true, false) => 2,
        (false, _) => 0,
    };
    let counts = [(Kind::Preferences, 5), (Kind::Decisions, 3)];
    let others: u64 = counts.into_iter().filter(|(kind, _)| has(*kind)).map(|(_, points)| points).sum();
    1 + rule + fact + others + if is_open { 4 } else { 0 }
}

/// Maximum bytes of a label.
const LABEL: usize = 40;

/// Returns a statement without a label in capital letters at its beginning ("NOTE: "): its colon is no link.
fn without_label(statement: &str) -> &str {
    let label = statement.split_once(": ").filter(|(label, _)| label.len() > 1 && label.len() <= LABEL);
    let is_label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_uppercase())
            && label.chars().all(|c| c.is_ascii_uppercase() || matches!(c, ' ' | '_' | '/' | '-'))
    };
    label.filter(|(label, _)| is_label(label)).map_or(statement, |(_, rest)| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_follow_the_kinds() {
        let points = |text: &str| points(text, false);
        assert_eq!((points("Thanks a lot."), points("Ok. Is it a lid?")), (0, 1));
        assert_eq!(points("Look at the lid."), 1);
        assert_eq!(points("The lid of release 4."), 1 + 2);
        assert_eq!(points("The lid is release 4."), 1 + 4);
        assert_eq!(points("NOTE: the lid of release 4."), 1 + 2);
        assert_eq!(points("TODO: the lid."), 1 + 4);
        assert_eq!(points("We agreed on a lid."), 1 + 3);
        assert_eq!(points("Ada would rather see a lid."), 1 + 5);
        assert_eq!(points("Avoid the lid."), 1 + 4);
        assert_eq!(points("Never open the lid."), 1 + 6);
        assert_eq!(points("I never saw a lid. Must it be open?"), 1);
    }

    #[test]
    fn a_long_message_is_divided_and_a_short_one_is_not() {
        let request = |text: String| Request { text, times: 1 };
        assert_eq!(divided(&request("One. Two.\nThree.".into())).len(), 1);
        let long = divided(&request(format!(
            "{}\n```\ncode();\n```\n**Next:**\n\nLast one.",
            "A sentence. ".repeat(30)
        )));
        assert_eq!((long.len(), long[30].text.as_str()), (31, "Last one."));
    }
}
