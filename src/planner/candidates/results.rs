//! Messages in one rendering of tool results.
//!
//! - Input: a message, and a rendering.
//! - Output: the message as it is sent: whole, cleared to a stub, or clipped.
//! - Rules: S7, S11.

use super::{CandidateId, Candidates};
use crate::{
    conversation::{ExchangeIndex, Place},
    item::ItemId,
    message::{Message, Role, ShortForm},
    planner::rendering::ToolResultRendering,
    provider::wording,
};
use std::borrow::Cow;

impl Candidates<'_> {
    /// Returns the rendering of the last prompt. The retained texts of earlier questions are left out if they
    /// are to leave with a new question (rule S11), or left in an earlier round (rule S10).
    pub(crate) fn remembered_rendering(&self) -> ToolResultRendering {
        let clears = self.index().clears_results();
        let cleared_before = self.cleared_before.filter(|_| clears).unwrap_or_default();
        let released_before = self.retained.released_before();
        let kept = ToolResultRendering {
            cleared_before,
            released_before,
            counts_recalled: self.index().window_start.is_none(),
            ..ToolResultRendering::default()
        };
        let kept = self.retained.release_before(self.retained.left_before(), &kept).unwrap_or(kept);
        let leave = self
            .retained
            .unanswered()
            .filter(|_| self.retained.retention_cost().is_some_and(|cost| cost.leave));
        let left = leave.and_then(|question| self.retained.release_before(question, &kept));
        // These texts leave because of their cost, not for lack of tokens, so the window is not cut.
        let cuts = kept.cuts;
        left.map_or(kept, |left| ToolResultRendering { cuts, ..left })
    }

    /// Checks if a rendering sends a tool result as a stub, or without its middle.
    pub(super) fn is_shortened(&self, position: u32, rendering: &ToolResultRendering) -> bool {
        rendering.clipped.contains_key(&position)
            || position < rendering.cleared_before && stub(self, position).is_some()
            || self.offloaded(position).is_some()
    }

    /// Returns a message as it is sent in a rendering.
    pub(crate) fn rendered<'m>(&'m self, position: u32, rendering: &ToolResultRendering) -> Cow<'m, Message> {
        if let Some(clipped) = rendering.clipped.get(&position) {
            return Cow::Owned(clipped.clone());
        }
        let cleared = (position < rendering.cleared_before).then(|| stub(self, position)).flatten();
        cleared.map_or_else(|| self.full_message(position), Cow::Owned)
    }

    /// Checks if a rendering sends a stub in place of a message.
    pub(crate) fn is_cleared(&self, position: u32, rendering: &ToolResultRendering) -> bool {
        position < rendering.cleared_before && stub(self, position).is_some()
    }

    /// Returns the message before which a rendering clears results. Returns `None` if it clears none.
    pub(crate) fn cleared_before(&self, rendering: &ToolResultRendering) -> Option<ItemId> {
        (rendering.cleared_before > 0).then(|| self.log.message_id(rendering.cleared_before))
    }
}

/// Returns the exchange that a result belongs to.
pub(super) fn answered_exchange(candidates: &Candidates<'_>, position: u32) -> Option<ExchangeIndex> {
    let turns = candidates.log.turns();
    match turns.place_of(position) {
        Place::Exchange(at) => (turns.exchange(at).at != position).then_some(at),
        Place::Leading | Place::UserMessage(_) | Place::Archived => None,
    }
}

/// Returns the stub that replaces a cleared result. Returns `None` if the result is never cleared: it belongs
/// to a pinned or required exchange, or is shorter than its stub.
pub(super) fn stub(candidates: &Candidates<'_>, position: u32) -> Option<Message> {
    let message = candidates.log.message(position);
    if message.role() != Role::Tool || !message.accepts_new_text() {
        return None;
    }
    let id = CandidateId::Exchange(answered_exchange(candidates, position)?);
    if candidates.index.brought.contains_key(&id) || candidates.index.required_conversation.contains(&id) {
        return None;
    }
    let bytes: usize = message.texts().map(str::len).sum();
    let id = candidates.log.message_id(position);
    let make = || Some(message.with_new_text(wording::cleared_result(&id, bytes)));
    let stub = message.shortened(&id, ShortForm::Stub, make)?;
    // A stub may be longer than a short text, but it is always smaller than an image.
    (stub.text().len() < bytes || message.images().next().is_some()).then_some(stub)
}
