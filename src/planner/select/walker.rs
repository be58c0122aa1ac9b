//! The interface between the rules of selection and explanations.
//!
//! - Input: offers of the rules, each to many candidates at once.
//! - Output: true if the walker made the offer itself.
//! - Rules: none. A walker may find the same decisions faster, but never changes one.
//!
//! A plan is selected once, by [`OneBudget`]. It makes no offer itself and ignores all comparisons, so it
//! compiles to nothing. An explanation selects for hundreds of thousands of budgets. Its walker shares work
//! between them. For each decision it keeps the range of budgets for which the decision stays the same.
//!
//! Every comparison with a limit must be reported: by [`Selector::offer`] for one candidate, by `resume` and
//! `shorter_old_results` for the window, by [`Walker::compared`] for minimums. A comparison that is not
//! reported makes `explain` wrong.

use super::{Inclusion, Room, Selection, Selector};
use crate::{
    conversation::{ExchangeIndex, TurnIndex},
    error::Error,
    planner::{
        budget::BudgetVariable,
        candidates::{CandidateId, Costs},
    },
};
use std::ops::Range;

/// A strategy to visit candidates, and a listener to the comparisons.
pub(crate) trait Walker: Sized {
    /// Included candidates in a form that several selections share.
    type Shared: Default;

    /// The facts about decisions that the walker recorded.
    type Records;

    /// Creates a walker of the same kind for other costs.
    fn for_other_costs(&self) -> Self;

    /// Returns the facts recorded since the last call.
    fn take_records(&self) -> Self::Records;

    /// Returns the limit up to which a candidate is counted that is offered `left` tokens. It is higher than
    /// `left` if the excess of a candidate matters.
    fn count_to(&self, _offer: Room, left: u64) -> u64 {
        left
    }

    /// Records that something fits, with `_left` tokens of its offer left.
    fn fits(&self, _offer: Room, _left: u64) {}

    /// Records that something exceeds its offer by `_by` tokens.
    fn too_large(&self, _offer: Room, _by: u64) {}

    /// Records that these candidates together exceed their offer.
    fn too_large_together(
        &self,
        _offer: Room,
        _costs: &Costs<'_>,
        _ids: &dyn Fn() -> Result<Vec<CandidateId>, Error>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Records that the walk reaches a turn.
    fn walk_reaches(&self, _walk: &Walk<'_, '_, Self>, _turn: TurnIndex) -> Result<(), Error> {
        Ok(())
    }

    /// Records that the walk ends inside a turn, or before it.
    fn walk_ends(&self, _walk: &Walk<'_, '_, Self>, _turn: TurnIndex) -> Result<(), Error> {
        Ok(())
    }

    /// Records the comparison of an amount with the least that is needed; both in tokens.
    fn compared(&self, variable: BudgetVariable, amount: u64, least: u64) {
        let room = Room::new(amount, variable);
        match amount.checked_sub(least) {
            Some(left) => self.fits(room, left),
            None => self.too_large(room, least - amount),
        }
    }

    /// Returns the section and reason of a candidate that is included in the shared form.
    fn find(_shared: &Self::Shared, _id: CandidateId) -> Option<Inclusion> {
        None
    }

    /// Counts the candidates in the shared form.
    fn count(_shared: &Self::Shared) -> usize {
        0
    }

    /// Checks if the walk included one of these exchanges in the shared form.
    fn has_walked_any(_shared: &Self::Shared, _exchanges: &Range<ExchangeIndex>) -> bool {
        false
    }

    /// Checks if the shared form includes everything of the live turn that can be sent.
    fn has_live_turn(_shared: &Self::Shared) -> bool {
        false
    }

    /// Offers a room to all pins (rule S2). Returns true if the walker made the offer.
    fn offer_pins(
        &self,
        _selector: &Selector<'_, Self>,
        _room: Room,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Offers a room to all documents (rule S8). Returns true if the walker made the offer.
    fn offer_documents(
        &self,
        _selector: &Selector<'_, Self>,
        _room: Room,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Offers a room to the conversation (rule S4). Nothing before `floor` is included. Returns true if the
    /// walker made the offer.
    fn walk(
        &self,
        _selector: &Selector<'_, Self>,
        _room: Room,
        _floor: Option<CandidateId>,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Offers a room to the last prompt's window (rule S5). Returns `Some(true)` if it fits and is included,
    /// and `None` if the walker made no offer.
    fn resume(
        &self,
        _selector: &Selector<'_, Self>,
        _start: CandidateId,
        _room: Room,
        _chosen: &mut Selection<Self>,
    ) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    /// Checks if the window in the shared form relies on pins that are not included.
    fn lacks_awaited_pins(
        &self,
        _selector: &Selector<'_, Self>,
        _chosen: &mut Selection<Self>,
    ) -> Result<bool, Error> {
        Ok(false)
    }
}

/// The walk through the conversation (rule S4).
pub(crate) struct Walk<'a, 'b, W: Walker> {
    pub(crate) selector: &'a Selector<'b, W>,
    pub(crate) room: Room,
    /// Tokens left of the room.
    pub(crate) left: u64,
    /// The oldest candidate that the walk may include.
    pub(crate) floor: Option<CandidateId>,
    pub(crate) chosen: &'a mut Selection<W>,
    /// The candidates that this walk includes, with their tokens.
    pub(crate) new: Vec<(CandidateId, u64)>,
}

/// The walker of plans: it examines each candidate by itself and ignores comparisons.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OneBudget;

impl Walker for OneBudget {
    type Shared = ();
    type Records = ();

    fn for_other_costs(&self) -> Self {
        Self
    }

    fn take_records(&self) {}
}
