//! Rules of the user in a conversation (rules R1 to R4).

use super::{ArchivedBy, Conversation, Event};
use crate::{
    cue_words,
    error::Error,
    item::ItemId,
    message::Role,
    plan::{FoundRules, anchor::Anchor},
    standing_rule::{RuleSource, StandingRule},
    text::plain::short,
};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};

/// The most rules of the user that a request knows. Of more, the newest count.
const MOST: usize = 256;

/// The rules that a conversation keeps, and those that it has dropped.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct KeptRules {
    /// Each with its place in the log.
    kept: IndexMap<ItemId, (Place, StandingRule)>,
    dropped: BTreeSet<ItemId>,
    /// The number of rules kept so far.
    next: u32,
}

/// A place in the log: the number of messages before it, then the number of the rule there.
type Place = (u32, u32);

impl KeptRules {
    /// Keeps a rule. A rule with its id is replaced, and its place stays.
    pub(super) fn keep(&mut self, rule: &StandingRule, before: u32) {
        self.dropped.remove(&rule.id);
        let place = self.kept.get(&rule.id).map_or((before, self.next), |(place, _)| *place);
        self.kept.insert(rule.id.clone(), (place, rule.clone()));
        self.next += 1;
    }

    /// Drops a rule, also one that is found in a message.
    pub(super) fn drop(&mut self, id: &ItemId) {
        self.kept.swap_remove(id);
        self.dropped.insert(id.clone());
    }
}

impl Conversation {
    /// Keeps a rule of the user (rule R1). A rule with the same id is replaced, also one that was found in a
    /// message: this is the way to confirm or edit it ([`ContextPlan::rules`](crate::ContextPlan::rules)).
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no message has the id of [`StandingRule::from_message`]. `ErrorKind::Input`
    /// if that message is not the user's, or if the text is blank.
    pub fn keep_rule(&mut self, rule: StandingRule) -> Result<(), Error> {
        let name = || format!("rule `{}`", short(rule.id.as_str()));
        if rule.text.trim().is_empty() {
            return Err(Error::input(name(), "its text is blank; expected an instruction of the user"));
        }
        if let Some(message) = &rule.message
            && self.message(self.position(message)?).role() != Role::User
        {
            let id = short(message.as_str());
            let detail = format!("message `{id}` is not the user's; expected the user message that says it");
            return Err(Error::input(name(), detail));
        }
        self.record(Event::RuleKept(StandingRule { source: RuleSource::Application, ..rule }));
        Ok(())
    }

    /// Drops a rule of the user, also one that was found in a message. Returns true if the conversation has
    /// it.
    pub fn drop_rule(&mut self, id: impl Into<ItemId>) -> bool {
        let id = id.into();
        let is_known = self.rule(&id).is_some();
        if is_known {
            self.record(Event::RuleDropped(id));
        }
        is_known
    }

    /// Returns the user's rule with this id, also one that words of command show in a message since the last
    /// prompt. Returns `None` if there is none.
    #[must_use]
    pub fn rule(&self, id: &ItemId) -> Option<StandingRule> {
        let found = self.find_rules(self.anchor()).rules;
        let mut known = self.known_rules(self.anchor(), &found).into_iter().map(|(_, rule)| rule);
        known.find(|rule| rule.id == *id)
    }

    /// Returns the user's rules of the conversation in log order: those that the application keeps, and those
    /// that were found in messages up to the last prompt or compaction.
    pub fn rules(&self) -> impl Iterator<Item = StandingRule> {
        self.known_rules(self.anchor(), &[]).into_iter().map(|(_, rule)| rule)
    }

    /// Finds the user's rules in the messages of the user that the last prompt did not search (rule R2).
    /// Rules of archived messages are in the records of their compactions.
    pub(crate) fn find_rules(&self, anchor: Option<&Anchor>) -> FoundRules {
        let through = anchor.and_then(|anchor| anchor.rules_through.as_ref());
        let searched = through.and_then(|id| self.position_of(id)).map_or(0, |position| position + 1);
        let mut rules = Vec::new();
        // Linear in the text of the user since the last prompt.
        for position in self.archive_index.active_in(searched..self.len()).into_iter().flatten() {
            let message = self.message(position);
            if message.role() == Role::User {
                let id = self.message_id(position);
                let found = message
                    .own_texts()
                    .flat_map(|text| cue_words::find_rules(text).into_iter().map(|range| &text[range]));
                rules.extend(found.zip(1..).map(|(text, number)| StandingRule::found(&id, number, text)));
            }
        }
        FoundRules { rules, through: self.len().checked_sub(1).map(|last| self.message_id(last)) }
    }

    /// Returns the user's rules with their places, in the order of the places. `anchor` is that of the last
    /// prompt, `found` are rules that were found since.
    ///
    /// Of equal texts, the newest counts, or the one that the application keeps.
    pub(crate) fn known_rules(
        &self,
        anchor: Option<&Anchor>,
        found: &[StandingRule],
    ) -> Vec<(u32, StandingRule)> {
        let of_compactions = self.compactions().flat_map(|record| &record.rules);
        let of_messages = of_compactions.chain(anchor.iter().flat_map(|anchor| &anchor.rules)).chain(found);
        let is_free = |rule: &&StandingRule| {
            !self.rules.kept.contains_key(&rule.id) && !self.rules.dropped.contains(&rule.id)
        };
        let mut by_id: BTreeMap<&ItemId, (Place, &StandingRule)> = BTreeMap::new();
        for (number, rule) in (0..).zip(of_messages.filter(is_free)) {
            by_id.entry(&rule.id).or_insert((self.place(rule, number), rule));
        }
        let kept = self.rules.kept.values().map(|(place, rule)| match &rule.message {
            Some(_) => (self.place(rule, place.1), rule),
            None => (*place, rule),
        });
        let mut all: Vec<(Place, &StandingRule)> = by_id.into_values().chain(kept).collect();
        all.retain(|(_, rule)| !self.is_rewound(rule));
        // Numbers of rules found in one message are compared by their ids' order of finding, which is stable.
        all.sort_by_key(|(place, _)| *place);
        let mut texts = BTreeSet::new();
        let is_kept = |rule: &StandingRule| rule.source == RuleSource::Application;
        // The application's first, then the newest: the first one with a text counts.
        let own = all.iter().filter(|(_, rule)| is_kept(rule));
        let others = all.iter().filter(|(_, rule)| !is_kept(rule));
        let ranked = own.rev().chain(others.rev()).filter(|(_, rule)| texts.insert(rule.folded()));
        let counted: BTreeSet<&ItemId> = ranked.take(MOST).map(|(_, rule)| &rule.id).collect();
        let counted = all.iter().filter(|(_, rule)| counted.contains(&rule.id));
        counted.map(|((before, _), rule)| (*before, (*rule).clone())).collect()
    }

    /// Returns the position of the message that says a rule. Returns `None` if it is not in this
    /// conversation: a caller without stored state may send a shorter history, in which the id is that of
    /// another message.
    pub(crate) fn position_of_rule(&self, rule: &StandingRule) -> Option<u32> {
        let position = self.position_of(rule.message.as_ref()?)?;
        let message = self.message(position);
        let says = || message.own_texts().any(|text| text.contains(&*rule.text));
        let is_known = rule.source == RuleSource::Application || !message.is_loaded() || says();
        (message.role() == Role::User && is_known).then_some(position)
    }

    /// Returns the place of a rule: that of its message, or the beginning if the message is not in this
    /// conversation.
    fn place(&self, rule: &StandingRule, number: u32) -> Place {
        (self.position_of_rule(rule).map_or(0, |position| position + 1), number)
    }

    /// Checks if a rewind removed the message of a rule.
    fn is_rewound(&self, rule: &StandingRule) -> bool {
        let position = self.position_of_rule(rule);
        position.is_some_and(|at| self.archive_index().archived(at) == Some(ArchivedBy::Rewind))
    }
}
