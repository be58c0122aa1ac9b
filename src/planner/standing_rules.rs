//! Rules of the user as candidates.
//!
//! - Input: the rules that a conversation keeps, the last prompt, and the messages of the user since.
//! - Output: the notes of the conversation, followed by the rules.
//! - Rules: R1 (place), R2 (sources), R3 (limit).
//!
//! A rule is selected and counted like a note. It differs in its role, in its place after all notes, and in
//! its condition: it is sent only if its message is not.

use crate::{
    config::RulePolicy,
    conversation::{ArchivedBy, Conversation, KnownRule, Note, Notes, Place, RuleNote, TurnIndex},
    item::{ItemId, PinnedItem},
    message::Message,
    plan::SearchedRules,
    planner::request::PlanRequest,
    provider::wording,
    standing_rule::RuleSource,
};
use std::borrow::Cow;

/// Returns the notes of the conversation, followed by its rules of the user.
pub(super) fn notes_and_rules<'a>(request: &'a PlanRequest<'a>, policy: RulePolicy) -> Cow<'a, Notes> {
    let log = request.log;
    let rules = request.known_rules(policy);
    if rules.is_empty() {
        return Cow::Borrowed(log.note_entries());
    }
    let mut notes = log.note_entries().clone();
    for KnownRule { rule, before, position } in rules {
        let message = Message::user(wording::standing_rule(&rule.text));
        let asks = policy == RulePolicy::Ask && rule.source != RuleSource::Application;
        let source = rule.message.as_ref().map(|id| (id.clone(), position));
        let item = PinnedItem::new(rule.id.clone(), rule.text.clone());
        notes.push(Note { before, item, message, rule: Some(RuleNote { message: source, asks }) });
    }
    Cow::Owned(notes)
}

impl PlanRequest<'_> {
    /// Returns the user's rules that a request knows under a policy, in the order of their messages.
    pub(crate) fn known_rules(&self, policy: RulePolicy) -> Vec<KnownRule> {
        if policy != RulePolicy::Off {
            return self.log.known_rules(self.last_anchor(), &self.found_rules().rules);
        }
        if !self.log.keeps_rules() {
            return Vec::new();
        }
        let mut known = self.log.known_rules(None, &[]);
        known.retain(|known| known.rule.source == RuleSource::Application);
        known
    }

    /// Returns the user's rules that are found in messages since the last prompt.
    fn found_rules(&self) -> &SearchedRules {
        self.found_rules.get_or_init(|| self.log.find_rules(self.last_anchor()))
    }

    /// Returns the user's rules of a prompt, and the last message that was searched for them.
    pub(crate) fn rules_to_remember(&self, policy: RulePolicy) -> SearchedRules {
        let rules = self.known_rules(policy).into_iter().map(|known| known.rule).collect();
        let through = if policy == RulePolicy::Off { None } else { self.found_rules().through.clone() };
        SearchedRules { rules, through }
    }
}

/// Checks if the message of a rule is certain to be left out of the prompt: a compaction archived it, or it
/// is before the window that continues. `start` is the first turn of that window. No message is certain to be
/// left out if any is pinned.
pub(super) fn is_surely_left_out(log: &Conversation, rule: &RuleNote, start: Option<TurnIndex>) -> bool {
    let Some(position) = rule.message.as_ref().and_then(|(_, position)| *position) else { return true };
    if !log.pin_priorities().is_empty() {
        return false;
    }
    let is_archived = matches!(log.archive_index().archived(position), Some(ArchivedBy::Compaction(_)));
    // The question of the turn in which the window starts stays with it.
    let turn = match log.turns().place_of(position) {
        Place::UserMessage(turn) => Some(turn),
        _ => None,
    };
    is_archived || turn.zip(start).is_some_and(|(turn, start)| turn < start)
}

/// Returns the message that says a rule, if it is in this conversation.
pub(super) fn message_of(rule: &RuleNote) -> Option<&ItemId> {
    rule.message.as_ref().filter(|(_, position)| position.is_some()).map(|(id, _)| id)
}
