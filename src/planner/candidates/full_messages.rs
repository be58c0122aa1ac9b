//! Messages of the conversation as they are sent in full.
//!
//! - Input: a position in the conversation.
//! - Output: the message, without withheld reasoning, with the calls of a user as text, and without the
//!   middle of an offloaded result.
//! - Rules: H9, K1, S7.

use super::Candidates;
use crate::{conversation::Place, message::Message, planner::repair::SentMessage, provider::wording};
use std::borrow::Cow;

impl<'a> Candidates<'a> {
    /// Returns a message as it is sent in full: neither cleared nor clipped. Calls of a user and their
    /// results become user text (rule H9), and an offloaded result has no middle.
    pub(crate) fn full_message(&self, position: u32) -> Cow<'a, Message> {
        if let Some(short) = self.offloaded(position) {
            return Cow::Owned(short);
        }
        // Most conversations have neither calls of users nor withheld reasoning: then nothing is copied.
        if !self.log.turns().has_any_user_calls() && self.withheld.is_empty() {
            return Cow::Borrowed(self.log.message(position));
        }
        let changed = self.to_user_text(position).or_else(|| self.withheld.get(&position).cloned());
        changed.map_or(Cow::Borrowed(self.log.message(position)), Cow::Owned)
    }

    /// Returns a message of an exchange as it is sent in full.
    pub(crate) fn full_piece(&self, piece: &SentMessage) -> Message {
        let Some(position) = piece.position else { return piece.message.clone() };
        if self.withheld.contains_key(&position) {
            return piece.message.without_reasoning();
        }
        self.offloaded(position).map_or_else(|| piece.message.clone(), |short| piece.in_form(short))
    }

    /// Checks if a message is a call of the user or a result of one, which is sent as user text (rule H9).
    pub(crate) fn is_user_call(&self, position: u32) -> bool {
        let turns = self.log.turns();
        matches!(turns.place_of(position), Place::UserMessage(turn) if turns.has_user_calls(turn))
    }

    /// Returns a call of the user, or a result of one, as user text. Returns `None` for other messages.
    fn to_user_text(&self, position: u32) -> Option<Message> {
        let turns = self.log.turns();
        let Place::UserMessage(turn) = turns.place_of(position) else { return None };
        if !turns.has_user_calls(turn) {
            return None;
        }
        let head = self.log.message(turns.user_message(turn)?);
        if !head.is_loaded() || !self.log.message(position).is_loaded() {
            return None;
        }
        let calls = head.tool_calls();
        // Several calls are numbered, so that the model can match their results.
        let number = |nth: usize| (calls.len() > 1).then_some(nth + 1);
        if turns.user_message(turn) == Some(position) {
            return Some(head.with_calls_as_texts(|nth, call| wording::user_call(call, number(nth))));
        }
        let result = self.log.message(position);
        let nth = turns.user_call_index(turn, position).and_then(number);
        Some(result.as_user_text(|text| wording::user_result(text, result.is_failed(), nth)))
    }
}
