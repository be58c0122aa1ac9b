//! Tool results as one prompt sends them (rule S7): whole, cleared to a stub, or clipped. The log is untouched.

use super::{CandidateId, Candidates};
use crate::{
    conversation::{ExchangeIndex, Place},
    item::ItemId,
    message::{Message, Role},
    provider::wording,
};
use std::{borrow::Cow, collections::BTreeMap};

/// Which results are shortened.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Results {
    /// Results before this position are sent as stubs.
    pub(super) cleared_before: u32,
    /// Documents and state that stand before this position are no longer sent (rule S10).
    pub(crate) released_before: u32,
    /// Whether that is so from this plan on.
    pub(crate) releases: bool,
    /// Whether they leave because they do not fit: then the window is cut deep too.
    pub(crate) cuts: bool,
    /// Whether the boundary moved in this plan.
    pub(super) moved: bool,
    /// By position, what is sent for results of the open exchange that are too long.
    pub(super) clipped: BTreeMap<u32, Message>,
}

impl Results {
    /// What the last prompt left behind.
    pub(crate) fn remembered(candidates: &Candidates<'_>) -> Self {
        let clears = candidates.index().clears_results();
        let cleared_before = candidates.cleared_before.filter(|_| clears).unwrap_or_default();
        let standing = candidates.standing();
        let kept = Self { cleared_before, released_before: standing.released_before, ..Self::default() };
        let leave = standing.unanswered().filter(|_| standing.upkeep.is_some_and(|upkeep| upkeep.leave));
        let left = leave.and_then(|question| kept.releasing(candidates, question));
        left.map_or(kept, |left| Self { cuts: false, ..left })
    }

    /// What is sent for a message.
    pub(crate) fn as_sent<'m>(&self, candidates: &Candidates<'m>, position: u32) -> Cow<'m, Message> {
        if let Some(clipped) = self.clipped.get(&position) {
            return Cow::Owned(clipped.clone());
        }
        let cleared = (position < self.cleared_before).then(|| stub(candidates, position)).flatten();
        cleared.map_or_else(|| candidates.said(position), Cow::Owned)
    }

    /// The last message whose documents and state are no longer sent, if that is any.
    pub(crate) fn released_through(&self, candidates: &Candidates<'_>) -> Option<ItemId> {
        self.released_before.checked_sub(1).map(|last| candidates.log.message_id(last))
    }

    /// Whether anything stands before a position that was not released yet.
    fn stand_within(&self, candidates: &Candidates<'_>, before: u32) -> bool {
        let mut within = candidates.log.sent_with().within(self.released_before..before);
        within.any(|(at, _)| candidates.standing().holds(candidates.log, at))
    }

    /// These, without the documents and state that stand before a position. None where nothing stands there.
    pub(crate) fn releasing(&self, candidates: &Candidates<'_>, before: u32) -> Option<Self> {
        let stand = candidates.standing().stays && before > self.released_before;
        let any = stand && self.stand_within(candidates, before);
        any.then(|| Self { released_before: before, releases: true, cuts: true, ..self.clone() })
    }

    /// The message before which results are cleared, if that is any.
    pub(crate) fn boundary(&self, candidates: &Candidates<'_>) -> Option<ItemId> {
        (self.cleared_before > 0).then(|| candidates.log.message_id(self.cleared_before))
    }

    /// Whether results of the open exchange are sent without their middle.
    pub(crate) fn clips(&self) -> bool {
        !self.clipped.is_empty()
    }

    /// Whether the boundary moved in this plan.
    pub(crate) fn has_moved(&self) -> bool {
        self.moved
    }

    /// Whether a message is sent shorter than it is, and whether that is a clip.
    pub(crate) fn shortens(&self, candidates: &Candidates<'_>, position: u32) -> Option<Shortened> {
        if self.clipped.contains_key(&position) {
            return Some(Shortened::Clipped);
        }
        let cleared = position < self.cleared_before && stub(candidates, position).is_some();
        cleared.then_some(Shortened::Cleared)
    }
}

/// How a result is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortened {
    Cleared,
    Clipped,
}

/// The exchange that a result is part of.
pub(super) fn answered_exchange(candidates: &Candidates<'_>, position: u32) -> Option<ExchangeIndex> {
    let turns = candidates.log.turns();
    match turns.place_of(position) {
        Place::Exchange(at) => (turns.exchange(at).at != position).then_some(at),
        Place::Leading | Place::Head(_) | Place::Archived => None,
    }
}

/// The stub that is sent instead of a cleared result. Pinned and required exchanges are never cleared, and nothing that is shorter than
/// its stub.
pub(super) fn stub(candidates: &Candidates<'_>, position: u32) -> Option<Message> {
    let message = candidates.log.message(position);
    if message.role() != Role::Tool || !message.may_say_another_text() {
        return None;
    }
    let id = CandidateId::Exchange(answered_exchange(candidates, position)?);
    if candidates.index.brought.contains_key(&id) || candidates.index.required_conversation.contains(&id) {
        return None;
    }
    let bytes: usize = message.texts().map(str::len).sum();
    let id = candidates.log.message_id(position);
    let stub = message.stub(&id, || wording::cleared_result(&id, bytes));
    (stub.text().len() < bytes || message.images().next().is_some()).then_some(stub)
}
