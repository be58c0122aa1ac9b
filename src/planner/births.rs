//! Reasoning of unknown birth: of replies that no `push_reply` committed, as in a session from elsewhere, or
//! in a conversation whose caller keeps nothing but the last prompt's anchor (rule K5).
//!
//! The last prompt is the best witness. It shows what stood before the thoughts that it held, and what its
//! own reply was made behind; all other thoughts it leaves uncovered, and they are withheld, because pins,
//! notes, system texts and tools may have come and gone meanwhile. Without a last prompt the conversation
//! itself is taken for what was sent.

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

/// The thoughts of one planned prompt whose births are unknown, and what is known of them.
pub(super) struct Births<'p> {
    prompt: SentPrompt<'p>,
    log: &'p Conversation,
    now: &'p [PromptPiece],
    /// The last prompt with its anchor, if it is remembered.
    last: Option<(&'p Anchor, &'p [PromptPiece])>,
    /// The number of items that both prompts begin with, reasoning apart.
    same: usize,
    /// The place in the last prompt of each message that was sent with reasoning.
    thoughts: OnceCell<BTreeMap<&'p ItemId, usize>>,
    /// Without a last prompt: the first row that is not sent as the conversation has it, with the reason.
    parts_at: OnceCell<Option<(usize, DropReason)>>,
    /// Without a last prompt: messages that are not sent, with their positions, in the order of the plan.
    gone: OnceCell<Vec<(u32, ItemId)>>,
}

impl<'p> Births<'p> {
    pub(super) fn new(prompt: SentPrompt<'p>, log: &'p Conversation, now: &'p [PromptPiece]) -> Self {
        let anchor = prompt.before.map(|before| &*before.anchor);
        let last = anchor.and_then(|anchor| Some((anchor, anchor.prompt.as_deref()?)));
        let same = last.map_or(0, |(_, then)| {
            iter::zip(then, now).take_while(|(was, is)| was.is_sent_as_bare(is)).count()
        });
        let (thoughts, parts_at, gone) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { prompt, log, now, last, same, thoughts, parts_at, gone }
    }

    /// Returns why the thought of an included row cannot be sent, if that is so, and the thought that stood
    /// before it when it was made. `refused_to` tells of a prompt why what was thought on it is not for this
    /// request's model or sender.
    pub(super) fn judge(
        &self,
        row: usize,
        position: u32,
        before_it: Option<ItemId>,
        refused_to: impl Fn(&Anchor) -> Option<DropReason>,
    ) -> (Option<DropReason>, Option<ItemId>) {
        let Some((anchor, then)) = self.last else { return (self.told(row, position), before_it) };
        let id = &self.prompt.included[row].id;
        let at = self.now.len() - self.prompt.included.len() + row;
        let Some((place, after)) = self.born_at(then, id, at, position) else {
            return (Some(self.uncovered(then, id, at)), before_it);
        };
        let same = place == at && self.same >= place;
        let fault = refused_to(anchor).or_else(|| known_loss(self.prompt, id));
        (fault.or_else(|| (!same).then(|| changed(self.prompt, self.log, id, self.now))), after)
    }

    /// Checks that nothing was said between a prompt and the message at a position.
    fn follows(&self, prompt: &[PromptPiece], position: u32) -> bool {
        let last = prompt.iter().rev().find_map(|piece| self.log.position_of(&piece.id));
        let next = last.map_or(0, |at| at + 1);
        next <= position && (next..position).all(|at| self.log.message(at).is_empty())
    }

    /// Returns why a thought is withheld that the last prompt does not cover: by the first item that changed
    /// before it, where one did.
    fn uncovered(&self, then: &[PromptPiece], id: &ItemId, at: usize) -> DropReason {
        if self.same < then.len().min(at) {
            return changed(self.prompt, self.log, id, self.now);
        }
        known_loss(self.prompt, id).unwrap_or(DropReason::Uncovered)
    }

    /// Returns why a thought was made behind something else than what is sent, by what the conversation
    /// itself tells.
    fn told(&self, row: usize, position: u32) -> Option<DropReason> {
        let parts = self.parts_at.get_or_init(|| self.parts_at()).as_ref();
        let parts = parts.filter(|(at, _)| *at <= row).map(|(_, why)| why.clone());
        parts.or_else(|| {
            let (_, id) = self.gone.get_or_init(|| self.gone()).iter().find(|(at, _)| *at < position)?;
            Some(DropReason::PrefixChanged { at: id.clone(), cause: self.prompt.cause(id, &[], true) })
        })
    }

    /// Finds the first row that does not stand as the conversation has it: a message that is sent shortened,
    /// what stands between messages and was not sent there, or a message that is no longer sent with what it
    /// was sent with. What is wrong right before a message is wrong for its own thought, too.
    fn parts_at(&self) -> Option<(usize, DropReason)> {
        let mut between = Vec::new();
        for (at, row) in self.prompt.included.iter().enumerate() {
            let cause = match row.kind {
                ItemKind::SystemText | ItemKind::FocusHint | ItemKind::Note => continue,
                ItemKind::Document | ItemKind::State => {
                    between.push(row);
                    continue;
                }
                ItemKind::Message => match self.log.position_of(&row.id) {
                    Some(position) => {
                        if let Some((id, cause)) = self.sent_with_others(position, &between) {
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
            // The row itself is right: what comes behind it is not.
            return Some((at + 1, DropReason::PrefixChanged { at: row.id.clone(), cause }));
        }
        None
    }

    /// Compares the documents and the state right before a message with those that the conversation remembers
    /// for it; the first that differs.
    fn sent_with_others(&self, position: u32, between: &[&PlannedItem]) -> Option<(ItemId, PrefixCause)> {
        let sent_with = self.log.sent_with();
        let documents = sent_with.documents(position).iter().map(|sent| (sent.id.clone(), Some(&sent.text)));
        let state = sent_with.state(position).iter().map(|sent| (sent.state_row(position), None));
        let mut stand = between.iter();
        for (id, text) in documents.chain(state) {
            let Some(row) = stand.next() else {
                return Some((id.clone(), self.prompt.cause(&id, &[], false)));
            };
            // A document goes by another name in the plan where a newer one has its id (O5).
            if *self.prompt.sent_id(row) != id {
                return Some((row.id.clone(), PrefixCause::Inserted));
            }
            if text.is_some_and(|text| row.body.text() != *text) {
                return Some((id, PrefixCause::Changed));
            }
        }
        stand.next().map(|row| (row.id.clone(), PrefixCause::Inserted))
    }

    /// Finds the messages that are not sent. What was never said to a model, or was taken back before the
    /// thought, is missed by nobody.
    fn gone(&self) -> Vec<(u32, ItemId)> {
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

    /// Returns the number of items that a thought was made behind, and the thought before it: of a thought
    /// that the last prompt held, and of the reply to that prompt, which is the next item now. Returns `None`
    /// if the last prompt does not cover the thought.
    fn born_at(
        &self,
        then: &'p [PromptPiece],
        id: &ItemId,
        at: usize,
        position: u32,
    ) -> Option<(usize, Option<ItemId>)> {
        let thoughts = self.thoughts.get_or_init(|| {
            let with = then.iter().enumerate().filter(|(_, piece)| piece.has_reasoning());
            with.map(|(place, piece)| (&piece.id, place)).collect()
        });
        let place = match thoughts.get(id) {
            Some(place) => *place,
            None if at == then.len() && self.follows(then, position) => at,
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
    let said = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::len).sum::<usize>();
    let message = log.message(position);
    let whole = said(&mut message.plain_texts());
    whole != said(&mut row.body.plain_texts()) && whole > 0
}

/// Returns why a thought was lost to the last prompt already. Returns `None` if it was not.
pub(super) fn known_loss(prompt: SentPrompt<'_>, id: &ItemId) -> Option<DropReason> {
    let last = &prompt.before?.anchor;
    last.lost.iter().find(|lost| lost.id == *id).map(|lost| lost.why.clone())
}

/// Returns why a thought that was made behind another prompt is lost: as the last prompt said, where it was
/// lost then already; else by the first item at which this prompt differs from the last one.
pub(super) fn changed(
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
