//! Large tool results of which the prompt has only beginning and end.
//!
//! - Input: a position in the conversation.
//! - Output: the offloaded result, and the bytes of messages with offloaded results as they are sent.
//! - Rules: S7.

use super::{Candidates, result_forms::count_bytes, results::answered_exchange};
use crate::{
    message::{Message, Role, ShortForm, Tool},
    plan::ResultForm,
    provider::{meter, wording},
};
use std::ops::Range;

impl Candidates<'_> {
    /// Returns the forms of tool results, for the next prompt.
    pub(crate) fn result_forms(&self) -> &[ResultForm] {
        &self.forms.recorded
    }

    /// Checks if the request declares the tool that reads offloaded results.
    pub(crate) fn declares_recall(&self) -> bool {
        self.forms.has_reader
    }

    /// Checks if a result is sent whole only because no declared tool could read the rest.
    pub(crate) fn lacks_recall_tool(&self, position: u32) -> bool {
        self.forms.is_wanted
            && !self.forms.has_reader
            && self.is_large(position, self.config.conversation.offload_above)
            && self.offloaded(position).is_none()
            && !self.is_read_back(position)
    }

    /// Returns the bytes of the messages in a range of positions, with offloaded results as they are sent.
    pub(crate) fn bytes_sent(&self, range: &Range<u32>) -> u64 {
        let bytes = self.log.turns().bytes(range);
        if !self.forms.any() {
            return bytes;
        }
        let saved = self.forms.saved.get_or_init(|| {
            let mut sum = 0;
            let large = self.log.turns().large_results().iter();
            let results = large.filter_map(|at| {
                let short = self.offloaded(*at)?;
                sum += meter::bytes(self.log.message(*at)).saturating_sub(meter::bytes(&short));
                Some((*at, sum))
            });
            results.collect()
        });
        let before = |position: u32| {
            let after = saved.partition_point(|(at, _)| *at < position);
            after.checked_sub(1).map_or(0, |last| saved[last].1)
        };
        bytes.saturating_sub(before(range.end) - before(range.start))
    }

    /// Returns an offloaded result as it is sent. Returns `None` for all other messages.
    pub(crate) fn offloaded(&self, position: u32) -> Option<Message> {
        let bytes = self.offloaded_bytes(position)?;
        let (message, id) = (self.log.message(position), self.log.message_id(position));
        let keep = usize::try_from(bytes).unwrap_or(usize::MAX);
        message.shortened(&id, ShortForm::Offloaded(bytes), || {
            message.with_shorter_texts(|text| wording::offloaded_result(&id, text, keep))
        })
    }

    /// Returns the bytes that an offloaded result keeps. Returns `None` for all other messages.
    pub(super) fn offloaded_bytes(&self, position: u32) -> Option<u64> {
        if !self.forms.any() {
            return None;
        }
        let message = self.log.message(position);
        if message.role() != Role::Tool || !message.is_loaded() {
            return None;
        }
        let limits = self.forms.limits_at(position)?;
        let is_offloaded = self.is_large(position, limits.above) && !self.is_read_back(position);
        is_offloaded.then_some(limits.keep)
    }

    /// Checks if the texts of a result have more than this number of bytes.
    fn is_large(&self, position: u32, above: u64) -> bool {
        count_bytes(self.log.message(position)) > above
    }

    /// Checks if a result is an answer of the tool that reads offloaded results. Offloaded, it could never be
    /// read.
    fn is_read_back(&self, position: u32) -> bool {
        let Some(at) = answered_exchange(self, position) else { return true };
        let exchange = self.log.turns().exchange(at);
        let calls = self.log.message(exchange.at).tool_calls().iter();
        calls
            .zip(&exchange.answers)
            .any(|(call, answer)| *answer == Some(position) && call.name == Tool::RECALL)
    }
}
