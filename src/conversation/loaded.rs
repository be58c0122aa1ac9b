//! Conversations whose archived texts are in a store: which messages a plan needs, and how texts come back.

use super::{Conversation, Place};
use crate::message::Message;

impl Conversation {
    /// Whether the message at a position is active, or kept by a pin: what plans may send.
    #[doc(hidden)]
    #[must_use]
    pub fn may_be_sent(&self, position: u32) -> bool {
        self.turns.place_of(position) != Place::Archived
    }

    /// Puts a message in the place of its outline. Turns, ids and sizes are those of the outline, so nothing else changes.
    #[doc(hidden)]
    pub fn put_loaded(&mut self, position: u32, message: Message) {
        self.messages[position as usize] = message;
    }
}
