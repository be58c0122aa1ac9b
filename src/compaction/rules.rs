//! Rules of the user in a compaction (rules R1, R2, R4): those of the archived messages, and those that a
//! model quotes.

use crate::{
    config::RulePolicy,
    conversation::{Conversation, KnownRule},
    cue_words,
    error::Error,
    item::{ItemId, ItemKind},
    message::Role,
    plan::reason::{ExcludedReason, PolicyRule},
    planner::{manager::ContextWindowManager, request::PlanRequest},
    standing_rule::{RuleSource, StandingRule},
    text::plain::fold_white_space,
};
use std::collections::{BTreeMap, BTreeSet};

/// The delimiters of the rules in a model's answer.
const OPEN: &str = "<standing_rules>";
const CLOSE: &str = "</standing_rules>";

/// The first word of a rule that a later one replaced.
const REPLACED: &str = "replaced:";

/// The request for the rules, at the end of the instruction.
pub(super) const INSTRUCTION: &str = "\
After the summary, list the standing rules of the user: lasting instructions on how to work or answer, not the wishes of \
one task. Quote each word for word from a message of the user, one a line, between <standing_rules> and \
</standing_rules>. If a later message replaced a rule, begin its line with \"replaced: \". Without such rules, leave the \
list out. These rules are kept word for word, so the summary need not repeat them.";

/// The quotes at the end of a model's answer.
#[derive(Debug, Default)]
pub(super) struct QuotedRules {
    rules: Vec<String>,
    replaced: Vec<String>,
}

impl QuotedRules {
    /// Splits a model's answer into the summary and the rules at its end.
    pub(super) fn split_from(answer: &str) -> (&str, Self) {
        let Some((summary, rest)) = answer.rsplit_once(OPEN) else { return (answer, Self::default()) };
        let (list, after) = rest.split_once(CLOSE).unwrap_or((rest, ""));
        // A summary that mentions the delimiters has text after them.
        if !after.trim().is_empty() {
            return (answer, Self::default());
        }
        let mut quoted = Self::default();
        for line in list.lines().map(|line| line.trim().trim_start_matches(['-', '*']).trim()) {
            let (text, list) = match line.get(..REPLACED.len()) {
                Some(first) if first.eq_ignore_ascii_case(REPLACED) => {
                    (line[REPLACED.len()..].trim(), &mut quoted.replaced)
                }
                _ => (line, &mut quoted.rules),
            };
            let text = text.trim_matches(['"', '“', '”']);
            list.extend(Some(text.to_owned()).filter(|text| !text.is_empty()));
        }
        (summary.trim_end(), quoted)
    }

    /// Returns the sentences of which the model quotes words that the user says in one of these messages,
    /// apart from quotations, code and documents. Other quotes are refused.
    fn verified(&self, log: &Conversation, archived: &BTreeSet<u32>) -> Vec<StandingRule> {
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        let mut verified = Vec::new();
        for quote in &self.rules {
            let said = archived.iter().rev().find_map(|position| {
                let mut texts = log.message(*position).own_texts();
                let text = texts.find_map(|text| Some(&text[cue_words::find_quoted(text, quote)?]))?;
                Some((*position, text))
            });
            let Some((position, text)) = said else {
                tracing::info!(
                    target: "context_window::tokens",
                    bytes = quote.len(),
                    "standing rule refused: not the user's words"
                );
                continue;
            };
            if verified.iter().any(|rule: &StandingRule| *rule.text == *text) {
                continue;
            }
            let number = numbers.entry(position).or_default();
            *number += 1;
            verified.push(StandingRule::quoted(&log.message_id(position), *number, text));
        }
        verified
    }

    /// Returns the ids of the known rules that a model reports as replaced, whole or in a part that no other
    /// rule has. Those of the application stay.
    pub(super) fn replaced(&self, known: &[KnownRule]) -> Vec<ItemId> {
        let known: Vec<(String, &StandingRule)> = known
            .iter()
            .filter(|known| known.rule.source != RuleSource::Application)
            .map(|known| (known.rule.folded(), &known.rule))
            .collect();
        let mut replaced = BTreeSet::new();
        for quote in self.replaced.iter().map(|quote| fold_white_space(quote)) {
            let part = quote.trim_end_matches(cue_words::ENDS);
            let is_whole = |text: &str| text.trim_end_matches(cue_words::ENDS) == part;
            let mut named: Vec<_> = known.iter().filter(|(text, _)| is_whole(text)).collect();
            if named.is_empty() && !part.is_empty() {
                named = known.iter().filter(|(text, _)| text.contains(part)).collect();
                if named.len() > 1 {
                    named.clear();
                }
            }
            replaced.extend(named.into_iter().map(|(_, rule)| rule.id.clone()));
        }
        replaced.into_iter().collect()
    }
}

/// Returns the user's rules of the messages that a compaction archives. `next` is the conversation after it.
pub(super) fn of_archived_messages(
    manager: &ContextWindowManager,
    request: &PlanRequest<'_>,
    next: &Conversation,
    quoted: &QuotedRules,
) -> Vec<StandingRule> {
    let policy = manager.config().compaction.rules;
    if policy == RulePolicy::Off {
        return Vec::new();
    }
    let log = request.log;
    let leaves = |position: u32| {
        let is_archived = |log: &Conversation| log.archive_index().archived(position).is_some();
        is_archived(next) && !is_archived(log)
    };
    let archived: BTreeSet<u32> = (0..log.turns().messages())
        .filter(|position| leaves(*position) && log.message(*position).role() == Role::User)
        .collect();
    let found = request.rules_to_remember(policy).found().into_iter();
    let found = found.filter(|rule| log.position_of_rule(rule).is_some_and(|at| archived.contains(&at)));
    let mut rules = quoted.verified(log, &archived);
    let known: BTreeSet<String> = rules.iter().map(StandingRule::folded).collect();
    rules.extend(found.filter(|rule| !known.contains(&rule.folded())));
    rules.sort_by_key(|rule| place_in(log, rule));
    rules
}

/// Returns the position of the message that says a rule, and the place of the rule in it: the number of the
/// text and a byte of it.
fn place_in(log: &Conversation, rule: &StandingRule) -> (Option<u32>, Option<(usize, usize)>) {
    let position = log.position_of_rule(rule);
    let texts = position.map(|position| log.message(position).own_texts().enumerate());
    let place = texts.into_iter().flatten().find_map(|(nth, text)| Some((nth, text.find(&*rule.text)?)));
    (position, place)
}

/// Returns the pins and the user's rules that a prompt of this request does not hold (rule R4).
pub(super) fn left_out(
    manager: &ContextWindowManager,
    request: &PlanRequest<'_>,
) -> Result<Vec<ItemId>, Error> {
    let log = request.log;
    if log.note_entries().iter().next().is_none()
        && log.pin_priorities().is_empty()
        && request.known_rules(manager.config().compaction.rules).is_empty()
    {
        return Ok(Vec::new());
    }
    let plan = manager.plan(request)?;
    let waits = |reason: &ExcludedReason| {
        matches!(reason, ExcludedReason::InWindow { .. } | ExcludedReason::Policy(PolicyRule::Unconfirmed))
    };
    let notes = plan
        .excluded
        .iter()
        .filter(|row| matches!(row.kind, ItemKind::Note | ItemKind::Rule) && !waits(&row.reason));
    let notes = notes.map(|row| row.id.clone());
    let included: BTreeSet<&ItemId> = plan.included.iter().map(|row| &row.id).collect();
    let messages = log.pins().map(|(id, _)| id).filter(|id| !included.contains(id));
    Ok(notes.chain(messages).collect())
}
