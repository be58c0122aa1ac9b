//! The prompts that produced reasoning of uncommitted replies.
//!
//! - Input: a laid-out prompt, the last prompt if it is remembered, the conversation.
//! - Output: for each such reply, the reason to withhold its reasoning, or none.
//! - Rules: K5.
//!
//! `push_reply` records the prompt of a reply. Replies of an imported session have no such record, nor have
//! those of a caller that keeps only the last prompt's anchor.
//!
//! The last prompt is the best evidence. It shows the items before the reasoning that it contained, and its
//! own reply was made from the whole of it. All other reasoning is uncovered and is withheld, because pins,
//! notes, system texts and tools may have changed in between. Without a last prompt, the conversation itself
//! is taken as the prompt that was sent.

use crate::{
    conversation::Conversation,
    item::{ItemId, ItemKind, Section},
    message::Role,
    plan::{
        DropReason, ExcludedItem, ExcludedReason, PlannedItem, PolicyRule, PrefixCause, PromptPiece,
        SentPrompt, anchor::Anchor,
    },
};
use std::{cell::OnceCell, collections::BTreeMap, iter};

/// The reasoning of one planned prompt whose original prompt is unknown, and the evidence for it.
pub(super) struct UncommittedReasoning<'p> {
    prompt: SentPrompt<'p>,
    log: &'p Conversation,
    now: &'p [PromptPiece],
    /// The last prompt with its anchor, if it is remembered.
    last: Option<(&'p Anchor, &'p [PromptPiece])>,
    /// The number of items that both prompts begin with, compared without reasoning.
    same: usize,
    /// The place in the last prompt of each message that was sent with reasoning.
    reasoning_places: OnceCell<BTreeMap<&'p ItemId, usize>>,
    /// Without a last prompt: the first row that differs from the conversation, with the reason.
    first_difference: OnceCell<Option<(usize, DropReason)>>,
    /// Without a last prompt: messages that are not sent, with their positions, in the order of the plan.
    missing: OnceCell<Vec<(u32, ItemId)>>,
}

impl<'p> UncommittedReasoning<'p> {
    pub(super) fn new(prompt: SentPrompt<'p>, log: &'p Conversation, now: &'p [PromptPiece]) -> Self {
        let anchor = prompt.before.map(|before| &*before.anchor);
        let last = anchor.and_then(|anchor| Some((anchor, anchor.prompt.as_deref()?)));
        let same = last.map_or(0, |(_, then)| {
            iter::zip(then, now).take_while(|(was, is)| was.is_sent_as_bare(is)).count()
        });
        let (reasoning_places, first_difference, missing) =
            (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { prompt, log, now, last, same, reasoning_places, first_difference, missing }
    }

    /// Returns the reason to withhold the reasoning of an included row, if any, and the message whose
    /// reasoning was sent before it.
    ///
    /// `refused_to` returns the reason if reasoning that was made for a prompt cannot go to this request's
    /// model or sender.
    pub(super) fn find_fault(
        &self,
        row: usize,
        position: u32,
        before_it: Option<ItemId>,
        refused_to: impl Fn(&Anchor) -> Option<DropReason>,
    ) -> (Option<DropReason>, Option<ItemId>) {
        let Some((anchor, then)) = self.last else {
            return (self.fault_by_conversation(row, position), before_it);
        };
        let id = &self.prompt.included[row].id;
        let at = self.now.len() - self.prompt.included.len() + row;
        let Some((place, after)) = self.origin_place(then, id, at, position) else {
            return (Some(self.uncovered(then, id, at)), before_it);
        };
        let same = place == at && self.same >= place;
        let fault = refused_to(anchor).or_else(|| known_loss(self.prompt, id));
        (fault.or_else(|| (!same).then(|| change_reason(self.prompt, self.log, id, self.now))), after)
    }

    /// Checks if every message between a prompt and the message at `position` is empty.
    fn follows_directly(&self, prompt: &[PromptPiece], position: u32) -> bool {
        let last = prompt.iter().rev().find_map(|piece| self.log.position_of(&piece.id));
        let next = last.map_or(0, |at| at + 1);
        next <= position && (next..position).all(|at| self.log.message(at).is_empty())
    }

    /// Returns the reason to withhold reasoning that the last prompt does not cover: the first item that
    /// changed before it, or the reason that the last prompt recorded, or that its prompt is unknown.
    fn uncovered(&self, then: &[PromptPiece], id: &ItemId, at: usize) -> DropReason {
        if self.same < then.len().min(at) {
            return change_reason(self.prompt, self.log, id, self.now);
        }
        known_loss(self.prompt, id).unwrap_or(DropReason::Uncovered)
    }

    /// Returns the reason to withhold reasoning by the evidence of the conversation alone: a row before it
    /// that differs, or a message that is missing.
    fn fault_by_conversation(&self, row: usize, position: u32) -> Option<DropReason> {
        let parts = self.first_difference.get_or_init(|| self.first_difference()).as_ref();
        let parts = parts.filter(|(at, _)| *at <= row).map(|(_, why)| why.clone());
        parts.or_else(|| {
            let (_, id) =
                self.missing.get_or_init(|| self.missing_messages()).iter().find(|(at, _)| *at < position)?;
            Some(DropReason::PrefixChanged { at: id.clone(), cause: self.prompt.cause(id, &[], true) })
        })
    }

    /// Finds the first row that differs from the conversation: a shortened message, a text between messages
    /// that was not sent there, or a message without the texts that it was sent with.
    ///
    /// A fault right before a message also affects the reasoning of that message itself.
    fn first_difference(&self) -> Option<(usize, DropReason)> {
        let mut between = Vec::new();
        for (at, row) in self.prompt.included.iter().enumerate() {
            let cause = match row.kind {
                ItemKind::SystemText | ItemKind::FocusHint | ItemKind::Note | ItemKind::Rule => continue,
                ItemKind::Document | ItemKind::State => {
                    between.push(row);
                    continue;
                }
                ItemKind::Message => match self.log.position_of(&row.id) {
                    Some(position) => {
                        if let Some((id, cause)) = self.first_other_text(position, &between) {
                            return Some((at, DropReason::PrefixChanged { at: id, cause }));
                        }
                        between.clear();
                        if !is_shortened(row, self.log) {
                            continue;
                        }
                        PrefixCause::Changed
                    }
                    None => continue,
                },
                _ => PrefixCause::Inserted,
            };
            // The row itself is as it was; only the rows after it are affected.
            return Some((at + 1, DropReason::PrefixChanged { at: row.id.clone(), cause }));
        }
        None
    }

    /// Compares the documents and state right before a message with those that the conversation remembers for
    /// it. Returns the first that differs.
    fn first_other_text(&self, position: u32, between: &[&PlannedItem]) -> Option<(ItemId, PrefixCause)> {
        let sent_with = self.log.sent_with();
        let documents = sent_with.documents(position).iter().map(|sent| (sent.id.clone(), Some(&sent.text)));
        let state = sent_with.state(position).iter().map(|sent| (sent.state_row(position), None));
        let mut remaining = between.iter();
        for (id, text) in documents.chain(state) {
            let Some(row) = remaining.next() else {
                return Some((id.clone(), self.prompt.cause(&id, &[], false)));
            };
            // A document has another name in the plan if a newer one has its id (O5).
            if *self.prompt.sent_id(row) != id {
                return Some((row.id.clone(), PrefixCause::Inserted));
            }
            if text.is_some_and(|text| row.body.text() != *text) {
                return Some((id, PrefixCause::Changed));
            }
        }
        remaining.next().map(|row| (row.id.clone(), PrefixCause::Inserted))
    }

    /// Finds the messages that are not sent. Empty messages were never sent, and messages that were taken
    /// back left before the reasoning was made, so neither counts.
    fn missing_messages(&self) -> Vec<(u32, ItemId)> {
        let is_nothing = |row: &ExcludedItem| {
            matches!(
                row.reason,
                ExcludedReason::Archived { compaction: None }
                    | ExcludedReason::Policy(PolicyRule::EmptyMessage)
            )
        };
        let rows = self.prompt.excluded.iter().filter(|row| row.section != Section::Rag && !is_nothing(row));
        rows.filter_map(|row| Some((self.log.position_of(&row.id)?, row.id.clone()))).collect()
    }

    /// Returns the number of items before some reasoning when it was made, and the message with the reasoning
    /// before it.
    ///
    /// This is known for reasoning in the last prompt, and for the reply to that prompt if it is the next
    /// item now. Returns `None` if the last prompt does not cover the reasoning.
    fn origin_place(
        &self,
        then: &'p [PromptPiece],
        id: &ItemId,
        at: usize,
        position: u32,
    ) -> Option<(usize, Option<ItemId>)> {
        let reasoning_places = self.reasoning_places.get_or_init(|| {
            let with = then.iter().enumerate().filter(|(_, piece)| piece.has_reasoning());
            with.map(|(place, piece)| (&piece.id, place)).collect()
        });
        let place = match reasoning_places.get(id) {
            Some(place) => *place,
            None if at == then.len() && self.follows_directly(then, position) => at,
            None => return None,
        };
        let before = then[..place].iter().rev().find(|piece| piece.has_reasoning());
        Some((place, before.map(|piece| piece.id.clone())))
    }
}

/// Checks if a tool result is sent as a stub, or without its middle.
fn is_shortened(row: &PlannedItem, log: &Conversation) -> bool {
    let Some(position) = log.position_of(&row.id).filter(|_| row.role == Some(Role::Tool)) else {
        return false;
    };
    // A stub or a clip differs from its text in length, so the texts are not compared.
    let total_bytes = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::len).sum::<usize>();
    let message = log.message(position);
    let whole = total_bytes(&mut message.plain_texts());
    whole != total_bytes(&mut row.body.plain_texts()) && whole > 0
}

/// Returns the reason that this reasoning was already lost to the last prompt. Returns `None` if it was not.
pub(super) fn known_loss(prompt: SentPrompt<'_>, id: &ItemId) -> Option<DropReason> {
    let last = &prompt.before?.anchor;
    last.lost.iter().find(|lost| lost.id == *id).map(|lost| lost.why.clone())
}

/// Returns the reason that reasoning made for another prompt is lost. This is the reason that the last prompt
/// recorded, or the first item at which this prompt differs from the last one.
pub(super) fn change_reason(
    prompt: SentPrompt<'_>,
    log: &Conversation,
    id: &ItemId,
    now: &[PromptPiece],
) -> DropReason {
    let last = prompt.before.map(|last| &*last.anchor);
    if let Some(known) = known_loss(prompt, id) {
        return known;
    }
    let then = last.and_then(|last| last.prompt.as_deref()).unwrap_or_default();
    let same = then.iter().zip(now).take_while(|(was, is)| was.is_sent_as(is)).count();
    let (at, cause) = match (then.get(same), now.get(same)) {
        (Some(was), _) => {
            let is_message = log.position_of(&was.id).is_some();
            (&was.id, prompt.cause(&was.id, &now[same..], is_message))
        }
        (None, Some(is)) => (&is.id, PrefixCause::Inserted),
        (None, None) => return DropReason::ChainBroken,
    };
    DropReason::PrefixChanged { at: at.clone(), cause }
}
