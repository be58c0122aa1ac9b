//! Pins in the order of rule S2.

use super::{CandidateId, Candidates, Slot};
use crate::{
    conversation::Note,
    error::Error,
    item::{ItemId, Priority, Ttl},
    plan::reason::{ExcludedReason, PolicyRule},
    planner::{expiry::Eligibility, repair},
};
use std::{cmp::Reverse, collections::BTreeMap};

/// A pin that may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pin {
    pub(crate) id: CandidateId,
    /// The user message that comes with it (rule S3).
    pub(crate) brings: Option<CandidateId>,
    pub(crate) priority: Priority,
    /// Never dropped (rule S2).
    pub(crate) undroppable: bool,
    /// Its order in the log: the messages before it, whether it is a message itself, and among notes which
    /// one.
    place: (u32, bool, u32),
}

impl Candidates<'_> {
    /// Orders notes and pinned exchanges by rule S2: priority, then newest first.
    pub(super) fn order_pins(&mut self) -> Result<(), Error> {
        for (number, note) in self.log.note_entries().iter() {
            let id = CandidateId::Note(number);
            if note.message.is_empty() {
                self.index.ineligible_pins.insert(id, Self::empty_message());
                continue;
            }
            match self.expiry.note(&note.item.id) {
                Eligibility::Eligible | Eligibility::Asks(_) if self.waits(note) => {
                    let reason = ExcludedReason::Policy(PolicyRule::NextQuestion);
                    self.index.ineligible_pins.insert(id, reason);
                }
                Eligibility::Out(reason) => drop(self.index.ineligible_pins.insert(id, reason)),
                Eligibility::Eligible | Eligibility::Asks(_) => self.index.pins.push(Pin {
                    id,
                    brings: None,
                    priority: note.item.priority,
                    undroppable: self.ttl_of(&note.item.id) == Some(Ttl::Unlimited),
                    place: (note.before, false, number),
                }),
            }
        }
        let mut pinned: BTreeMap<CandidateId, Priority> = BTreeMap::new();
        for (position, priority) in self.log.pin_priorities() {
            let Some(id) = self.candidate_of(*position) else { continue };
            if !self.index.required_conversation.contains(&id) {
                let held = pinned.entry(id).or_insert(*priority);
                *held = (*held).min(*priority);
            }
        }
        for (id, priority) in pinned {
            self.order_pinned_message(id, priority)?;
        }
        self.index.pins_are_notes = self.index.pins.iter().all(|pin| matches!(pin.id, CandidateId::Note(_)));
        self.index.brought = self.index.pins.iter().map(|pin| (pin.id, pin.brings)).collect();
        self.index.pins.sort_by_key(|pin| (pin.priority, Reverse(pin.place)));
        let slots = self.index.pins.iter().zip(0..).filter(|(pin, _)| pin.undroppable);
        self.index.undroppable = slots.map(|(_, slot)| Slot::new(slot)).collect();
        Ok(())
    }

    /// Checks if a note was pinned after the question that the model is working on, and can wait for the next
    /// one: at the head of the prompt it would change the beginning that everything since was made with.
    fn waits(&self, note: &Note) -> bool {
        let at_work = self.index.documents_come_last;
        let since = self.log.live_question().is_some_and(|question| note.before > question);
        let undroppable = self.ttl_of(&note.item.id) == Some(Ttl::Unlimited);
        let sent = || {
            let prompt = self.last_prompt().and_then(|last| last.prompt.as_deref()).unwrap_or_default();
            prompt.iter().any(|piece| piece.id == note.item.id)
        };
        at_work && since && !undroppable && !sent()
    }

    /// Returns the notes that wait for the next question.
    pub(crate) fn waiting_notes(&self) -> impl Iterator<Item = ItemId> {
        let waits = |reason: &ExcludedReason| *reason == ExcludedReason::Policy(PolicyRule::NextQuestion);
        let waiting = self.index.ineligible_pins.iter().filter(move |(_, reason)| waits(reason));
        waiting.filter_map(|(id, _)| match id {
            CandidateId::Note(at) => Some(self.log.note_entries().get(*at).item.id.clone()),
            _ => None,
        })
    }

    fn order_pinned_message(&mut self, id: CandidateId, priority: Priority) -> Result<(), Error> {
        let members = self.members(id);
        let refused = match id {
            CandidateId::Exchange(at) => {
                let exchange = self.log.turns().exchange(at);
                repair::refused(self.log, exchange, self.config.conversation.repair, &self.profile)?
            }
            _ => None,
        };
        let fate = match refused {
            Some(rule) => Eligibility::Out(ExcludedReason::Policy(rule)),
            None => self.expiry.messages(&members),
        };
        if let Eligibility::Out(reason) = fate {
            self.index.ineligible_pins.insert(id, reason);
            return Ok(());
        }
        let undroppable = self.undroppable(&members).next().is_some();
        let brings = match id {
            CandidateId::Exchange(at) => self.unexpired_user_message(self.log.turns().turn_of(at)),
            _ => None,
        };
        self.index.pins.push(Pin { id, brings, priority, undroppable, place: (members[0], true, 0) });
        Ok(())
    }

    /// Returns the members of an exchange whose pins are never dropped.
    fn undroppable<'m>(&'m self, members: &'m [u32]) -> impl Iterator<Item = u32> + 'm {
        let unlimited = |position: u32| {
            let lifetime = self.log.message_lifetime(position);
            lifetime.is_some_and(|lifetime| lifetime.left == Ttl::Unlimited)
        };
        let pinned = |position: &u32| self.log.pin_priorities().contains_key(position);
        members.iter().copied().filter(pinned).filter(move |position| unlimited(*position))
    }

    /// Returns the note or message whose pin alone makes a candidate undroppable: without it the candidate may be
    /// dropped.
    pub(crate) fn held_by_one_pin(&self, id: CandidateId) -> Option<ItemId> {
        if let CandidateId::Note(at) = id {
            return Some(self.log.note_entries().get(at).item.id.clone());
        }
        let members = self.members(id);
        let mut pins = self.undroppable(&members);
        let only = pins.next().filter(|_| pins.next().is_none());
        only.map(|position| self.log.message_id(position))
    }
}
