//! Rules of the user in a conversation (rules R1 to R4).

use super::{ArchivedBy, Conversation, Event};
use crate::{
    cue_words,
    error::Error,
    item::ItemId,
    message::Role,
    plan::{SearchedRules, anchor::Anchor},
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

/// A rule of the user that a request knows.
#[derive(Debug, Clone)]
pub(crate) struct KnownRule {
    pub(crate) rule: StandingRule,
    /// The number of messages before it in the log.
    pub(crate) before: u32,
    /// The position of its message. `None` if the message is not in this conversation.
    pub(crate) position: Option<u32>,
}

/// A place in the log: the number of messages before it, then the number of the rule there.
type Place = (u32, u32);

/// A rule with the position of its message.
struct Located<'r> {
    rule: &'r StandingRule,
    place: Place,
    position: Option<u32>,
}

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
        let mut known = self.known_rules(self.anchor(), &found).into_iter().map(|known| known.rule);
        known.find(|rule| rule.id == *id)
    }

    /// Returns the user's rules of the conversation in log order: those that the application keeps, and those
    /// that were found in messages up to the last prompt or compaction.
    pub fn rules(&self) -> impl Iterator<Item = StandingRule> {
        self.known_rules(self.anchor(), &[]).into_iter().map(|known| known.rule)
    }

    /// Finds the user's rules in the messages of the user that the last prompt did not search (rule R2).
    /// Rules of archived messages are in the records of their compactions.
    pub(crate) fn find_rules(&self, anchor: Option<&Anchor>) -> SearchedRules {
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
        SearchedRules { rules, through: self.len().checked_sub(1).map(|last| self.message_id(last)) }
    }

    /// Checks if the application keeps rules of the user.
    pub(crate) fn keeps_rules(&self) -> bool {
        !self.rules.kept.is_empty()
    }

    /// Returns the user's rules in the order of their places. `anchor` is that of the last prompt, `found`
    /// are rules that were found since.
    ///
    /// Of equal texts, the newest counts, or the one that the application keeps.
    pub(crate) fn known_rules(&self, anchor: Option<&Anchor>, found: &[StandingRule]) -> Vec<KnownRule> {
        let of_compactions = self.compactions().flat_map(|record| &record.rules);
        let of_messages = of_compactions.chain(anchor.iter().flat_map(|anchor| &anchor.rules)).chain(found);
        let is_free = |rule: &&StandingRule| {
            !self.rules.kept.contains_key(&rule.id) && !self.rules.dropped.contains(&rule.id)
        };
        let mut by_id: BTreeMap<&ItemId, Located<'_>> = BTreeMap::new();
        for (number, rule) in (0..).zip(of_messages.filter(is_free)) {
            by_id.entry(&rule.id).or_insert_with(|| self.locate(rule, (0, number)));
        }
        let kept = self.rules.kept.values().map(|(place, rule)| match rule.message {
            Some(_) => self.locate(rule, (0, place.1)),
            None => self.locate(rule, *place),
        });
        let mut all: Vec<Located<'_>> = by_id.into_values().chain(kept).collect();
        all.retain(|one| !one.position.is_some_and(|at| self.is_rewound(at)));
        all.sort_by_key(|one| one.place);
        let mut texts = BTreeSet::new();
        let is_kept = |one: &&Located<'_>| one.rule.source == RuleSource::Application;
        // The application's first, then the newest: the first one with a text counts.
        let ranked = all.iter().filter(is_kept).rev().chain(all.iter().filter(|one| !is_kept(one)).rev());
        let ranked = ranked.filter(|one| texts.insert(one.rule.folded()));
        let counted: BTreeSet<&ItemId> = ranked.take(MOST).map(|one| &one.rule.id).collect();
        all.retain(|one| counted.contains(&one.rule.id));
        let known = |one: Located<'_>| KnownRule {
            rule: one.rule.clone(),
            before: one.place.0,
            position: one.position,
        };
        all.into_iter().map(known).collect()
    }

    /// Finds the message of a rule. Its place is directly after that message, or `otherwise` if there is
    /// none.
    fn locate<'r>(&self, rule: &'r StandingRule, otherwise: Place) -> Located<'r> {
        let position = self.position_of_rule(rule);
        let place = position.map_or(otherwise, |position| (position + 1, otherwise.1));
        Located { rule, place, position }
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

    /// Checks if a rewind removed a message.
    fn is_rewound(&self, position: u32) -> bool {
        self.archive_index().archived(position) == Some(ArchivedBy::Rewind)
    }
}
