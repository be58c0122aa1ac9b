//! Pinned notes and messages, and rules of the user.
//!
//! - Input: the notes, rules of the user and pins of the conversation, and the required candidates.
//! - Output: pins in the order of selection, and the reasons of those that may not be sent.
//! - Rules: R1, R3 (rules of the user), S2 (order), S3 (exchanges), S10 (notes that wait), T1, H2.

use super::{CandidateId, Candidates, Slot, candidate_at, last_prompt, members};
use crate::{
    conversation::{Conversation, Note, Notes, RuleNote, TurnIndex},
    error::Error,
    item::{ItemId, Priority, Ttl},
    plan::reason::{ExcludedReason, PolicyRule},
    planner::{
        eligibility::{Eligibility, EligibilityRules},
        request::PlanRequest,
    },
};
use std::{cmp::Reverse, collections::BTreeMap};

/// A pin that may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pin {
    pub(crate) id: CandidateId,
    /// The user message that comes with the pin (rule S3).
    pub(crate) brings: Option<CandidateId>,
    pub(crate) priority: Priority,
    /// True if the pin is never dropped (rule S2).
    pub(crate) undroppable: bool,
    /// True for a rule of the user, which comes after all pins (rule R3).
    pub(crate) is_rule: bool,
    /// The place in the conversation: the number of messages before it, true for a message, and the number of
    /// a note among the notes.
    place: (u32, bool, u32),
}

/// The sources of pins.
pub(super) struct PinSources<'g, 'a> {
    pub(super) rules: &'g EligibilityRules<'a>,
    pub(super) request: &'g PlanRequest<'a>,
    /// The notes of the conversation, followed by the user's rules.
    pub(super) notes: &'g Notes,
    pub(super) documents_come_last: bool,
}

impl PinSources<'_, '_> {
    /// Returns the notes, rules of the user and pinned exchanges that may be sent, and the reasons of those
    /// that may not. Pins are sorted by priority, then newest first (rule S2). Rules follow (rule R3).
    ///
    /// `required` are the required candidates of the conversation, which are not paid for by pins. `has_left`
    /// returns true for a rule whose message is not in the prompt.
    ///
    /// # Errors
    ///
    /// Fails if a pinned call has no result and the policy is to reject it (rule H2).
    pub(super) fn gather(
        &self,
        required: &[CandidateId],
        has_left: impl Fn(&Note, &RuleNote) -> bool,
    ) -> Result<(Vec<Pin>, BTreeMap<CandidateId, ExcludedReason>), Error> {
        let (rules, log) = (self.rules, self.rules.log());
        let (mut pins, mut ineligible) = (Vec::new(), BTreeMap::new());
        for (number, note) in self.notes.iter() {
            let id = CandidateId::Note(number);
            let waits = || self.documents_come_last && waits(note, self.request);
            let reason = match &note.rule {
                Some(rule) => rule_reason(rule, rules, || has_left(note, rule)),
                None => None,
            };
            match reason.or_else(|| note_reason(note, rules, waits)) {
                Some(reason) => drop(ineligible.insert(id, reason)),
                None => pins.push(Pin {
                    id,
                    brings: None,
                    priority: note.item.priority,
                    undroppable: is_unlimited(log, &note.item.id),
                    is_rule: note.rule.is_some(),
                    place: (note.before, false, number),
                }),
            }
        }
        let mut pinned: BTreeMap<CandidateId, Priority> = BTreeMap::new();
        for (position, priority) in log.pin_priorities() {
            let Some(id) = candidate_at(log, *position).filter(|id| !required.contains(id)) else { continue };
            // A pinned exchange has the highest priority of its members (S3); `High` orders before `Low`.
            let current = pinned.entry(id).or_insert(*priority);
            *current = (*current).min(*priority);
        }
        for (id, priority) in pinned {
            let members = members(log, id);
            if let Some(reason) = message_reason(id, &members, rules)? {
                ineligible.insert(id, reason);
                continue;
            }
            let brings = match id {
                CandidateId::Exchange(at) => unexpired_user_message(rules, required, log.turns().turn_of(at)),
                _ => None,
            };
            let undroppable = undroppable_members(log, &members).next().is_some();
            pins.push(Pin {
                id,
                brings,
                priority,
                undroppable,
                is_rule: false,
                place: (members[0], true, 0),
            });
        }
        pins.sort_by_key(|pin| (pin.is_rule, pin.priority, Reverse(pin.place)));
        Ok((pins, ineligible))
    }
}

/// Returns the reason that a rule of the user is not sent. Returns `None` if it may be.
fn rule_reason(
    rule: &RuleNote,
    rules: &EligibilityRules<'_>,
    has_left: impl FnOnce() -> bool,
) -> Option<ExcludedReason> {
    let (message, position) = rule.message.as_ref().map_or((None, None), |(id, at)| (Some(id), *at));
    if let Eligibility::Out(expired) = position.map_or(Eligibility::Eligible, |at| rules.messages(&[at])) {
        return Some(expired);
    }
    if let Some(message) = message.filter(|_| !has_left()) {
        return Some(ExcludedReason::InWindow { of: message.clone() });
    }
    rule.asks.then_some(ExcludedReason::Policy(PolicyRule::Unconfirmed))
}

/// Returns the slots of the pins that are never dropped.
pub(super) fn undroppable_slots(pins: &[Pin]) -> Vec<Slot> {
    let slots = pins.iter().zip(0..).filter(|(pin, _)| pin.undroppable);
    slots.map(|(_, slot)| Slot::new(slot)).collect()
}

/// Returns the reason that a note may not be sent. Returns `None` if it may be.
fn note_reason(
    note: &Note,
    rules: &EligibilityRules<'_>,
    waits: impl FnOnce() -> bool,
) -> Option<ExcludedReason> {
    if note.message.is_empty() {
        return Some(Candidates::empty_message());
    }
    match rules.note(&note.item.id) {
        Eligibility::Out(reason) => Some(reason),
        Eligibility::Eligible | Eligibility::Asks(_) => {
            waits().then_some(ExcludedReason::Policy(PolicyRule::NextQuestion))
        }
    }
}

/// Returns the reason that a pinned message or exchange may not be sent. Returns `None` if it may be.
fn message_reason(
    id: CandidateId,
    members: &[u32],
    rules: &EligibilityRules<'_>,
) -> Result<Option<ExcludedReason>, Error> {
    if let CandidateId::Exchange(at) = id
        && let Some(rule) = rules.refuse_exchange(at)?
    {
        return Ok(Some(ExcludedReason::Policy(rule)));
    }
    Ok(match rules.messages(members) {
        Eligibility::Out(reason) => Some(reason),
        Eligibility::Eligible | Eligibility::Asks(_) => None,
    })
}

/// Checks if a note waits for the next question. A note that was pinned while the model works on a question
/// would change the beginning of the prompt, and invalidate everything since.
fn waits(note: &Note, request: &PlanRequest<'_>) -> bool {
    let log = request.log;
    let since = log.live_question().is_some_and(|question| note.before > question);
    let sent = || {
        let prompt = last_prompt(request).and_then(|last| last.prompt.as_deref()).unwrap_or_default();
        prompt.iter().any(|piece| piece.id == note.item.id)
    };
    since && !is_unlimited(log, &note.item.id) && !sent()
}

/// Checks if a note never expires.
fn is_unlimited(log: &Conversation, id: &ItemId) -> bool {
    log.lifetime(id).is_some_and(|lifetime| lifetime.left == Ttl::Unlimited)
}

/// Returns the user message of a turn. Returns `None` if it has expired; a required one never expires.
pub(super) fn unexpired_user_message(
    rules: &EligibilityRules<'_>,
    required: &[CandidateId],
    turn: TurnIndex,
) -> Option<CandidateId> {
    rules.log().turns().user_message(turn)?;
    let id = CandidateId::UserMessage(turn);
    let expired =
        !rules.is_idle() && matches!(rules.messages(&members(rules.log(), id)), Eligibility::Out(_));
    (required.contains(&id) || !expired).then_some(id)
}

/// Returns the members of an exchange whose pins are never dropped.
fn undroppable_members<'m>(log: &'m Conversation, members: &'m [u32]) -> impl Iterator<Item = u32> + 'm {
    let unlimited = |position: u32| {
        log.message_lifetime(position).is_some_and(|lifetime| lifetime.left == Ttl::Unlimited)
    };
    let pinned = |position: &u32| log.pin_priorities().contains_key(position);
    members.iter().copied().filter(pinned).filter(move |position| unlimited(*position))
}

impl Candidates<'_> {
    /// Returns the notes that wait for the next question.
    pub(crate) fn waiting_notes(&self) -> impl Iterator<Item = ItemId> {
        let waits = |reason: &ExcludedReason| *reason == ExcludedReason::Policy(PolicyRule::NextQuestion);
        let waiting = self.index.ineligible_pins.iter().filter(move |(_, reason)| waits(reason));
        waiting.filter_map(|(id, _)| match id {
            CandidateId::Note(at) => Some(self.notes.get(*at).item.id.clone()),
            _ => None,
        })
    }

    /// Returns the note or message whose pin alone makes a candidate undroppable. Without that pin, the
    /// candidate could be dropped.
    pub(crate) fn held_by_one_pin(&self, id: CandidateId) -> Option<ItemId> {
        if let CandidateId::Note(at) = id {
            return Some(self.notes.get(at).item.id.clone());
        }
        let members = self.members(id);
        let mut pins = undroppable_members(self.log, &members);
        let only = pins.next().filter(|_| pins.next().is_none());
        only.map(|position| self.log.message_id(position))
    }
}
