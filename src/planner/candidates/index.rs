//! Candidates without their texts.
//!
//! - Input: gathered candidates.
//! - Output: their ids, orders, pins and turns.
//! - Rules: none of its own.
//!
//! [`CandidateIndex`] holds no text, so a decision here and in `planner::select` cannot depend on one.

use super::{CandidateId, Document, Groups, Pin, Rank, Required, Slot};
use crate::{
    conversation::{ExchangeIndex, TurnIndex, Turns},
    item::Section,
    plan::reason::{ExcludedReason, IncludedReason},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// The candidates of one request, in the orders of selection.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub(crate) struct CandidateIndex<'a> {
    pub(super) turns: &'a Turns,
    /// System texts, focus hint and state (rule S1).
    pub(crate) required_system: Vec<CandidateId>,
    /// The live question and the open exchange, or their substitutes; then summaries.
    pub(crate) required_conversation: Vec<CandidateId>,
    /// Pins that may be sent, in the order of rule S2, then rules of the user.
    pub(crate) pins: Vec<Pin>,
    pub(super) pins_are_notes: bool,
    /// True if the request knows rules of the user, sent or not (rule R1).
    pub(crate) has_rules: bool,
    /// The slots of the pins that are never dropped.
    pub(crate) undroppable: Vec<Slot>,
    /// The user message that comes with each pin, if one does.
    pub(super) brought: BTreeMap<CandidateId, Option<CandidateId>>,
    /// Pins that have expired or can never be sent.
    pub(crate) ineligible_pins: BTreeMap<CandidateId, ExcludedReason>,
    /// Documents in rank order: the set that stays (rule S5), then the others in the order of rule S8.
    pub(super) documents: Vec<Document>,
    /// Documents that no policy excludes, in the order in which they compete.
    pub(super) competing: Vec<Rank>,
    /// The number of documents in the set that stays for the question of the last prompt (rule S5). They are
    /// the first ones.
    pub(crate) sticky_document_count: Option<u32>,
    /// True if other documents may join the set. False if the model checks the prompt before its reasoning.
    pub(crate) others_join: bool,
    /// The start of the last prompt's window, if it still holds (rule S5).
    pub(crate) window_start: Option<CandidateId>,
    pub(super) live_turn: Option<TurnIndex>,
    /// The number of state entries.
    pub(super) states: u64,
    /// True if instructions are among the state; they are messages of their own.
    pub(super) has_late: bool,
    /// True if state is sent at the end of the prompt, false if before the live question (rule O1).
    pub(crate) state_comes_last: bool,
    /// True if new documents are sent at the end of the prompt, before the state (rule S10).
    pub(crate) documents_come_last: bool,
    /// True if a compaction inside the live turn put its summary after the live question.
    pub(super) summary_follows_the_question: bool,
    /// True if old tool results are to be cleared (rule S7).
    pub(super) clears_results: bool,
    /// True if documents stay with the question that they were sent with (rule S10).
    pub(crate) documents_stay: bool,
    /// True if messages that are recalled compete (rule S15).
    pub(crate) has_recalled: bool,
    /// True if a competing document has several forms (rule S17), or depends on another (rule S18).
    pub(crate) has_forms_or_dependents: bool,
    /// Documents that are sent together or not at all (rule S19).
    pub(crate) groups: Groups,
}

impl CandidateIndex<'_> {
    /// Returns the required candidates, each once, with its section and reason (rules S1, S2, S6).
    pub(crate) fn minimum(&self) -> Vec<(CandidateId, Section, IncludedReason)> {
        let why = |id: &CandidateId| match id {
            CandidateId::Summary(_) => IncludedReason::Summary,
            _ => IncludedReason::Required,
        };
        let required = |section| move |id: &CandidateId| (*id, section, why(id));
        let conversation = self.required_conversation.iter().map(required(Section::Conversation));
        let system = self.required_system.iter().map(required(Section::SystemPinned));
        let pins = self.undroppable.iter().map(|slot| &self.pins[slot.to_usize()]);
        let pinned = pins
            .flat_map(|pin| [Some(pin.id), pin.brings])
            .flatten()
            .map(|id| (id, Section::SystemPinned, IncludedReason::Pinned));
        // A candidate may be both required and pinned. The first of these sections pays for it.
        let mut seen = BTreeSet::new();
        conversation.chain(system).chain(pinned).filter(|(id, ..)| seen.insert(*id)).collect()
    }

    /// Checks if state is merged into the live question while only the minimum is included (rule O1).
    pub(crate) fn merges_in_minimum(&self) -> bool {
        let Some(exchanges) = self.exchanges_after_the_question() else { return false };
        let follows = |id: CandidateId| matches!(id, CandidateId::Exchange(at) if exchanges.contains(&at));
        !self.minimum().into_iter().any(|(id, ..)| follows(id))
    }

    /// Returns the exchanges that must all be excluded for state to be merged into the live question. Returns
    /// `None` if state is never merged.
    pub(crate) fn exchanges_after_the_question(&self) -> Option<Range<ExchangeIndex>> {
        let live =
            self.live_question().filter(|_| self.state_comes_last && !self.summary_follows_the_question)?;
        Some(self.turns.exchanges(live))
    }

    /// Returns all turns; the last one is the live turn.
    pub(crate) fn turns(&self) -> Range<TurnIndex> {
        self.turns.all()
    }

    /// Returns the turn of a message or exchange of the conversation.
    pub(crate) fn turn_of(&self, id: CandidateId) -> TurnIndex {
        match id {
            CandidateId::UserMessage(turn) => turn,
            CandidateId::Exchange(at) => self.turns.turn_of(at),
            _ => TurnIndex::new(0),
        }
    }

    /// Returns the user message of a turn.
    pub(crate) fn user_message(&self, turn: TurnIndex) -> Option<CandidateId> {
        self.turns.user_message(turn).map(|_| CandidateId::UserMessage(turn))
    }

    /// Returns the exchanges of a turn, including those that can never be sent.
    pub(crate) fn exchanges(&self, turn: TurnIndex) -> Range<ExchangeIndex> {
        self.turns.exchanges(turn)
    }

    /// Checks if a candidate is an exchange of the live turn.
    pub(crate) fn follows_the_question(&self, id: CandidateId) -> bool {
        let Some(live) = self.live_turn else { return false };
        matches!(id, CandidateId::Exchange(at) if self.exchanges(live).contains(&at))
    }

    /// Returns the user message that comes with a pinned candidate.
    pub(crate) fn brought_by(&self, id: CandidateId) -> Option<CandidateId> {
        self.brought.get(&id).copied().flatten()
    }

    /// Returns the number of pins, which is the index of the first user's rule among them.
    pub(crate) fn first_rule(&self) -> usize {
        self.pins.partition_point(|pin| !pin.is_rule)
    }

    /// Checks if all pins are notes. Then each is counted by itself, and none brings a user message.
    pub(crate) fn has_only_pinned_notes(&self) -> bool {
        self.pins_are_notes
    }

    /// Checks if only the walk of rules S4 and S5 decides on a candidate, once everything newer is included:
    /// no other item competes for free tokens.
    pub(crate) fn is_decided_by_walk(&self, id: CandidateId) -> bool {
        let walked = matches!(id, CandidateId::UserMessage(_) | CandidateId::Exchange(_));
        let alone =
            self.competing.is_empty() && self.states == 0 && self.pins.iter().all(|pin| pin.undroppable);
        walked && alone && !self.minimum().into_iter().any(|(one, ..)| one == id)
    }

    /// Returns the slots of all competing documents, whether or not a set stays from the last prompt.
    pub(crate) fn document_slots(&self) -> Range<Slot> {
        Slot::new(0)..Slot::new(self.competing.len() as u32)
    }

    /// Returns the rank of a competing document.
    pub(crate) fn rank_at(&self, slot: Slot) -> Rank {
        self.competing[slot.to_usize()]
    }

    /// Returns the slot of a competing document.
    ///
    /// # Panics
    ///
    /// Panics if the document does not compete.
    pub(crate) fn slot_of(&self, rank: Rank) -> Slot {
        match self.competing.binary_search(&rank) {
            Ok(at) => Slot::new(at as u32),
            Err(_) => unreachable!("{rank:?} competes"),
        }
    }

    /// Returns the competing documents that are sent only beside others (rule S18).
    pub(crate) fn dependents(&self) -> impl Iterator<Item = (Rank, &Required)> {
        self.competing.iter().filter_map(|rank| Some((*rank, self.document(*rank).required.as_ref()?)))
    }

    /// Returns the documents that compete: those of the set that stays, or all.
    pub(crate) fn competing_documents(&self) -> impl Iterator<Item = (Rank, &Document)> {
        let kept = self.sticky_document_count.unwrap_or(u32::MAX);
        // The documents of the set have the first ranks.
        let ranks = self.competing.iter().take_while(move |rank| rank.number() < kept);
        ranks.map(|rank| (*rank, &self.documents[rank.to_usize()]))
    }

    /// Returns all documents in rank order.
    pub(crate) fn documents(&self) -> impl Iterator<Item = (Rank, &Document)> {
        self.documents.iter().zip(0..).map(|(document, rank)| (Rank::new(rank), document))
    }

    pub(crate) fn document(&self, rank: Rank) -> &Document {
        &self.documents[rank.to_usize()]
    }

    /// Checks if a document stays from the last prompt (rule S5).
    pub(crate) fn stays(&self, rank: Rank) -> bool {
        self.sticky_document_count.is_some_and(|count| rank.number() < count)
    }

    /// Returns the document of the last prompt that a document continued in one text.
    pub(super) fn was_joined_to(&self, rank: Rank) -> Option<Rank> {
        let document = self.document(rank);
        self.sent_at(document.sent_at.filter(|_| document.was_joined)?.checked_sub(1)?)
    }

    /// Returns the document of the last prompt that continued a document in one text.
    pub(super) fn was_joined_by(&self, rank: Rank) -> Option<Rank> {
        let next = self.sent_at(self.document(rank).sent_at?.checked_add(1)?)?;
        Some(next).filter(|next| self.document(*next).was_joined)
    }

    /// Returns the document at a place of the last prompt, if it stays and competes.
    fn sent_at(&self, place: u32) -> Option<Rank> {
        let stays = |rank: &Rank| self.document(*rank).sent_at == Some(place);
        self.competing_documents().map(|(rank, _)| rank).find(stays)
    }

    pub(crate) fn states(&self) -> u64 {
        self.states
    }

    /// Checks if instructions are among the state.
    pub(crate) fn has_late(&self) -> bool {
        self.has_late
    }

    /// Returns the turn that this request is about.
    pub(crate) fn live_turn(&self) -> Option<TurnIndex> {
        self.live_turn
    }

    /// Returns the live turn if it has a question.
    fn live_question(&self) -> Option<TurnIndex> {
        self.live_turn.filter(|live| self.turns.user_message(*live).is_some())
    }

    /// Checks if old tool results are to be cleared (rule S7).
    pub(crate) fn clears_results(&self) -> bool {
        self.clears_results
    }
}
