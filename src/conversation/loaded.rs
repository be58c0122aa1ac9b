//! Conversations whose archived texts are in a store: the messages that a plan needs, and the way texts are
//! loaded.

use super::{Conversation, Place};
use crate::message::Message;

impl Conversation {
    /// Returns true if the message at a position is active or kept by a pin, so that a plan may include it.
    #[doc(hidden)]
    #[must_use]
    pub fn may_be_sent(&self, position: u32) -> bool {
        self.turns.place_of(position) != Place::Archived
    }

    /// Replaces an outline by its full message. The outline has the same turns, ids and sizes, so nothing
    /// else changes.
    #[doc(hidden)]
    pub fn put_loaded(&mut self, position: u32, message: Message) {
        self.messages[position as usize] = message;
    }
}
