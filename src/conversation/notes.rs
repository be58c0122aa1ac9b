//! Pinned notes.

use crate::{
    item::{ItemId, PinnedItem},
    message::Message,
};
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// A pinned note and its position in the log.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub struct Note {
    /// The number of messages before it.
    pub(crate) before: u32,
    #[doc(hidden)]
    pub item: PinnedItem,
    /// The message that is sent for the note.
    pub(crate) message: Message,
    /// The facts about a rule of the user, which is selected and counted like a note.
    pub(crate) rule: Option<RuleNote>,
}

/// The facts about a rule of the user (rules R1 to R3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleNote {
    /// The message that says it, with its position if it is in the conversation.
    pub(crate) message: Option<(ItemId, Option<u32>)>,
    /// True if the user has to confirm it first.
    pub(crate) asks: bool,
}

/// The notes of a conversation in pin order. A note that is pinned again becomes the newest.
#[derive(Debug, Clone, Default)]
#[doc(hidden)]
pub struct Notes {
    /// The notes by a number that rises with each pin and is never reused.
    list: BTreeMap<u32, Note>,
    /// The current number of each id.
    numbers: IndexMap<ItemId, u32>,
    next: u32,
}

impl Notes {
    /// Returns the notes in order, each with its number.
    #[doc(hidden)]
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Note)> {
        self.list.iter().map(|(number, note)| (*number, note))
    }

    /// Returns the note with a number that [`Notes::iter`] returned. Panics for any other number.
    pub(crate) fn get(&self, number: u32) -> &Note {
        &self.list[&number]
    }

    /// Returns the note with this id, or `None` if there is none.
    pub(crate) fn find(&self, id: &ItemId) -> Option<&Note> {
        self.numbers.get(id).map(|number| self.get(*number))
    }

    pub(super) fn find_mut(&mut self, id: &ItemId) -> Option<&mut Note> {
        self.list.get_mut(self.numbers.get(id)?)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Note> {
        self.list.values_mut()
    }

    /// Adds a note and removes an earlier one of the same id.
    pub(crate) fn push(&mut self, note: Note) {
        if let Some(before) = self.numbers.insert(note.item.id.clone(), self.next) {
            self.list.remove(&before);
        }
        self.list.insert(self.next, note);
        self.next += 1;
    }

    pub(super) fn remove(&mut self, id: &ItemId) {
        if let Some(number) = self.numbers.swap_remove(id) {
            self.list.remove(&number);
        }
    }
}
