//! The pins of a request by slot.
//!
//! Input: pins in the order of selection. Output: the slot of each pin, and the user message that it brings.
//! Rule: pins (S2).

use crate::{
    conversation::TurnIndex,
    item::Priority,
    planner::{
        candidates::{CandidateId, Pin, Slot},
        select::SlotSet,
    },
};
use foldhash::fast::FixedState;
use indexmap::IndexMap;
use std::ops::Range;

/// The pins of a request, each at its slot.
#[derive(Debug, Default)]
pub(in crate::analysis::explain) struct PinSlots {
    /// By pin, the number of the turn whose user message the pin brings or is.
    ids: IndexMap<CandidateId, Option<u32>, FixedState>,
    /// The turns whose user message some pin brings or is.
    turns: IndexMap<TurnIndex, PinnedTurn, FixedState>,
    /// The range of slots of each priority that occurs, in order.
    pub(super) priorities: Vec<Range<u32>>,
    /// By slot, the number of the turn that has pins of the same priority before and after the slot, or at
    /// it.
    within: Vec<Option<u32>>,
    /// True if the pins of each turn are neighbours within each priority. Only notes and pins without a turn
    /// may be between them.
    pub(super) is_in_order: bool,
}

/// A turn whose user message a pin brings or is.
#[derive(Debug)]
pub(super) struct PinnedTurn {
    pub(super) user_message: CandidateId,
    /// The slots of the pins that bring or are the user message, in ascending order.
    slots: Vec<u32>,
}

/// Number of slots up to which each slot is looked up by itself.
const MAX_LISTED: usize = 8;

impl PinSlots {
    pub(in crate::analysis::explain) fn new(pins: &[Pin]) -> Self {
        let mut found = Self::default();
        let mut before: Option<Priority> = None;
        for (pin, slot) in pins.iter().zip(0..) {
            let user_message = if is_user_message(pin.id) { Some(pin.id) } else { pin.brings };
            let turn = user_message.map(|user_message| found.number_turn(user_message, slot));
            found.ids.insert(pin.id, turn);
            match found.priorities.last_mut() {
                Some(last) if before == Some(pin.priority) => last.end = slot + 1,
                _ => found.priorities.push(slot..slot + 1),
            }
            before = Some(pin.priority);
        }
        found.within = vec![None; pins.len()];
        found.is_in_order = true;
        for slots in &found.priorities {
            for (turn, number) in found.turns.values().zip(0..) {
                // A slot between the pins of two turns means that these turns are interleaved.
                let of_it = turn.slots_within(slots);
                let (Some(first), Some(last)) = (of_it.first(), of_it.last()) else { continue };
                for within in &mut found.within[*first as usize..=*last as usize] {
                    found.is_in_order &= within.replace(number).is_none();
                }
            }
        }
        found
    }

    /// Returns the number of the turn that has pins of the same priority before and after a slot, or at it.
    pub(super) fn within(&self, slot: u32) -> Option<u32> {
        self.within[slot as usize]
    }

    /// Records that the pin at a slot belongs to the turn of `user_message`. Returns the number of
    /// that turn.
    fn number_turn(&mut self, user_message: CandidateId, slot: u32) -> u32 {
        let CandidateId::UserMessage(turn) = user_message else {
            unreachable!("{user_message:?} heads no turn")
        };
        let entry = self.turns.entry(turn);
        let number = entry.index() as u32;
        entry.or_insert_with(|| PinnedTurn { user_message, slots: Vec::new() }).slots.push(slot);
        number
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn id(&self, slot: Slot) -> CandidateId {
        self.ids.get_index(slot.to_usize()).map_or_else(|| unreachable!("no pin at {slot:?}"), |(id, _)| *id)
    }

    /// Returns the number of the turn whose user message the pin at a slot brings or is.
    pub(super) fn turn_at(&self, slot: u32) -> Option<u32> {
        self.ids[slot as usize]
    }

    pub(super) fn turns(&self) -> impl ExactSizeIterator<Item = &PinnedTurn> {
        self.turns.values()
    }

    pub(super) fn turn(&self, number: u32) -> &PinnedTurn {
        &self.turns[number as usize]
    }

    /// Returns the slot of a pin, or `None` if the candidate is not a pin.
    pub(super) fn slot(&self, id: CandidateId) -> Option<u32> {
        self.ids.get_index_of(&id).map(|slot| slot as u32)
    }

    /// Returns the number of the turn of a user message, or `None` if no pin brings it.
    pub(super) fn turn_of(&self, id: CandidateId) -> Option<u32> {
        let CandidateId::UserMessage(turn) = id else { return None };
        self.turns.get_index_of(&turn).map(|number| number as u32)
    }

    /// Checks if the pins at `slots` include a candidate, as a pin or as a user message that a pin brings.
    pub(super) fn has(&self, id: CandidateId, slots: &SlotSet) -> bool {
        if let Some(turn) = self.turn_of(id) {
            return self.turn(turn).is_brought(slots);
        }
        self.slot(id).is_some_and(|slot| slots.has(Slot::new(slot)))
    }

    /// Returns the pin at a slot, preceded by the user message that it brings.
    pub(super) fn with_pin(&self, slot: Slot) -> impl DoubleEndedIterator<Item = CandidateId> {
        let id = self.id(slot);
        let brought = self.turn_at(slot.number()).filter(|_| !is_user_message(id));
        brought.map(|turn| self.turn(turn).user_message).into_iter().chain([id])
    }
}

pub(super) fn is_user_message(id: CandidateId) -> bool {
    matches!(id, CandidateId::UserMessage(_))
}

impl PinnedTurn {
    /// Returns the slot of the first pin within `slots` that brings or is the user message.
    pub(super) fn first_within(&self, slots: &Range<u32>) -> Option<u32> {
        let at = self.slots.partition_point(|slot| *slot < slots.start);
        self.slots.get(at).copied().filter(|slot| *slot < slots.end)
    }

    /// Returns the slot of the last pin before the slot `end` that brings or is the user message.
    pub(super) fn last_before(&self, end: u32) -> Option<u32> {
        let at = self.slots.partition_point(|slot| *slot < end);
        at.checked_sub(1).map(|last| self.slots[last])
    }

    /// Returns those of the slots that hold pins of this turn.
    pub(super) fn slots_within(&self, slots: &Range<u32>) -> &[u32] {
        let from = self.slots.partition_point(|slot| *slot < slots.start);
        let to = self.slots.partition_point(|slot| *slot < slots.end);
        &self.slots[from..to]
    }

    /// Checks if the pins at `slots` include the user message.
    pub(super) fn is_brought(&self, slots: &SlotSet) -> bool {
        if self.slots.len() <= MAX_LISTED {
            return self.slots.iter().any(|slot| slots.has(Slot::new(*slot)));
        }
        // A run of slots may contain only notes between the pins of this turn. Then the search continues
        // after it.
        let (mut from, end) = (self.slots[0], self.slots[self.slots.len() - 1] + 1);
        while let Some(run) = slots.first_of(from..end) {
            if self.first_within(&run).is_some() {
                return true;
            }
            from = run.end;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_of_many_pins_is_brought_by_each_of_them() {
        // Notes are between the pins of the turn.
        let slots = (0..10).map(|at| 3 * at).collect();
        let turn = PinnedTurn { user_message: CandidateId::UserMessage(TurnIndex::new(0)), slots };
        for slot in 0..30 {
            let mut included = SlotSet::default();
            included.insert_run(1..3);
            included.insert_run(slot..slot + 1);
            assert_eq!(turn.is_brought(&included), slot % 3 == 0, "{slot}");
        }
    }
}
