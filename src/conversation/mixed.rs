//! Hypothetical logs for comparisons and explanations: mixtures of two logs, and copies with one text
//! replaced.

use super::{Conversation, Event, Lifetime};
use crate::{
    item::{ItemId, Priority},
    message::Message,
};
use indexmap::IndexMap;
use std::{borrow::Cow, collections::BTreeMap};

/// The source log of each part of a mixed log. An item that only one log contains brings its own properties.
#[derive(Clone, Copy)]
pub(crate) struct MixedConversation<'a> {
    /// Messages, system texts, notes and rules of the user.
    pub(crate) items: &'a Conversation,
    /// The source of pins on messages.
    pub(crate) pins: &'a Conversation,
    /// The source of priorities.
    pub(crate) priorities: &'a Conversation,
    /// The source of lifetimes.
    pub(crate) lifetimes: &'a Conversation,
    /// The source of sent prompts.
    pub(crate) sent: &'a Conversation,
    /// The source of compactions and rewinds.
    pub(crate) archived: &'a Conversation,
}

impl<'a> MixedConversation<'a> {
    /// Returns the mixed log. If all parts come from one log, returns that log without a copy.
    pub(crate) fn log(&self) -> Cow<'a, Conversation> {
        let Self { items, pins, priorities, lifetimes, sent, archived } = *self;
        if [pins, priorities, lifetimes, sent, archived].into_iter().all(|log| std::ptr::eq(log, items)) {
            return Cow::Borrowed(items);
        }
        Cow::Owned(self.mixed())
    }

    fn mixed(&self) -> Conversation {
        let mut log = Conversation::new();
        for text in &self.items.system {
            let id = text.id().cloned().unwrap_or_else(|| ItemId::from(""));
            log.push_system(id, text.text());
        }
        let mut notes = self.items.notes.iter().map(|(_, note)| note).peekable();
        let of_the_view =
            |event: &&(u32, Event)| matches!(event.1, Event::Compacted(_) | Event::Rewound { .. });
        let mut archived = self.archived.events.iter().filter(of_the_view).peekable();
        let of_a_rule = |event: &&(u32, Event)| matches!(event.1, Event::RuleKept(_) | Event::RuleDropped(_));
        let mut rules = self.items.events.iter().filter(of_a_rule).peekable();
        for (message, at) in self.items.messages.iter().zip(0..) {
            while let Some((_, event)) = rules.next_if(|(before, _)| *before <= at) {
                log.record(event.clone());
            }
            // Archiving events keep their place: their ids resolve only to messages already in the log.
            while let Some((_, event)) = archived.next_if(|(before, _)| *before <= at) {
                log.record(event.clone());
            }
            while let Some(note) = notes.next_if(|note| note.before <= at) {
                log.pin(note.item.clone());
            }
            log.push(message.clone());
        }
        rules.chain(archived).for_each(|(_, event)| log.record(event.clone()));
        notes.for_each(|note| log.pin(note.item.clone()));
        for note in log.notes.iter_mut() {
            if let Some(other) = self.priorities.notes.find(&note.item.id) {
                note.item.priority = other.item.priority;
            }
        }
        log.pins = self.pinned(&log);
        // `pins` was replaced without events, so the turns that pins keep must be rebuilt.
        if !log.archive_index.is_whole() {
            log.rebuild_turns();
        }
        log.lifetimes = self.living(&log);
        for at in &self.sent.sent {
            log.record(self.sent.events[*at].1.clone());
        }
        log
    }

    fn pinned(&self, log: &Conversation) -> BTreeMap<u32, Priority> {
        let mut pins = BTreeMap::new();
        for position in 0..log.len() {
            let id = log.message_id(position);
            let of = |other: &Conversation| other.position_of(&id).map(|at| other.pins.get(&at).copied());
            // A message that is unknown to the source of pins keeps the pin of its own log.
            if let Some(own) = of(self.pins).or_else(|| of(self.items)).flatten() {
                pins.insert(position, of(self.priorities).flatten().unwrap_or(own));
            }
        }
        pins
    }

    fn living(&self, log: &Conversation) -> IndexMap<ItemId, Lifetime> {
        let ids = (0..log.len())
            .map(|at| log.message_id(at))
            .chain(log.notes.iter().map(|(_, note)| note.item.id.clone()));
        let knows = |id: &ItemId| self.lifetimes.position_of(id).is_some() || self.lifetimes.has_note(id);
        let from = |id: &ItemId| if knows(id) { self.lifetimes } else { self.items };
        ids.filter_map(|id| Some((id.clone(), *from(&id).lifetimes.get(&id)?))).collect()
    }
}

impl Conversation {
    /// Returns the text of a message, note or system text, or `None` if no item has this id.
    pub(crate) fn text_of(&self, id: &ItemId) -> Option<&str> {
        let message = self.position_of(id).map(|position| self.message(position));
        let note = || self.notes.find(id).map(|note| &note.message);
        let system = || self.system.iter().find(|text| text.id() == Some(id));
        message.or_else(note).or_else(system).map(Message::text)
    }

    /// Replaces the text of a message, note or system text. Only for a hypothetical copy, because the log
    /// itself is append-only.
    pub(crate) fn replace_text(&mut self, id: &ItemId, text: &str) {
        let position = self.position_of(id).map(|position| position as usize);
        let message = match position {
            Some(position) => self.messages.get_mut(position),
            None => {
                let note = self.notes.find_mut(id).map(|note| &mut note.message);
                note.or_else(|| self.system.iter_mut().find(|text| text.id() == Some(id)))
            }
        };
        if let Some(message) = message {
            *message = message.with_new_text(text.to_owned());
        }
    }

    /// Returns true if both logs hold the same messages, system texts, notes and rules. Pins and lifetimes
    /// may differ.
    pub(crate) fn has_the_items_of(&self, other: &Self) -> bool {
        let ids = |log: &Self| -> Vec<ItemId> { (0..log.len()).map(|at| log.message_id(at)).collect() };
        let notes = |log: &Self| -> Vec<(u32, ItemId, Message)> {
            let notes = log.notes.iter().map(|(_, note)| note);
            notes.map(|note| (note.before, note.item.id.clone(), note.message.clone())).collect()
        };
        self.messages == other.messages
            && ids(self) == ids(other)
            && self.system == other.system
            && notes(self) == notes(other)
            && self.rules == other.rules
    }

    /// Returns the lifetimes of all notes and messages that have a TTL.
    pub(crate) fn all_lifetimes(&self) -> &IndexMap<ItemId, Lifetime> {
        &self.lifetimes
    }

    /// Returns the priorities of the notes, in note order.
    pub(crate) fn note_priorities(&self) -> Vec<(&ItemId, Priority)> {
        self.notes.iter().map(|(_, note)| (&note.item.id, note.item.priority)).collect()
    }

    /// Returns every compaction and rewind, oldest first.
    pub(crate) fn all_archived(&self) -> impl Iterator<Item = &Event> {
        let events = self.events.iter().map(|(_, event)| event);
        events.filter(|event| matches!(event, Event::Compacted(_) | Event::Rewound { .. }))
    }

    /// Returns the events of all sent prompts, oldest first.
    pub(crate) fn all_sent(&self) -> Vec<&Event> {
        self.sent.iter().map(|at| &self.events[*at].1).collect()
    }
}
