//! Pins, notes and lifetimes of a conversation (rules S2, S3, T1 to T3).

use super::{Conversation, Event, Lifetime, Notes};
use crate::{
    error::Error,
    item::{ItemId, PinnedItem, Priority, Ttl},
};
use std::collections::BTreeMap;

impl Conversation {
    /// Pins a note. A note with the same id is replaced. Pinning again is also the way to keep a note whose
    /// TTL is used up.
    pub fn pin(&mut self, item: PinnedItem) {
        self.record(Event::Pinned(item));
    }

    /// Pins the exchange of this message (rule S3). If the message's TTL is used up, the TTL is removed,
    /// which is the way to keep a message that a plan asks about (rule T2). If a compaction archived the
    /// message, it is sent again after the summary.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no message has this id.
    pub fn pin_message(&mut self, id: impl Into<ItemId>, priority: Priority) -> Result<(), Error> {
        let id = id.into();
        self.position(&id)?;
        self.record(Event::MessagePinned { id, priority });
        Ok(())
    }

    /// Unpins a message, or removes a note so that its id may be used again. Returns true if the item was
    /// pinned.
    pub fn unpin(&mut self, id: impl Into<ItemId>) -> bool {
        let id = id.into();
        let pinned = |position| self.pins.contains_key(&position);
        let was_pinned = self.has_note(&id) || self.position_of(&id).is_some_and(pinned);
        if was_pinned {
            self.record(Event::Unpinned(id));
        }
        was_pinned
    }

    /// Returns the pinned notes in the order of their pins, each as it was pinned. The remaining TTL is
    /// [`Conversation::ttl`].
    pub fn notes(&self) -> impl Iterator<Item = &PinnedItem> {
        self.notes.iter().map(|(_, note)| &note.item)
    }

    /// Returns the pinned messages in log order, with their priorities among pinned items. For notes, see
    /// [`Conversation::notes`].
    pub fn pins(&self) -> impl Iterator<Item = (ItemId, Priority)> {
        self.pins.iter().map(|(position, priority)| (self.message_id(*position), *priority))
    }

    /// Returns the remaining TTL of a note or message, or `None` if it has no TTL.
    #[must_use]
    pub fn ttl(&self, id: &str) -> Option<Ttl> {
        self.lifetime(&ItemId::from(id)).map(|lifetime| lifetime.left)
    }

    /// Returns every id with a TTL, sorted by id, with the remaining TTL.
    pub fn ttls(&self) -> impl Iterator<Item = (&ItemId, Ttl)> {
        // Sorted, because the map's order depends on removals.
        let mut all: Vec<_> = self.lifetimes.iter().map(|(id, lifetime)| (id, lifetime.left)).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter()
    }

    /// Returns true if a pinned note or a pinned message has this id.
    #[must_use]
    pub fn is_pinned(&self, id: &str) -> bool {
        let id = ItemId::from(id);
        self.has_note(&id) || self.position_of(&id).is_some_and(|position| self.pins.contains_key(&position))
    }

    /// Sets the TTL of a note or message.
    ///
    /// # Errors
    ///
    /// `ErrorKind::NotFound` if no note or message has this id.
    pub fn set_ttl(&mut self, id: impl Into<ItemId>, ttl: Ttl) -> Result<(), Error> {
        self.restore_ttl(id.into(), ttl, false)
    }

    #[doc(hidden)]
    pub fn restore_ttl(&mut self, id: ItemId, ttl: Ttl, asked: bool) -> Result<(), Error> {
        if !self.has_note(&id) {
            self.position(&id)?;
        }
        self.record(Event::TtlSet { id, ttl, asked });
        Ok(())
    }

    pub(super) fn set_lifetime(&mut self, id: &ItemId, left: Ttl, asked: bool) {
        self.lifetimes.insert(id.clone(), Lifetime { left, asked });
    }

    #[doc(hidden)]
    #[must_use]
    pub fn note_entries(&self) -> &Notes {
        &self.notes
    }

    #[doc(hidden)]
    #[must_use]
    pub fn has_note(&self, id: &ItemId) -> bool {
        self.ids.is_note(id)
    }

    pub(crate) fn pin_priorities(&self) -> &BTreeMap<u32, Priority> {
        &self.pins
    }

    /// Returns true if a document already got its one extra turn (rule T2).
    pub(crate) fn is_asked_document(&self, id: &ItemId) -> bool {
        self.asked_documents.contains(id)
    }

    #[doc(hidden)]
    #[must_use]
    pub fn lifetime(&self, id: &ItemId) -> Option<Lifetime> {
        self.lifetimes.get(id).copied()
    }

    /// Returns the lifetime of a message, or `None` if it has no TTL. Builds no id string if no item has a
    /// TTL.
    pub(crate) fn message_lifetime(&self, position: u32) -> Option<Lifetime> {
        if self.lifetimes.is_empty() {
            return None;
        }
        self.lifetime(&self.message_id(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[test]
    fn pinning_again_renews_an_expired_lifetime() {
        let mut log = Conversation::from([Message::user("a")]);
        log.set_ttl("m0", Ttl::NoneRemaining).unwrap();
        log.pin_message("m0", Priority::Normal).unwrap();
        assert_eq!(log.lifetime(&"m0".into()), None);
        log.pin(PinnedItem::new("n", "note").with_ttl(Ttl::turns(0)));
        log.pin(PinnedItem::new("n", "note").with_ttl(Ttl::turns(2)));
        assert_eq!(log.lifetime(&"n".into()).unwrap().left, Ttl::turns(2));
        assert_eq!(log.note_entries().iter().count(), 1);
    }

    #[test]
    fn unknown_ids_cannot_be_pinned_or_given_a_ttl() {
        let mut log = Conversation::from([Message::user("a").with_id("x")]);
        for id in ["m0", "m1", "y"] {
            assert_eq!(log.pin_message(id, Priority::High).unwrap_err().kind(), crate::ErrorKind::NotFound);
            assert!(log.set_ttl(id, Ttl::Unlimited).is_err());
        }
        assert!(log.pin_message("x", Priority::High).is_ok());
    }
}
