//! Messages of the conversation as they are sent in full.
//!
//! - Input: a position in the conversation.
//! - Output: the message, without withheld reasoning, and with the calls of a user as text.
//! - Rules: H9, K1.

use super::Candidates;
use crate::{conversation::Place, message::Message, provider::wording};
use std::borrow::Cow;

impl<'a> Candidates<'a> {
    /// Returns a message as it is sent in full. Calls of a user and their results become user text (rule H9).
    pub(crate) fn said(&self, position: u32) -> Cow<'a, Message> {
        // Most conversations have neither calls of users nor withheld reasoning: then nothing is copied.
        if !self.log.turns().any_head_calls() && self.withheld.is_empty() {
            return Cow::Borrowed(self.log.message(position));
        }
        match self.as_text_of_the_user(position) {
            Some(text) => Cow::Owned(text),
            None => match self.withheld.get(&position) {
                Some(without) => Cow::Owned(without.clone()),
                None => Cow::Borrowed(self.log.message(position)),
            },
        }
    }

    /// Checks if the reasoning of a message is withheld (rule K1).
    pub(crate) fn withholds_reasoning_of(&self, position: u32) -> bool {
        self.withheld.contains_key(&position)
    }

    /// Checks if a message is a call of the user or a result of one, which is sent as user text (rule H9).
    pub(crate) fn is_call_of_a_user(&self, position: u32) -> bool {
        let turns = self.log.turns();
        matches!(turns.place_of(position), Place::Head(turn) if turns.head_calls(turn))
    }

    /// Returns a call of the user, or a result of one, as user text. Returns `None` for other messages.
    fn as_text_of_the_user(&self, position: u32) -> Option<Message> {
        let turns = self.log.turns();
        let Place::Head(turn) = turns.place_of(position) else { return None };
        if !turns.head_calls(turn) {
            return None;
        }
        let head = self.log.message(turns.head(turn)?);
        if !head.is_loaded() || !self.log.message(position).is_loaded() {
            return None;
        }
        let calls = head.tool_calls();
        // Several calls are numbered, so that the model can match their results.
        let number = |nth: usize| (calls.len() > 1).then_some(nth + 1);
        if turns.head(turn) == Some(position) {
            return Some(head.with_calls_as_texts(|nth, call| wording::user_call(call, number(nth))));
        }
        let result = self.log.message(position);
        let nth = turns.head_call(turn, position).and_then(number);
        Some(result.as_text_of_a_user(|text| wording::user_result(text, result.is_failed(), nth)))
    }
}
